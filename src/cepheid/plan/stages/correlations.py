"""Correlations: the attributes of earlier events that conditions equate with one of the current event."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.lang.expression import Name
from cepheid.plan.conditions.script import Operation, Operator, Script, StageValue
from cepheid.plan.reserved import RESERVED_OPEN
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import ties_of

_LONGEST = 63
"""Bytes: PostgreSQL cuts longer names."""


def correlations(plan: Plan) -> dict[str, str]:
    """The columns of open partial matches that correlations add to the promoted ones, in the order of the conditions:
    for `x = a.x` the column `a_x`, as SQL over the events taken.

    Left out is an attribute that is a key or promoted already, and one whose column would have the name of another.
    """
    promoted = [measure.slots.get(_name(measure.expression)) for measure in plan.promoted]
    known = {*filter(None, promoted)}
    taken = {name.lower() for name in (*RESERVED_OPEN, *plan.schema.key, *(measure.name for measure in plan.promoted))}
    found: dict[str, str] = {}
    for attribute in _equated(plan):
        parts = plan.values[attribute.column].expression
        if attribute in known or not isinstance(parts, Name) or parts.parts in {(key,) for key in plan.schema.key}:
            continue
        path = (plan.pattern.leaves[attribute.stage].name, *parts.parts)
        name = "_".join(path).lower()  # so that PostgreSQL takes it without quotes
        if name not in taken and len(name.encode()) <= _LONGEST:
            found[name] = ".".join(f"`{part.replace('`', '``')}`" for part in path)
            taken.add(name)
        known.add(attribute)
    return found


def _name(expression: object) -> str:
    """The slot that the expression only repeats, or nothing."""
    return expression.parts[0] if isinstance(expression, Name) and len(expression.parts) == 1 else ""


def _equated(plan: Plan) -> Iterator[StageValue]:
    """The earlier sides of equalities, where each is a value of the last event of a stage as it is."""
    for tie in ties_of(plan):
        earlier = _uncast(tie.earlier)
        if tie.comparison is not Operator.EQUAL or not isinstance(earlier, StageValue):
            continue
        if not earlier.back and not earlier.from_first:
            yield earlier


def _uncast(script: Script) -> Script:
    """The value that is compared, without the cast to a common type."""
    return script.operands[0] if isinstance(script, Operation) and script.operator is Operator.CAST else script
