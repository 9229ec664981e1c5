"""The event columns that plans need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cepheid.lang.expression import Call, Expression, Name

if TYPE_CHECKING:  # `import cepheid` comes here, and needs no compiler of conditions
    from cepheid.plan.plan_set import LiftedFor


def used_columns(plan: LiftedFor) -> list[str]:
    """The event columns that the output, the order or a condition needs."""
    schema = plan.schema
    if plan.functions:
        return list(schema.columns.names)
    named = {schema.event_id} if schema.event_id is not None else set[str]()
    needed = {*schema.key, *schema.times, *schema.sequence, *named, *plan.columns, *lifted_columns(plan)}
    return [name for name in schema.columns.names if name in needed]


def lifted_columns(plan: LiftedFor) -> list[str]:
    """The event columns that conditions and questions use."""
    named = {name.lower() for column in (*plan.bits, *plan.values) for name in names_in(column.expression)}
    named |= {name.lower() for question in plan.questions for name in question.columns}
    return [name for name in plan.schema.columns.names if name.lower() in named]


def names_in(expression: Expression) -> Iterator[str]:
    """The columns that the expression names; there may be parameters of lambdas among them."""
    match expression:
        case Name(parts=parts):
            yield parts[0]
        case Call(args=args):
            for arg in args:
                yield from names_in(arg)
