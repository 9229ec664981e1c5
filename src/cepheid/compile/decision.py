"""A condition as a decision: tests, each with the test that comes next if it holds, and the one that comes next if not.

The kernel asks of a condition only whether it is true. So AND, OR and NOT need no values: they decide which comparison
comes next. A test compares two operands, mostly a column of the event and one of an event taken before, without a
stack. `compile.script` writes tests as instructions, and `kernel.scripts.conditions` runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from cepheid.plan.conditions.script import ConstantValue, Operation, Operator, Script, can_fail

_FALSE = ConstantValue(value=False, type=pa.bool_())
_OPPOSITE = {Operator.LESS: Operator.LESS_OR_EQUAL, Operator.LESS_OR_EQUAL: Operator.LESS}


@dataclass(frozen=True, eq=False)
class Test:
    """A comparison of two operands. Neither can fail."""

    comparison: Operator
    """EQUAL, LESS, LESS_OR_EQUAL or NULL_SAFE_EQUAL."""
    left: Script
    right: Script
    held: Decision
    """What comes next if the comparison is true."""
    missed: Decision
    """What comes next if it is false or NULL."""
    differs: bool = False
    """Whether the test is that the operands are not equal, in place of EQUAL."""


Decision: TypeAlias = Test | bool
"""The test that comes next, or whether the condition is true."""


def decision_of(condition: Script) -> Test | None:
    """The first test of a condition. None if the condition can fail: whether it does depends on the order in which all
    its parts are evaluated.
    """
    if can_fail(condition):
        return None
    first = _decide(condition, wanted=True, held=True, missed=False)
    assert isinstance(first, Test), condition
    return first


def tests_of(first: Test) -> Iterator[Test]:
    """All tests, the first one first, each once."""
    seen, waiting = set[Test](), [first]
    while waiting:
        test = waiting.pop()
        if test not in seen:
            seen.add(test)
            yield test
            waiting += [each for each in (test.missed, test.held) if isinstance(each, Test)]


def _decide(script: Script, *, wanted: bool, held: Decision, missed: Decision) -> Decision:
    """What comes first, so that `held` follows if the script has the wanted value, and `missed` if it has the other one
    or is NULL.
    """
    if not isinstance(script, Operation):
        return Test(Operator.EQUAL, script, _FALSE, held, missed, differs=wanted)
    operator, operands = script.operator, script.operands
    if operator is Operator.NOT:
        return _decide(operands[0], wanted=not wanted, held=held, missed=missed)
    if operator in (Operator.AND, Operator.OR):
        needs_all = (operator is Operator.AND) is wanted
        for operand in reversed(operands):
            first = _decide(operand, wanted=wanted, held=held, missed=missed)
            held, missed = (first, missed) if needs_all else (held, first)
        return held if needs_all else missed
    if operator is Operator.EQUAL:
        return Test(operator, operands[0], operands[1], held, missed, differs=not wanted)
    if operator in _OPPOSITE:
        left, right = operands
        if wanted:
            return Test(operator, left, right, held, missed)
        return Test(_OPPOSITE[operator], right, left, held, missed)
    if operator in (Operator.IS_NULL, Operator.NULL_SAFE_EQUAL):  # these are never NULL
        left, right = operands if len(operands) > 1 else (operands[0], ConstantValue(None, operands[0].type))
        true, false = (held, missed) if wanted else (missed, held)
        return Test(Operator.NULL_SAFE_EQUAL, left, right, true, false)
    return Test(Operator.EQUAL, script, _FALSE, held, missed, differs=wanted)
