"""Sub-keys: values that all events of a match have in common, so that they may extend the key.

Here is what all kinds of pattern share: which values a host can group by, and which of them several patterns have in
common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from cepheid.lang.expression import Call, Literal, Name
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, Script, StageValue, can_fail
from cepheid.plan.lifted import Lifted
from cepheid.plan.plan_set import LiftedFor, PlanSet
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided


def common_sub_keys(plans: PlanSet[Any], each: Sequence[tuple[Side, ...] | Undivided]) -> tuple[Side, ...] | Undivided:
    """The sub-keys that all patterns have in common, with the columns' numbers among those of all patterns. `each` has
    those of each pattern.
    """
    if len(each) == 1:
        return each[0]
    common: set[Side] | None = None
    for plan, sides, place in zip(plans.each, each, plans.places, strict=True):
        if isinstance(sides, Undivided):
            return Undivided(tuple(f"pattern {plan.pattern.name!r}: {reason}" for reason in sides.reasons))
        own = {Side(place.values[side.column], side.type) for side in sides}
        common = own if common is None else common & own
    return in_order(common) if common else Undivided(("the patterns have no equality in common",))


def in_order(sides: Iterable[Side]) -> tuple[Side, ...]:
    """The sides in the order of their columns."""
    return tuple(sorted(sides, key=lambda side: (side.column, str(side.type))))


def side_of(script: Script) -> tuple[CurrentValue | StageValue, Side] | None:
    """The value that a script reads, and its side. None if hosts may compute it otherwise than scripts do."""
    inner = script
    if isinstance(script, Operation):
        if script.operator is not Operator.CAST or can_fail(script):
            return None
        (inner,) = script.operands
        if pa.types.is_decimal(inner.type) and not pa.types.is_decimal(script.type):
            return None
    return (inner, Side(inner.column, script.type)) if isinstance(inner, CurrentValue | StageValue) else None


def is_identified(side: Side, plan: LiftedFor) -> bool:
    """Whether events with the same identity have the same value. Equal events are numbered among those of one value."""
    lifted = plan.values[side.column]
    schema = plan.schema
    identified = {name.lower(): schema.columns.field(name).type for name in (*plan.columns, *schema.sequence)}
    names = [*_names(lifted)]
    if not all(name in identified for name in names):
        return False
    # 0.0 and -0.0 are the same content: functions can tell them apart, comparisons cannot.
    return _is_column(lifted) or not any(_has_floats(identified[name]) for name in names)


def _names(lifted: Lifted) -> Iterator[str]:
    open_: list[Literal | Name | Call] = [lifted.expression]
    while open_:
        match open_.pop():
            case Name(parts=parts):
                yield parts[0].lower()
            case Call(args=args):
                open_ += args


def _is_column(lifted: Lifted) -> bool:
    """Whether the value is a column, or a column that was FLOAT as DOUBLE."""
    expression = lifted.expression
    if isinstance(expression, Call) and expression.function == "cast" and pa.types.is_floating(lifted.type):
        expression = expression.args[0]
    return isinstance(expression, Name) and len(expression.parts) == 1


def _has_floats(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))
