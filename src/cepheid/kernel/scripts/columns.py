"""Scripts for many rows at once, with NumPy: for those that compare numbers, times and texts between events.

Each result says for which rows it is sure. For the others, as where an integer leaves its range or a number is divided
by zero, the definition in `reference` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.errors import ConditionError
from cepheid.events.identity import as_integers
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.scripts.reference import evaluate
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Operation,
    Operator,
    Script,
    StageValue,
    integer_range,
)

Values = npt.NDArray[Any]
"""Doubles, booleans, texts as objects, or 64-bit integers: also times and lengths in microseconds, dates in days."""
SURELY_WITHIN = 2.0**62
"""Integers that are smaller than this, when computed as doubles, have not left their 64 bits."""


class Column(NamedTuple):
    """The values of many rows. Row by row: (rows,)."""

    value: Values
    """Anything where it is not present or not sure."""
    present: Flags
    """Whether it is not NULL."""
    sure: Flags

    def take(self, rows: Ints | Int32s) -> Column:
        """The values of these rows."""
        return Column(self.value[rows], self.present[rows], self.sure[rows])

    @property
    def is_true(self) -> Flags:
        """Whether a boolean is true, for sure."""
        true: Flags = self.value & self.present & self.sure
        return true

    def to_list(self) -> list[Any]:
        """The values as scripts have them in Python."""
        return [value if there else None for value, there in zip(self.value.tolist(), self.present, strict=True)]


Compute: TypeAlias = Callable[[Sequence[Column], Operation], Column | None]
"""The result of an operator; None for types that it does not have here."""


class Rows(Protocol):
    """Rows, each with a current event and the events that its partial match has taken before."""

    def __len__(self) -> int: ...

    def of_current(self, value: CurrentValue) -> Column | None: ...

    def of_stage(self, value: StageValue) -> Column | None: ...

    def folded(self, aggregate: Aggregate) -> Column | None: ...


def column_of(array: pa.Array) -> Column | None:
    """The values of a lifted column; None if they are of a type that scripts for many rows do not have."""
    present = array.is_valid().to_numpy(zero_copy_only=False)
    sure = np.ones(len(array), np.bool_)
    if pa.types.is_floating(array.type):
        return Column(array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False), present, sure)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return Column(np.array([*array.to_pylist(), None], object)[:-1], present, sure)
    integers = as_integers(array)
    if integers is None:
        return None
    return Column(integers.astype(np.bool_) if pa.types.is_boolean(array.type) else integers, present, sure)


def evaluated_for(script: Script, rows: Rows) -> Column | None:
    """The script's values; None if it has an operator, a type or a fold that is evaluated row by row only."""
    match script:
        case CurrentValue():
            return rows.of_current(script)
        case StageValue():
            return rows.of_stage(script)
        case Aggregate():
            return rows.folded(script)
        case ConstantValue():
            return _constant(script, len(rows))
        case Operation():
            return _constant(script, len(rows)) if is_constant(script) else _operated(script, rows)
        case _:
            return None


def is_constant(script: Script) -> bool:
    """Whether the script reads no event."""
    if isinstance(script, Operation):
        return all(map(is_constant, script.operands))
    return isinstance(script, ConstantValue)


def _constant(script: Script, count: int) -> Column | None:
    kind = _kind(script.type)
    if kind is None:
        return None
    try:
        value = evaluate(script, (), ())
    except ConditionError:
        return Column(np.zeros(count, kind), np.zeros(count, np.bool_), np.zeros(count, np.bool_))
    filled: Values = np.zeros(count, kind) if value is None else np.full(count, value, kind)
    return Column(filled, np.full(count, value is not None), np.ones(count, np.bool_))


def _kind(type_: pa.DataType) -> type | None:
    if pa.types.is_floating(type_):
        return np.float64
    if pa.types.is_boolean(type_):
        return np.bool_
    if pa.types.is_integer(type_) or pa.types.is_temporal(type_):
        return np.int64
    return object if pa.types.is_string(type_) else None


def _operated(operation: Operation, rows: Rows) -> Column | None:
    compute = _OPERATORS.get(operation.operator)
    if compute is None or _kind(operation.type) is None:
        return None
    found = [evaluated_for(operand, rows) for operand in operation.operands]
    operands = [one for one in found if one is not None]
    if len(operands) < len(found):
        return None
    with np.errstate(all="ignore"):
        return compute(operands, operation)


def _present(operands: Sequence[Column]) -> Column:
    """Where all operands are present, and where they are sure; no values."""
    flags = [np.logical_and.reduce([one[field] for one in operands]) for field in (1, 2)]
    return Column(np.empty(0), *flags)


def _arithmetic(compute: Callable[..., Values]) -> Compute:
    def computed(operands: Sequence[Column], operation: Operation) -> Column:
        all_ = _present(operands)
        values = [one.value for one in operands]
        result = compute(*values)
        if _kind(operation.type) is np.float64:
            return all_._replace(value=result)
        about = compute(*(one.astype(np.float64) for one in values))
        low, high = integer_range(operation.type)
        sure = (np.abs(about) < SURELY_WITHIN) & (low <= result) & (result <= high)
        return Column(result, all_.present, all_.sure & (sure | ~all_.present))

    return computed


def _divided(operands: Sequence[Column], operation: Operation) -> Column | None:
    if _kind(operation.type) is not np.float64:
        return None
    all_, (left, right) = _present(operands), operands
    return Column(left.value / right.value, all_.present, all_.sure & ((right.value != 0) | ~right.present))


def _cast(operands: Sequence[Column], operation: Operation) -> Column | None:
    (given,), kind = operands, _kind(operation.type)
    source = _kind(operation.operands[0].type)
    if kind is np.float64 and source in (np.float64, np.int64):
        return given._replace(value=given.value.astype(np.float64))
    if kind is source is np.int64:
        low, high = integer_range(operation.type)
        return given._replace(sure=given.sure & ((low <= given.value) & (given.value <= high) | ~given.present))
    return None


def less(left: Values, right: Values) -> Flags:
    """Whether numbers or booleans are less. NaN is greater than every number."""
    smaller: Flags = (left < right) | (_is_nan(right) & ~_is_nan(left))
    return smaller


def _equal(left: Values, right: Values) -> Flags:
    same: Flags = (left == right) | (_is_nan(left) & _is_nan(right))
    return same


def _is_nan(values: Values) -> Flags:
    return np.isnan(values) if values.dtype == np.float64 else np.zeros(len(values), np.bool_)


def _compared(compare: Callable[[Values, Values], Flags], *, of_texts: bool = False) -> Compute:
    def compared(operands: Sequence[Column], _: Operation) -> Column | None:
        left, right = (one.value for one in operands)
        is_known = of_texts or left.dtype != np.object_
        return _present(operands)._replace(value=compare(left, right)) if is_known else None

    return compared


def _null_safe_equal(operands: Sequence[Column], _: Operation) -> Column:
    left, right = operands
    both, neither = left.present & right.present, ~left.present & ~right.present
    return Column(
        (_equal(left.value, right.value) & both) | neither, np.ones(len(both), np.bool_), _present(operands).sure
    )


def _is_null(operands: Sequence[Column], _: Operation) -> Column:
    (given,) = operands
    return Column(~given.present, np.ones(len(given.present), np.bool_), given.sure)


def _not(operands: Sequence[Column], _: Operation) -> Column:
    (given,) = operands
    return given._replace(value=~given.value)


def _and(operands: Sequence[Column], _: Operation) -> Column:
    """Any operand that is false makes it false. What a false operand guards may fail: it is sure only if all are."""
    false = np.logical_or.reduce([one.present & ~one.value for one in operands])
    all_ = _present(operands)
    return Column(~false, all_.present | false, all_.sure)


def _or(operands: Sequence[Column], operation: Operation) -> Column:
    return _not([_and([_not([one], operation) for one in operands], operation)], operation)


def _coalesced(operands: Sequence[Column], _: Operation) -> Column:
    def first(left: Column, right: Column) -> Column:
        return Column(np.where(left.present, left.value, right.value), left.present | right.present, left.sure)

    return reduce(first, operands)._replace(sure=_present(operands).sure)


_OPERATORS: Mapping[Operator, Compute] = {
    Operator.ADD: _arithmetic(np.add),
    Operator.SUBTRACT: _arithmetic(np.subtract),
    Operator.MULTIPLY: _arithmetic(np.multiply),
    Operator.NEGATE: _arithmetic(np.negative),
    Operator.ABS: _arithmetic(np.abs),
    Operator.DIVIDE: _divided,
    Operator.CAST: _cast,
    Operator.EQUAL: _compared(_equal, of_texts=True),
    Operator.LESS: _compared(less),
    Operator.LESS_OR_EQUAL: _compared(lambda left, right: ~less(right, left)),
    Operator.NULL_SAFE_EQUAL: _null_safe_equal,
    Operator.IS_NULL: _is_null,
    Operator.NOT: _not,
    Operator.AND: _and,
    Operator.OR: _or,
    Operator.COALESCE: _coalesced,
}
