"""Equalities of an event with one taken before, whose sides a host can compute and group by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from cepheid.lang.expression import Call, Literal, Name
from cepheid.plan.conditions.resolve import shape_of
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, Script, StageValue, can_fail
from cepheid.plan.lifted import Lifted
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import ties_of
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
            value, earlier = _side(tie.value), _side(tie.earlier)
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


def is_identified(side: Side, plan: Plan) -> bool:
    """Whether events with the same identity have the same value. Equal events are numbered among those of one value."""
    lifted = plan.values[side.column]
    schema = plan.schema
    identified = {name.lower(): schema.columns.field(name).type for name in (*plan.columns, *schema.sequence)}
    names = [*_names(lifted)]
    if not all(name in identified for name in names):
        return False
    # 0.0 and -0.0 are the same content: functions can tell them apart, comparisons cannot.
    return _is_column(lifted) or not any(_has_floats(identified[name]) for name in names)


def _side(script: Script) -> tuple[CurrentValue | StageValue, Side] | None:
    """The value that a script reads, and its side. None if hosts may compute it otherwise than scripts do."""
    inner = script
    if isinstance(script, Operation):
        if script.operator is not Operator.CAST or can_fail(script):
            return None
        (inner,) = script.operands
        if pa.types.is_decimal(inner.type) and not pa.types.is_decimal(script.type):
            return None
    return (inner, Side(inner.column, script.type)) if isinstance(inner, CurrentValue | StageValue) else None


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
