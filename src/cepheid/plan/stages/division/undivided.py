"""The answer of each way to divide a key that does not fit a pattern."""

from __future__ import annotations

from typing import NamedTuple

from cepheid.lang.stages.pattern import SkipTo

SKIP_NAMES = {
    SkipTo.NEXT: "SKIP_TO_NEXT",
    SkipTo.PAST_LAST_EVENT: "SKIP_PAST_LAST_EVENT",
    SkipTo.FIRST: "SKIP_TO_FIRST",
    SkipTo.LAST: "SKIP_TO_LAST",
}
"""FlinkCEP's names of the skip strategies. With each of them a match waits for those that started earlier."""


class Undivided(NamedTuple):
    """A key cannot be divided in this way."""

    reasons: tuple[str, ...]
    """What forbids it, one clause of the pattern or option of the call each, as "its skip strategy lets …"."""

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)
