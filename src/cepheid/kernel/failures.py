"""How kernels fail: a condition fails, or a limit is exceeded."""

from __future__ import annotations

from collections.abc import Mapping


class ConditionFailed(Exception):
    """The script of number `script` failed on the event at position `event`."""

    def __init__(self, event: int, script: int, reason: str) -> None:
        super().__init__(reason)
        self.event = event
        self.script = script
        self.reason = reason


class JointConditionFailed(Exception):
    """A condition over variables failed. `bound` maps the number of each variable to the positions of the first and the
    last event of its value.
    """

    def __init__(self, condition: str, reason: str, bound: Mapping[int, tuple[int, int]]) -> None:
        super().__init__(reason)
        self.condition = condition
        self.reason = reason
        self.bound = bound


class PassedLimit(Exception):
    """A key has too many partial matches, or a step completes too many matches. `event` is the position of an event of
    the key.
    """

    def __init__(self, event: int, limit: str) -> None:
        super().__init__(limit)
        self.event = event
        self.limit = limit
