"""Ties: what a condition demands of the current event and an event before it, as `x = a.x` or `price > 3 * a.price`.

A tie is a comparison among the AND-ed parts of a condition. One side has values of the current event alone, the other
has values of events taken before. So an event meets the condition only if the comparison is true: neither false nor
NULL. Which partial matches wait for an event can then be looked up, by an index over the other side's values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from cepheid.plan.conditions.script import (
    ConstantValue,
    CurrentValue,
    Leaf,
    Operation,
    Operator,
    Script,
    StageValue,
    can_fail,
    conjuncts,
)
from cepheid.plan.lifted import Slot
from cepheid.plan.stages.plan import Plan

COMPARISONS = (Operator.EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL)


@dataclass(frozen=True)
class Tie:
    """A comparison that is true for every event that meets the condition. Both sides have the same type."""

    condition: int
    """The number of the condition in `Plan.conditions`. For a stage's condition it is the number of the stage."""
    comparison: Operator
    """EQUAL, LESS or LESS_OR_EQUAL."""
    value: Script
    """The side that reads the current event alone."""
    earlier: Script
    """The side that reads events taken before."""
    value_first: bool = True
    """Whether `value` is the left side."""
    certain: bool = True
    """Whether no part of the condition before the comparison can fail: see `can_fail`."""

    @property
    def columns(self) -> tuple[int, int] | None:
        """The lifted columns (numbers in `Plan.values`) of both sides, if each side is a column as it is, and the
        earlier one is of the last event of its stage.
        """
        value, earlier = self.value, self.earlier
        if not (isinstance(value, CurrentValue) and isinstance(earlier, StageValue)):
            return None
        return None if earlier.back or earlier.from_first else (value.column, earlier.column)

    @property
    def stages(self) -> frozenset[int]:
        """The numbers of the stages that the earlier side reads."""
        return frozenset(leaf.stage for leaf in _leaves(self.earlier) if isinstance(leaf, Slot))

    @property
    def comparison_script(self) -> Operation:
        """The comparison as it stands in the condition."""
        sides = (self.value, self.earlier) if self.value_first else (self.earlier, self.value)
        return Operation(self.comparison, sides, pa.bool_())


def ties_of(plan: Plan) -> tuple[Tie, ...]:
    """All ties of the plan's conditions, in the order of the conditions and of the comparisons in them.

    A tie of `begin_without` is left out: its condition compares an event with a later one.
    """
    conditions = plan.conditions if plan.pattern.without is None else plan.conditions[:-1]
    return tuple(tie for number, each in enumerate(conditions) for tie in _ties(number, each.script))


def _ties(condition: int, script: Script | None) -> Iterator[Tie]:
    certain = True
    for part in conjuncts(script):
        tie = _tie(condition, part, certain=certain)
        if tie is not None:
            yield tie
        certain = certain and not can_fail(part)


def _tie(condition: int, part: Script, *, certain: bool) -> Tie | None:
    comparison = _comparison(part)
    if comparison is None:
        return None
    left, right = comparison.operands
    if _is_current(left) and _is_earlier(right):
        return Tie(condition, comparison.operator, left, right, value_first=True, certain=certain)
    if _is_earlier(left) and _is_current(right):
        return Tie(condition, comparison.operator, right, left, value_first=False, certain=certain)
    return None


_OPPOSITE = {Operator.LESS: Operator.LESS_OR_EQUAL, Operator.LESS_OR_EQUAL: Operator.LESS}


def _comparison(part: Script) -> Operation | None:
    """The part as a comparison. `NOT left <= right`, as `left > right` is written where an operand can fail, is
    `right < left`.
    """
    if not isinstance(part, Operation):
        return None
    if part.operator in COMPARISONS:
        return part
    inner = part.operands[0]
    if part.operator is Operator.NOT and isinstance(inner, Operation) and inner.operator in _OPPOSITE:
        return Operation(_OPPOSITE[inner.operator], inner.operands[::-1], part.type)
    return None


def _is_current(script: Script) -> bool:
    leaves = [*_leaves(script)]
    current = any(isinstance(leaf, CurrentValue) for leaf in leaves)
    return current and all(isinstance(leaf, CurrentValue | ConstantValue) for leaf in leaves)


def _is_earlier(script: Script) -> bool:
    leaves = [*_leaves(script)]
    earlier = any(isinstance(leaf, Slot) for leaf in leaves)
    return earlier and all(isinstance(leaf, Slot | ConstantValue) for leaf in leaves)


def _leaves(script: Script) -> Iterator[Leaf]:
    if isinstance(script, Operation):
        for operand in script.operands:
            yield from _leaves(operand)
    else:
        yield script
