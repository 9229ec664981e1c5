"""Whether conditions are true, compiled: runs the tests of a decision, and the scripts of other conditions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cepheid.compile.instructions import TRUE, Op
from cepheid.kernel.arrays import Stack
from cepheid.kernel.jit import inlined
from cepheid.kernel.scripts.interpreter import NO_FAILURE, Lifted, Scripts, Slots, run_code


@inlined
def run_script(
    tables: Scripts, events: Lifted, partials: Slots, row: int, event: int, script: int, stack: Stack
) -> tuple[bool, int]:
    """Whether a condition is true (not false, not NULL) for a partial match and an event, and what made it fail."""
    entry = tables.scripts[script]
    if tables.code[entry.start].op >= Op.TEST_EQUAL_I:
        return decide(tables, events, partials, row, event, entry.start, stack), NO_FAILURE
    failure = run_code(tables, events, partials, row, event, entry.start, entry.end, stack)
    return failure == NO_FAILURE and not stack.null[0] and stack.values[0] != 0, failure


@inlined
def decide(tables: Scripts, events: Lifted, partials: Slots, row: int, event: int, at: int, stack: Stack) -> bool:
    """Runs tests. The instruction `at` is the first."""
    while at >= 0:
        test = tables.code[at]
        left, no_left = operand(tables, events, partials, row, event, at + 1, stack)
        right, no_right = operand(tables, events, partials, row, event, at + 2, stack)
        at = test.a if holds(test.op, left, no_left, right, no_right) else test.b
    return at == TRUE


@inlined
def operand(
    tables: Scripts, events: Lifted, partials: Slots, row: int, event: int, at: int, stack: Stack
) -> tuple[int, bool]:
    """An operand of a test, and whether it is NULL. The value is then anything."""
    instruction = tables.code[at]
    op, a, b = instruction.op, instruction.a, instruction.b
    if op == Op.CURRENT:
        return events.values[a, event], events.missing[a, event]
    if op == Op.AT_EVENT:
        position = partials.slots[row, a]
        if position < 0:
            return position, True
        return events.values[b, position], events.missing[b, position]
    if op == Op.CONSTANT:
        return tables.constants[a], b != 0
    if op == Op.COUNT:
        return partials.slots[row, a], False
    if op == Op.AVERAGE_F:
        count, total = partials.slots[row, b], partials.slots[row, a]
        if count == 0:
            return total, True
        average: Any = np.float64(np.int64(total).view(np.float64) / count)
        return average.view(np.int64), False
    run_code(tables, events, partials, row, event, a, b, stack)
    return stack.values[0], stack.null[0]


@inlined
def holds(op: int, left: int, no_left: bool, right: int, no_right: bool) -> bool:
    """Whether a test holds for its operands, which are NULL if `no_left` or `no_right` is set."""
    if no_left or no_right:
        return no_left and no_right and (op == Op.TEST_SAME_I or op == Op.TEST_SAME_F)
    if op == Op.TEST_LESS_I:
        return left < right
    if op == Op.TEST_LESS_OR_EQUAL_I:
        return left <= right
    if op < Op.TEST_EQUAL_F:
        return (left != right) == (op == Op.TEST_DIFFERENT_I)
    one, other = np.int64(left).view(np.float64), np.int64(right).view(np.float64)
    if op == Op.TEST_LESS_F:
        return is_less(one, other)
    if op == Op.TEST_LESS_OR_EQUAL_F:
        return not is_less(other, one)
    return (is_less(one, other) or is_less(other, one)) == (op == Op.TEST_DIFFERENT_F)


@inlined
def is_less(left: float, right: float) -> bool:
    """In Spark's order: NaN is greater than every number."""
    return left < right or (math.isnan(right) and not math.isnan(left))
