"""Typed scripts: what a condition compares between events, after names and types are settled.

Every node has a type, operands agree in type (casts are explicit), and evaluation follows SQL's three-valued logic with
Spark's ANSI errors. Leaves read lifted columns (`Plan.values`) by number: those of the current event, or of events that
the partial match has so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from cepheid.lang.expression import Constant
from cepheid.lang.function import Function


class Fold(Enum):
    """How an aggregate combines the values that a stage has so far; NULLs do not count. Without values the result is
    NULL, or 0 for COUNT and DISTINCT.
    """

    COUNT = "count"
    DISTINCT = "count distinct"
    """The number of different values."""
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    VARIANCE = "variance"
    """Of a sample, as STDDEV: NULL for a single value."""
    STDDEV = "stddev"
    POPULATION_VARIANCE = "var_pop"
    POPULATION_STDDEV = "stddev_pop"
    MAX_BY = "max_by"
    """The value of the event with the greatest key, the last of several. This and the following are for measures."""
    MIN_BY = "min_by"
    LIST = "array_agg"
    """All values, in the order of the events."""

    @property
    def is_for_measures(self) -> bool:
        """Whether scripts do not have it."""
        return self.has_key or self is Fold.LIST

    @property
    def has_key(self) -> bool:
        """Whether a second column decides which value is taken."""
        return self in (Fold.MAX_BY, Fold.MIN_BY)

    @property
    def counts(self) -> bool:
        """Whether the result is a number of values."""
        return self in (Fold.COUNT, Fold.DISTINCT)

    @property
    def varies(self) -> bool:
        """Whether the result is a variance or its root, computed from doubles."""
        return self in (Fold.VARIANCE, Fold.POPULATION_VARIANCE) or self.is_root

    @property
    def is_root(self) -> bool:
        return self in (Fold.STDDEV, Fold.POPULATION_STDDEV)

    @property
    def of_sample(self) -> bool:
        return self in (Fold.VARIANCE, Fold.STDDEV)


@dataclass(frozen=True)
class ConstantValue:
    """A constant. As its type says, decimals are scaled integers, times are microseconds, and dates are days."""

    value: Constant
    type: pa.DataType


@dataclass(frozen=True)
class CurrentValue:
    """The current event's value of a lifted column."""

    column: int
    type: pa.DataType


@dataclass(frozen=True)
class StageValue:
    """A lifted column of one event that a stage has so far; NULL if the stage has no such event.

    The event is `back` places before the last one (0: the last one itself). With `from_first`, it is `back` places
    after the first one.
    """

    stage: int
    column: int
    type: pa.DataType
    back: int = 0
    from_first: bool = False


ColumnValue: TypeAlias = CurrentValue | StageValue
"""A lifted column of one event."""


@dataclass(frozen=True)
class Aggregate:
    """A fold over a lifted column of all events that a stage has so far; `column` None counts events."""

    fold: Fold
    stage: int
    column: int | None
    type: pa.DataType
    key: int | None = None
    """For MAX_BY and MIN_BY: the lifted column that decides."""


_TEXT_NAMES = """CONCAT LIKE LOWER UPPER LENGTH TRIM TRIM_LEFT TRIM_RIGHT SUBSTRING RIGHT STARTS_WITH ENDS_WITH CONTAINS
    POSITION REPLACE REVERSE"""


class Operator(Enum):
    """The operators of scripts. Operands have the same type unless stated otherwise.

    Decimals have their own types in * and /. ADD and SUBTRACT also take a timestamp and a duration, and SUBTRACT of two
    timestamps is a duration. AND and OR take two operands or more.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    INTEGER_DIVIDE = "div"
    REMAINDER = "%"
    NEGATE = "negate"
    ABS = "abs"
    SQRT = "sqrt"
    """The functions from here to POWER take and return doubles, as Spark does. LN and LOG10 of 0 or less are NULL."""
    EXP = "exp"
    LN = "ln"
    LOG10 = "log10"
    POWER = "power"
    FLOOR = "floor"
    """To an integer, or of a decimal to one without a fraction. NaN becomes 0, and a number beyond BIGINT its end."""
    CEIL = "ceil"
    ROUND = "round"
    """A double to the digits of the second operand, a constant from 0 to 15; halves away from zero."""
    CONCAT = "concat"
    """The operators from here to REVERSE are of texts; only the reference step computes them. Places count from 1."""
    LIKE = "like"
    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"
    TRIM = "trim"
    TRIM_LEFT = "ltrim"
    TRIM_RIGHT = "rtrim"
    SUBSTRING = "substring"
    RIGHT = "right"
    STARTS_WITH = "startswith"
    ENDS_WITH = "endswith"
    CONTAINS = "contains"
    POSITION = "instr"
    REPLACE = "replace"
    REVERSE = "reverse"
    EQUAL = "="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    NULL_SAFE_EQUAL = "<=>"
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is null"
    CASE = "case"
    """Condition, result, condition, result, …, else."""
    COALESCE = "coalesce"
    LEAST = "least"
    GREATEST = "greatest"
    CAST = "cast"
    """To `Operation.type`: integers to wider integers, to decimals that hold them, to double; decimals to other
    scales, to double.
    """
    FAIL_IF = "fail if"
    """The value of the second operand. If the first operand (boolean) is true, the condition fails instead, as Spark's
    cast would (ANSI).
    """

    @property
    def is_of_texts(self) -> bool:
        """Whether only the reference step knows the operator."""
        return self in _OF_TEXTS


_OF_TEXTS = frozenset(Operator[name] for name in _TEXT_NAMES.split())


@dataclass(frozen=True)
class Operation:
    """An operator applied to operands. Division by zero, and integer results outside the type's range, raise
    ConditionError.
    """

    operator: Operator
    operands: tuple[Script, ...]
    type: pa.DataType


@dataclass(frozen=True)
class FunctionValue:
    """The result of a function on the current event and the events that the partial match has so far: true, false or
    NULL.

    Only the reference step can evaluate it.
    """

    function: Function
    stages: tuple[str, ...]
    """The names of all stages, by number."""
    type: pa.DataType


Leaf: TypeAlias = ConstantValue | CurrentValue | StageValue | Aggregate | FunctionValue
Script: TypeAlias = Leaf | Operation


def evaluation_order(operation: Operation) -> tuple[int, ...]:
    """The order in which Spark evaluates the operands of an operator that is NULL as soon as one operand is NULL. In a
    division, the divisor comes first.
    """
    if operation.operator in (Operator.DIVIDE, Operator.INTEGER_DIVIDE, Operator.REMAINDER):
        return (1, 0)
    return tuple(range(len(operation.operands)))


def conjuncts(script: Script | None) -> Iterator[Script]:
    """The AND-ed parts of a condition's script, in the order of their evaluation."""
    if isinstance(script, Operation) and script.operator is Operator.AND:
        for operand in script.operands:
            yield from conjuncts(operand)
    elif script is not None:
        yield script


def calls_function(script: Script) -> bool:
    """Whether evaluating the script may call a function of the user."""
    if isinstance(script, Operation):
        return any(map(calls_function, script.operands))
    return isinstance(script, FunctionValue)


def can_fail(script: Script) -> bool:
    """Whether evaluating the script may raise ConditionError."""
    exact = not (pa.types.is_floating(script.type) or pa.types.is_boolean(script.type))
    if isinstance(script, Aggregate):
        return script.fold in (Fold.SUM, Fold.AVG) and exact
    if not isinstance(script, Operation):
        return False
    if script.operator is Operator.CAST:
        fails = exact and not _widens(script.operands[0].type, script.type)
    else:
        fails = script.operator in _FAILING or (script.operator in _FAILING_IF_EXACT and exact)
    return fails or any(can_fail(operand) for operand in script.operands)


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether `target` can hold every number of the exact type `source`."""
    digits, scale = _digits(source)
    target_digits, target_scale = _digits(target)
    return digits - scale <= target_digits - target_scale and scale <= target_scale


def _digits(type_: pa.DataType) -> tuple[int, int]:
    """The digits that hold all numbers of an exact type, and how many of them are after the point."""
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    return len(str(integer_range(type_)[1])), 0


_FAILING = (Operator.DIVIDE, Operator.INTEGER_DIVIDE, Operator.REMAINDER, Operator.FAIL_IF, Operator.LIKE)
_FAILING_IF_EXACT = (Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.NEGATE, Operator.ABS)


def integer_range(type_: pa.DataType) -> tuple[int, int]:
    """The least and greatest integer that a value of `type_` may have in a script: decimals are scaled, times are in
    microseconds.
    """
    if pa.types.is_decimal(type_):
        bound = int(10**type_.precision) - 1
        return -bound, bound
    bits = int(type_.bit_width)
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
