"""Equalities of an event with one taken before, whose sides a host can compute and group by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cepheid.lang.expression import Call, Literal, Name
from cepheid.plan.conditions.resolve import shape_of
from cepheid.plan.conditions.script import Operator, StageValue, can_fail
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import ties_of
from cepheid.plan.sub_keys import side_of
from cepheid.plan.tiers import Side


class Equality(NamedTuple):
    """A tie whose sides a host can compute."""

    value: Side
    """The side of the current event."""
    stage: int
    """The number of the stage that has taken the other event."""
    earlier: Side
    """The side of that event."""
    is_outermost: bool
    """Whether it is the first or the last event of its stage, not one counted from these."""


def equalities(plan: Plan, condition: int) -> Iterator[Equality]:
    """The equalities that every event meets for which the condition is true."""
    for tie in ties_of(plan):
        if tie.condition == condition and tie.comparison is Operator.EQUAL and tie.certain:
            value, earlier = side_of(tie.value), side_of(tie.earlier)
            if value and earlier:
                (_, own), (other, taken) = value, earlier
                assert isinstance(other, StageValue)
                yield Equality(own, other.stage, taken, other.back == 0)


def without_others(plan: Plan, condition: int) -> Iterator[Equality]:
    """The equalities for which the condition need not be evaluated on events that do not meet them.

    Where an equality is NULL, the rest of the condition is still evaluated, and may fail. The exception are values that
    are not NULL because the stages demand it.
    """
    script = plan.conditions[condition].script
    fails = script is not None and can_fail(script)
    for one in equalities(plan, condition):
        if not fails or (_is_not_null(plan, condition, one.value) and _is_not_null(plan, one.stage, one.earlier)):
            yield one


def _is_not_null(plan: Plan, condition: int, side: Side) -> bool:
    """Whether the condition demands that the value IS NOT NULL."""
    bit = plan.conditions[condition].bit
    value = shape_of(plan.values[side.column].expression)
    return bit is not None and any(
        isinstance(part, Call) and part.function == "is_not_null" and shape_of(part.args[0]) == value
        for part in _conjuncts(plan.bits[bit].expression)
    )


def _conjuncts(expression: Literal | Name | Call) -> Iterator[Literal | Name | Call]:
    if isinstance(expression, Call) and expression.function == "and":
        for part in expression.args:
            yield from _conjuncts(part)
    else:
        yield expression
