"""The instructions of compiled scripts, and the kinds of slots that they read. `compile.script` emits them."""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """Instructions. _I works on integers, _F on doubles; `a` and `b` are the instruction's arguments."""

    CONSTANT = 0
    """Push constants[a], or NULL if b is not 0."""
    CURRENT = 1
    """Push column a of the current event."""
    AT_EVENT = 2
    """Push column b of the event in slot a."""
    COUNT = 3
    """Push slot a."""
    SUM = 4
    """Push slot a, or NULL if the count in slot b is 0."""
    CHECK_SUM = 7
    """Fail if the sum that belongs to carry slot a no longer fits 64 bits."""
    SAMPLE_VARIANCE = 8
    """Push the sum in slot a divided by one less than the count in slot b; NULL if the divisor is not positive."""
    POPULATION_VARIANCE = 9
    """The same, divided by the count itself."""
    AVERAGE_F = 5
    AVERAGE_DECIMAL = 6
    ADD_I = 10
    """Integer results are checked against the range constants[a] … constants[a + 1]."""
    SUBTRACT_I = 11
    MULTIPLY_I = 12
    DIVIDE_DECIMAL = 13
    """The dividend is multiplied by constants[b] first; the result is rounded half up."""
    INTEGER_DIVIDE = 14
    REMAINDER_I = 15
    NEGATE_I = 16
    ABS_I = 17
    SCALE_UP = 18
    """Multiply by constants[b]."""
    SCALE_DOWN = 19
    """Divide by constants[b], rounded half up."""
    TO_DOUBLE = 20
    """Divide by constants[a] as doubles."""
    ADD_F = 21
    SUBTRACT_F = 22
    MULTIPLY_F = 23
    DIVIDE_F = 24
    REMAINDER_F = 25
    POWER_F = 28
    NEGATE_F = 26
    ABS_F = 27
    EQUAL_I = 30
    LESS_I = 31
    LESS_OR_EQUAL_I = 32
    SAME_I = 33
    LEAST_I = 34
    GREATEST_I = 35
    EQUAL_F = 36
    LESS_F = 37
    LESS_OR_EQUAL_F = 38
    SAME_F = 39
    LEAST_F = 40
    GREATEST_F = 41
    NOT = 50
    IS_NULL = 51
    AND = 52
    OR = 53
    POP = 54
    JUMP = 55
    """Continue at instruction a."""
    JUMP_IF_FALSE = 56
    """The value stays on the stack."""
    JUMP_IF_TRUE = 57
    JUMP_IF_PRESENT = 58
    JUMP_UNLESS_TRUE = 59
    """The value is taken off the stack."""
    FAIL_IF = 60
    """Take a value off the stack and fail if it is true."""
    JUMP_IF_NULL = 61
    """The value stays on the stack."""
    SWAP = 62
    """Exchange the two values on top."""
    SQRT_F = 64
    """From here on: functions of one value, which may be NULL for a value."""
    EXP_F = 65
    LN_F = 66
    LOG10_F = 67
    ROUND_F = 68
    """To a multiple of 1 / constants[a]."""
    FLOOR_F = 69
    """The whole number as an integer."""
    CEIL_F = 70
    FLOOR_I = 71
    """The value in units of constants[a], without a fraction."""
    CEIL_I = 72
    TEST_EQUAL_I = 80
    """From here on: tests, see `compile.decision`. The next two instructions are their operands. If the test holds, the
    test at a comes next, else the one at b; TRUE and UNTRUE end the decision.
    """
    TEST_DIFFERENT_I = 81
    TEST_LESS_I = 82
    TEST_LESS_OR_EQUAL_I = 83
    TEST_SAME_I = 84
    TEST_EQUAL_F = 85
    TEST_DIFFERENT_F = 86
    TEST_LESS_F = 87
    TEST_LESS_OR_EQUAL_F = 88
    TEST_SAME_F = 89
    COMPUTED = 90
    """As an operand: the value of the instructions from a to before b."""


TRUE, UNTRUE = -1, -2
"""In place of the next test: whether the condition is true."""

OPERANDS = (Op.CURRENT, Op.AT_EVENT, Op.CONSTANT, Op.COUNT, Op.AVERAGE_F)
"""The instructions that a test has as operands. Other values are COMPUTED."""


class SlotKind(IntEnum):
    """How a slot changes when its stage takes an event."""

    LAST = 0
    """The event taken; with `back` above 0, the event that the slot with `back` - 1 held before."""
    FIRST = 1
    """The event taken, if the slot is empty and, with `back` above 0, the slot with `back` - 1 is not."""
    COUNT = 2
    DISTINCT_I = 3
    """The number of different values among the events of the stage."""
    DISTINCT_F = 4
    CARRY = 10
    """How often the sum in the source slot has wrapped around, upwards minus downwards. Updated before the sum."""
    DEVIATIONS = 11
    """The sum of the squared deviations from the mean, after Welford. Updated before the mean, and after the count."""
    MEAN = 12
    SUM_I = 13
    SUM_F = 14
    SUM_I_AS_F = 15
    """A sum of integers as doubles, which avg needs."""
    LEAST_I = 16
    LEAST_F = 17
    GREATEST_I = 18
    GREATEST_F = 19

    @property
    def accumulates(self) -> bool:
        """Whether the slot holds a number. The others hold the position of an event, or -1 for none."""
        return SlotKind.COUNT <= self <= SlotKind.SUM_I_AS_F
