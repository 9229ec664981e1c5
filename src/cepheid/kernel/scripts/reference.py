"""The definition of scripts: evaluated node by node in plain Python, as Spark evaluates SQL in ANSI mode.

NULL is None. Decimals are scaled integers, timestamps and durations microseconds, dates days, as in lifted columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa

from cepheid.errors import ConditionError
from cepheid.kernel.scripts.python_functions import Taken, Value, call_function
from cepheid.kernel.scripts.texts import TEXT_OPERATORS
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Fold,
    FunctionValue,
    Operation,
    Operator,
    Script,
    StageValue,
    evaluation_order,
    integer_range,
)


def evaluate(script: Script, taken: Taken, current: Sequence[Value]) -> Value:
    """The script's value for a partial match and the current event's lifted columns.

    Raises:
        ConditionError: where Spark's ANSI mode raises: a result out of range, a division by zero, a cast that fails.
    """
    match script:
        case ConstantValue(value=value):
            return value
        case CurrentValue(column=column):
            return current[column]
        case StageValue(stage=stage, column=column, back=back, from_first=from_first):
            events = [event for s, event in taken if s == stage]
            ordered = events if from_first else events[::-1]
            return ordered[back].values[column] if back < len(ordered) else None
        case Aggregate():
            return _fold(script, taken)
        case Operation():
            return _operate(script, taken, current)
        case FunctionValue():
            return call_function(script, taken, current)


def _fold(aggregate: Aggregate, taken: Taken) -> Value:
    events = [event for stage, event in taken if stage == aggregate.stage]
    if aggregate.column is None:
        return len(events)
    values = [value for event in events if (value := event.values[aggregate.column]) is not None]
    match aggregate.fold:
        case Fold.COUNT:
            return len(values)
        case Fold.DISTINCT:
            return len({_sort_key(value) for value in values})
        case _ if not values:
            return None
        case Fold.MIN:
            return min(values, key=_sort_key)
        case Fold.MAX:
            return max(values, key=_sort_key)
        case Fold.SUM:
            return _sum(values, aggregate.type)
        case Fold.AVG:
            return _average(values, aggregate.type)
        case fold:
            return _variation(values, fold)


def _variation(values: Sequence[float], fold: Fold) -> float | None:
    """A variance or its root. The squared deviations are summed in the order of the events, after Welford, as in
    Spark.
    """
    mean = deviations = 0.0
    for count, value in enumerate(values, 1):
        delta = value - mean
        mean += delta / count
        deviations += delta * (delta - delta / count)
    divisor = len(values) - fold.of_sample
    if divisor == 0:
        return None
    variance = deviations / divisor
    return math.sqrt(variance) if fold.is_root else variance


def _sum(values: Sequence[Value], type_: pa.DataType) -> Value:
    total = 0.0 if pa.types.is_floating(type_) else 0
    for value in values:
        total += value
    return _in_range(total, type_)


def _average(values: Sequence[Value], type_: pa.DataType) -> Value:
    """The average of a decimal column is a decimal with four more digits than its scale, rounded half up. Any other
    average is a double, computed from a sum of doubles.
    """
    if pa.types.is_decimal(type_):
        return _in_range(_divide_half_up(sum(values) * 10_000, len(values)), type_)
    total = 0.0
    for value in values:
        total += float(value)
    return total / len(values)


def _operate(operation: Operation, taken: Taken, current: Sequence[Value]) -> Value:
    operands = operation.operands
    match operation.operator:
        case Operator.AND:
            return _all(operands, taken, current)
        case Operator.OR:
            negated = _all([Operation(Operator.NOT, (o,), pa.bool_()) for o in operands], taken, current)
            return None if negated is None else not negated
        case Operator.CASE:
            for condition, result in zip(operands[:-1:2], operands[1::2], strict=True):
                if evaluate(condition, taken, current) is True:
                    return evaluate(result, taken, current)
            return evaluate(operands[-1], taken, current)
        case Operator.COALESCE:
            return next((v for o in operands if (v := evaluate(o, taken, current)) is not None), None)
        case Operator.FAIL_IF:
            if evaluate(operands[0], taken, current) is True:
                raise ConditionError("a value cannot be cast")
            return evaluate(operands[1], taken, current)
        case Operator.IS_NULL | Operator.NULL_SAFE_EQUAL | Operator.LEAST | Operator.GREATEST as operator:
            return _apply(operator, [evaluate(o, taken, current) for o in operands])
        case operator:
            return _apply_to_present(operator, operation, taken, current)


def _apply_to_present(operator: Operator, operation: Operation, taken: Taken, current: Sequence[Value]) -> Value:
    """Operators that return NULL if an operand is NULL; the operands after that one are not evaluated."""
    values: dict[int, Value] = {}
    for i in evaluation_order(operation):
        if (value := evaluate(operation.operands[i], taken, current)) is None:
            return None
        values[i] = value
    return _compute(operator, operation, [values[i] for i in range(len(values))])


def _all(operands: Sequence[Script], taken: Taken, current: Sequence[Value]) -> bool | None:
    """AND. Operands after a false one are not evaluated, and no function is called once the result cannot be true."""
    result: bool | None = True
    for operand in operands:
        if result is None and isinstance(operand, FunctionValue):
            continue
        value = evaluate(operand, taken, current)
        if value is False:
            return False
        result = None if value is None else result
    return result


def _apply(operator: Operator, values: list[Value]) -> Value:
    """Operators that return a value for NULLs, too."""
    present = [v for v in values if v is not None]
    match operator:
        case Operator.IS_NULL:
            return values[0] is None
        case Operator.NULL_SAFE_EQUAL:
            return values[0] is values[1] if len(present) < 2 else _sort_key(values[0]) == _sort_key(values[1])
        case Operator.LEAST:
            return min(present, key=_sort_key, default=None)
        case _:
            return max(present, key=_sort_key, default=None)


def _compute(operator: Operator, operation: Operation, values: list[Value]) -> Value:
    """Operators on operands that are not NULL."""
    left, right = values[0], values[-1]
    match operator:
        case Operator.NOT:
            return not left
        case Operator.EQUAL:
            return _sort_key(left) == _sort_key(right)
        case Operator.LESS:
            return _sort_key(left) < _sort_key(right)
        case Operator.LESS_OR_EQUAL:
            return _sort_key(left) <= _sort_key(right)
        case Operator.SQRT | Operator.EXP | Operator.LN | Operator.LOG10:
            return _function(operator, left)
        case Operator.POWER:
            return _power(left, right)
        case _ if operator.is_of_texts:
            return TEXT_OPERATORS[operator](*values)
        case Operator.FLOOR | Operator.CEIL:
            return _whole(operator, left, operation.operands[0].type)
        case Operator.ROUND:
            return _rounded(left, right)
        case Operator.CAST:
            return _cast(left, operation.operands[0].type, operation.type)
        case _:
            return _in_range(_arithmetic(operator, operation, left, right), operation.type)


def _arithmetic(operator: Operator, operation: Operation, left: Value, right: Value) -> Value:
    match operator:
        case Operator.ADD:
            return left + right
        case Operator.SUBTRACT:
            return left - right
        case Operator.MULTIPLY:
            return left * right
        case Operator.NEGATE:
            return -left
        case Operator.ABS:
            return abs(left)
    if right == 0:
        raise ConditionError("division by zero")
    match operator:
        case Operator.DIVIDE if pa.types.is_decimal(operation.type):
            dividend, divisor = (o.type for o in operation.operands)
            shift = operation.type.scale - dividend.scale + divisor.scale
            return _divide_half_up(left * 10**shift, right)
        case Operator.DIVIDE:
            return _divide(left, right)
        case Operator.INTEGER_DIVIDE:
            return _truncate(left, right)
        case Operator.REMAINDER if isinstance(left, float):
            return math.fmod(left, right) if math.isfinite(left) else math.nan
        case Operator.REMAINDER:
            return left - right * _truncate(left, right)
        case _:
            raise AssertionError(operator)


def _divide(left: float, right: float) -> float:
    return left / right


def _function(operator: Operator, value: float) -> float | None:
    """A function of one double; None (NULL) for the logarithm of 0 or less."""
    match operator:
        case Operator.SQRT:
            return math.sqrt(value) if not value < 0 else math.nan
        case Operator.EXP:
            try:
                return math.exp(value)
            except OverflowError:
                return math.inf
        case _ if value <= 0:
            return None
        case Operator.LN:
            return math.log(value)
    return math.log10(value)


def _power(base: float, exponent: float) -> float:
    """As in Java, which does not raise, and for which 1 to an infinite or unknown power is NaN."""
    if math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base != 0:
            return math.nan
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf


def _whole(operator: Operator, value: Value, type_: pa.DataType) -> int:
    """The next whole number below or above. As in Java, that of NaN is 0, and a BIGINT ends at its range."""
    if pa.types.is_decimal(type_):
        unit = 10**type_.scale
        return int(value // unit if operator is Operator.FLOOR else -(-value // unit))
    if math.isnan(value):
        return 0
    low, high = integer_range(pa.int64())
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.floor(value) if operator is Operator.FLOOR else math.ceil(value), low), high)


def _rounded(value: float, digits: int) -> float:
    """Rounded as the decimal that is shown for the double; halves away from zero."""
    if not math.isfinite(value):
        return value
    with localcontext(prec=400):
        return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)) + 0.0


def _truncate(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_half_up(left: int, right: int) -> int:
    """The quotient rounded to the nearest integer, halves away from zero."""
    quotient, remainder = divmod(abs(left), abs(right))
    rounded = quotient + (2 * remainder >= abs(right))
    return rounded if (left < 0) == (right < 0) else -rounded


def _cast(value: Value, source: pa.DataType, target: pa.DataType) -> Value:
    scale = source.scale if pa.types.is_decimal(source) else 0
    if pa.types.is_floating(target):
        return value / 10**scale if scale else float(value)
    shift = (target.scale if pa.types.is_decimal(target) else 0) - scale
    return _in_range(value * 10**shift if shift >= 0 else _divide_half_up(value, 10**-shift), target)


def _in_range(value: Value, type_: pa.DataType) -> Value:
    if isinstance(value, float):
        return value
    low, high = integer_range(type_)
    if not low <= value <= high:
        raise ConditionError(f"a result is out of the range of {type_}")
    return value


def _sort_key(value: Value) -> tuple[bool, Value]:
    """Spark's order: NaN equals itself and is greater than every number; -0.0 equals 0.0."""
    return (True, 0.0) if isinstance(value, float) and math.isnan(value) else (False, value)
