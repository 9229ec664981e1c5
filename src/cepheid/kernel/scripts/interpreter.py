"""Runs scripts: a stack machine over 64-bit values, compiled. `kernel.scripts.reference.evaluate` is its definition."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.instructions import Op
from cepheid.kernel.arrays import Flags, Stack
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.functions import apply_function, divide_half_up, nearest_double, power

NO_FAILURE, OUT_OF_RANGE, DIVISION_BY_ZERO, CAST_FAILED = range(4)

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Scripts(Protocol):
    """The scripts of a pattern, as in `compile.stages.tables` and the tables of the other kinds."""

    @property
    def scripts(self) -> Records: ...
    @property
    def code(self) -> Records: ...
    @property
    def constants(self) -> Ints: ...


class Lifted(Protocol):
    """What scripts read from events, as in `kernel.arrays`."""

    @property
    def values(self) -> Ints: ...
    @property
    def missing(self) -> Flags: ...


class Slots(Protocol):
    """What scripts read from partial matches."""

    @property
    def slots(self) -> Ints: ...


@inlined
def run_code(
    tables: Scripts, events: Lifted, partials: Slots, row: int, event: int, start: int, end: int, stack: Stack
) -> int:
    """Runs the instructions from `start` to `end` for a partial match and an event: see `evaluate`."""
    failure: int = evaluate(
        tables.code,
        tables.constants,
        events.values,
        events.missing,
        partials.slots,
        row,
        event,
        start,
        end,
        stack.values,
        stack.null,
    )
    return failure


@kernel
def evaluate(
    code: Records,
    constants: Ints,
    values: Ints,
    missing: Flags,
    slots_of_rows: Ints,
    row: int,
    event: int,
    at: int,
    end: int,
    stack: Ints,
    null: Flags,
) -> int:
    """Runs the instructions from `at` to `end` and returns what made them fail. Their value is then stack[0], or NULL
    if null[0] is set. The arrays are passed one by one, because each takes time to pass.
    """
    doubles = stack.view(np.float64)
    slots = slots_of_rows[row]
    top = -1
    failure = NO_FAILURE
    while at < end:
        op, a, b = code[at].op, code[at].a, code[at].b
        at += 1
        if op == Op.CURRENT:
            top += 1
            stack[top], null[top] = values[a, event], missing[a, event]
        elif op == Op.AT_EVENT:
            top += 1
            position = slots[a]
            null[top] = position < 0 or missing[b, position]
            stack[top] = 0 if null[top] else values[b, position]
        elif op == Op.CONSTANT:
            top += 1
            stack[top], null[top] = constants[a], b != 0
        elif op == Op.COUNT:
            top += 1
            stack[top], null[top] = slots[a], False
        elif op == Op.CHECK_SUM:
            if slots[a] != 0:
                failure = OUT_OF_RANGE
        elif op == Op.SUM:
            top += 1
            stack[top], null[top] = slots[a], slots[b] == 0
        elif op == Op.AVERAGE_F:
            top += 1
            null[top] = slots[b] == 0
            stack[top] = slots[a]
            if not null[top]:
                doubles[top] = doubles[top] / slots[b]
        elif op == Op.SAMPLE_VARIANCE or op == Op.POPULATION_VARIANCE:
            top += 1
            divisor = slots[b] - (op == Op.SAMPLE_VARIANCE)
            null[top] = divisor <= 0
            stack[top] = slots[a]
            if not null[top]:
                doubles[top] = doubles[top] / divisor
        elif op == Op.AVERAGE_DECIMAL:
            top += 1
            null[top] = slots[b] == 0
            stack[top] = 0 if null[top] else average_decimal(slots[a], slots[b])
        elif op == Op.JUMP:
            at = a
        elif op == Op.JUMP_IF_FALSE:
            if not null[top] and stack[top] == 0:
                at = a
        elif op == Op.JUMP_IF_TRUE:
            if not null[top] and stack[top] != 0:
                at = a
        elif op == Op.JUMP_IF_PRESENT:
            if not null[top]:
                at = a
        elif op == Op.JUMP_IF_NULL:
            if null[top]:
                at = a
        elif op == Op.SWAP:
            stack[top - 1], stack[top] = stack[top], stack[top - 1]
            null[top - 1], null[top] = null[top], null[top - 1]
        elif op == Op.JUMP_UNLESS_TRUE:
            if null[top] or stack[top] == 0:
                at = a
            top -= 1
        elif op == Op.POP:
            top -= 1
        elif op == Op.FAIL_IF:
            if not null[top] and stack[top] != 0:
                failure = CAST_FAILED
            top -= 1
        elif op == Op.NOT:
            stack[top] = 1 - stack[top]
        elif op == Op.IS_NULL:
            stack[top], null[top] = np.int64(null[top]), False
        elif op == Op.AND or op == Op.OR:
            top -= 1
            connect(op, top, stack, null)
        elif op == Op.SAME_I or op == Op.SAME_F:
            top -= 1
            if null[top] or null[top + 1]:
                same = null[top] and null[top + 1]
            elif op == Op.SAME_I:
                same = stack[top] == stack[top + 1]
            else:
                same = compare_doubles(doubles[top], doubles[top + 1]) == 0
            stack[top], null[top] = np.int64(same), False
        elif op in (Op.LEAST_I, Op.GREATEST_I, Op.LEAST_F, Op.GREATEST_F):
            top -= 1
            choose(op, top, stack, null)
        elif op in (Op.NEGATE_I, Op.ABS_I, Op.SCALE_UP, Op.SCALE_DOWN, Op.TO_DOUBLE, Op.NEGATE_F, Op.ABS_F):
            if not null[top]:
                failure = convert(op, a, b, top, stack, constants)
        elif op >= Op.SQRT_F:
            if not null[top]:
                null[top] = apply_function(op, a, top, stack, constants)
        else:
            top -= 1
            null[top] = null[top] or null[top + 1]
            if not null[top]:
                if op < Op.ADD_F:
                    failure = integer_arithmetic(op, a, b, top, stack, constants)
                elif op < Op.EQUAL_I:
                    failure = double_arithmetic(op, top, stack)
                else:
                    compare(op, top, stack)
        if failure != NO_FAILURE:
            return failure
    return NO_FAILURE


@kernel
def connect(op: int, top: int, stack: Ints, null: Flags) -> None:
    """Three-valued AND and OR. A false value alone decides AND, and a true value alone decides OR."""
    decisive = 0 if op == Op.AND else 1
    left = not null[top] and stack[top] == decisive
    right = not null[top + 1] and stack[top + 1] == decisive
    unknown = not left and not right and (null[top] or null[top + 1])
    stack[top] = decisive if left or right else 1 - decisive
    null[top] = unknown


@kernel
def compare_doubles(left: float, right: float) -> int:
    """-1, 0 or 1 in Spark's order: NaN equals itself and is greater than every number."""
    if math.isnan(left) or math.isnan(right):
        return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)


@kernel
def compare(op: int, top: int, stack: Ints) -> None:
    if op >= Op.EQUAL_F:
        doubles = stack.view(np.float64)
        order = compare_doubles(doubles[top], doubles[top + 1])
    else:
        order = int(stack[top] > stack[top + 1]) - int(stack[top] < stack[top + 1])
    if op == Op.EQUAL_I or op == Op.EQUAL_F:
        stack[top] = order == 0
    elif op == Op.LESS_I or op == Op.LESS_F:
        stack[top] = order < 0
    else:
        stack[top] = order <= 0


@kernel
def choose(op: int, top: int, stack: Ints, null: Flags) -> None:
    """LEAST and GREATEST of two values. NULLs are ignored, and of equal values the first is returned."""
    if null[top + 1]:
        return
    if op == Op.LEAST_F or op == Op.GREATEST_F:
        doubles = stack.view(np.float64)
        order = compare_doubles(doubles[top + 1], doubles[top])
    else:
        order = int(stack[top + 1] > stack[top]) - int(stack[top + 1] < stack[top])
    wanted = -1 if op == Op.LEAST_I or op == Op.LEAST_F else 1
    if null[top] or order == wanted:
        stack[top], null[top] = stack[top + 1], False


@kernel
def convert(op: int, a: int, b: int, top: int, stack: Ints, constants: Ints) -> int:
    """Operations on one value."""
    doubles = stack.view(np.float64)
    value = stack[top]
    if op == Op.NEGATE_F:
        doubles[top] = -doubles[top]
        return NO_FAILURE
    if op == Op.ABS_F:
        doubles[top] = abs(doubles[top])
        return NO_FAILURE
    if op == Op.TO_DOUBLE:
        doubles[top] = nearest_double(value, constants[a])
        return NO_FAILURE
    overflow = False
    if op == Op.NEGATE_I or (op == Op.ABS_I and value < 0):
        overflow = value == _LEAST
        value = -value
    elif op == Op.SCALE_UP:
        overflow = product_overflows(value, constants[b])
        value *= constants[b]
    elif op == Op.SCALE_DOWN:
        value = divide_half_up(value, constants[b])
    return checked(value, overflow, a, top, stack, constants)


@kernel
def integer_arithmetic(op: int, a: int, b: int, top: int, stack: Ints, constants: Ints) -> int:
    """Operations on two integers, checked against the range at constants[a]."""
    left, right = stack[top], stack[top + 1]
    overflow = False
    if op == Op.ADD_I:
        overflow = sum_overflows(left, right)
        value = left + right
    elif op == Op.SUBTRACT_I:
        overflow = left < _LEAST + right if right > 0 else left > _GREATEST + right
        value = left - right
    elif op == Op.MULTIPLY_I:
        value = left * right
        overflow = product_overflows(left, right)
    elif right == 0:
        return DIVISION_BY_ZERO
    elif op == Op.DIVIDE_DECIMAL:
        overflow = product_overflows(left, constants[b])
        value = divide_half_up(left * constants[b], right)
    elif right == -1:
        overflow = op == Op.INTEGER_DIVIDE and left == _LEAST
        value = -left if op == Op.INTEGER_DIVIDE else 0
    elif op == Op.INTEGER_DIVIDE:
        value = truncated_quotient(left, right)
    else:
        value = left - right * truncated_quotient(left, right)
    return checked(value, overflow, a, top, stack, constants)


@kernel
def checked(value: int, overflow: bool, a: int, top: int, stack: Ints, constants: Ints) -> int:
    if overflow or value < constants[a] or value > constants[a + 1]:
        return OUT_OF_RANGE
    stack[top] = value
    return NO_FAILURE


@kernel
def double_arithmetic(op: int, top: int, stack: Ints) -> int:
    doubles = stack.view(np.float64)
    left, right = doubles[top], doubles[top + 1]
    if op == Op.ADD_F:
        doubles[top] = left + right
    elif op == Op.SUBTRACT_F:
        doubles[top] = left - right
    elif op == Op.MULTIPLY_F:
        doubles[top] = left * right
    elif op == Op.POWER_F:
        doubles[top] = power(left, right)
    elif right == 0.0:
        return DIVISION_BY_ZERO
    elif op == Op.DIVIDE_F:
        doubles[top] = left / right
    elif math.isinf(left):
        doubles[top] = math.nan
    else:
        doubles[top] = np.fmod(left, right)
    return NO_FAILURE


# Overflow is detected before the operation, not from its wrapped result: LLVM assumes that signed products do not wrap,
# and folds (a * b) / b == a to true.
@kernel
def sum_overflows(left: int, right: int) -> bool:
    return left > _GREATEST - right if right > 0 else left < _LEAST - right


@kernel
def product_overflows(left: int, right: int) -> bool:
    if left == 0:
        return False
    most = np.uint64(_GREATEST) if (left < 0) == (right < 0) else np.uint64(_GREATEST) + np.uint64(1)
    return bool(magnitude(right) > most // magnitude(left))


@kernel
def magnitude(value: int) -> np.uint64:
    return np.uint64(value) if value >= 0 else np.uint64(-(value + 1)) + np.uint64(1)


@kernel
def truncated_quotient(left: int, right: int) -> int:
    """Rounded towards zero; `right` is neither 0 nor -1."""
    quotient = left // right
    if quotient < 0 and quotient * right != left:
        quotient += 1
    return quotient


@kernel
def average_decimal(total: int, count: int) -> int:
    """The average with four more digits, rounded half up; split so that nothing exceeds 64 bits."""
    quotient, remainder = abs(total) // count, abs(total) % count
    average = quotient * 10_000 + divide_half_up(remainder * 10_000, count)
    return average if total >= 0 else -average
