"""How the compiled kernels fail: conditions, limits, skip strategies."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.kernel.scripts.interpreter import CAST_FAILED, DIVISION_BY_ZERO, OUT_OF_RANGE

FAILURES = {
    OUT_OF_RANGE: "a result is out of the range of its type",
    DIVISION_BY_ZERO: "division by zero",
    CAST_FAILED: "a value cannot be cast",
}


class ConditionFailed(Exception):
    """A script failed on the event at `event`; `script` is its number."""

    def __init__(self, event: int, script: int, reason: str) -> None:
        super().__init__(reason)
        self.event = event
        self.script = script
        self.reason = reason


class JointConditionFailed(Exception):
    """A condition over variables failed; `bound` has, by number, the positions of the first and the last event that
    each stands for.
    """

    def __init__(self, condition: str, reason: str, bound: Mapping[int, tuple[int, int]]) -> None:
        super().__init__(reason)
        self.condition = condition
        self.reason = reason
        self.bound = bound


class PassedLimit(Exception):
    """A key has too many partial matches, or a step too many matches; `event` is one of the key's."""

    def __init__(self, event: int, limit: str) -> None:
        super().__init__(limit)
        self.event = event
        self.limit = limit
