"""The fate of a start: an event that a partial match has taken first."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.stages.layout import FateCode


class Fate(StrEnum):
    """How a partial match has ended without a match. FateCode has the order in which they count."""

    FORBIDDEN = "forbidden"
    """By an event of a negated stage."""
    UNTIL = "until"
    """By the `until` of a loop that had too few events."""
    GAP = "gap"
    """The next event did not come within the longest gap after the one before."""
    OUT_OF_TIME = "out of time"
    """The window of the pattern, `within`, ended."""
    BROKEN = "broken"
    """By an event that did not fit, where contiguity is strict."""
    SKIPPED = "skipped"
    """The skip strategy dropped it, or its match, because of an earlier match."""
    OVER_LIMIT = "over a limit"
    STILL_OPEN = "still open"
    """It was still open when the events ended, or its match still waited for an earlier partial match."""

    @property
    def code(self) -> FateCode:
        return FateCode[self.name]


class End(NamedTuple):
    """How a partial match has ended."""

    fate: Fate
    reached: int
    """The last of the pattern's stages that has taken an event of it, by its number."""
    time: int
    """The time of the event or the deadline that has ended it; FOREVER if only the end of the events has."""
    event: int | None
    """The position of the event that has ended it; None for a deadline."""
    moment: int
    """Ends at a later event or deadline have a higher one: a deadline may pass before the events of its time or, where
    one of these has opened the partial match, after them.
    """
    by: int | None = None
    """The number of the condition of the negated stage, or of the `until`."""

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """The end with the highest rank is that of the furthest partial match; the later one of equally far ones."""
        return self.reached, self.moment, -self.fate.code, 1 if self.by is None else -self.by


class Start(NamedTuple):
    """What became of an event that a partial match has taken first."""

    position: int
    """The number of the event among the events that the kernel was given."""
    stages: frozenset[int]
    """The stages that have taken an event of a partial match with this start."""
    end: End | None
    """The end of the furthest partial match; None: there is a match with this start."""


class OpenStart:
    """A start that is being observed."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._stages = set[int]()
        self.matched = False
        self._end: End | None = None

    def take(self, stage: int) -> None:
        self._stages.add(stage)

    def end(self, end: End) -> None:
        """Records the end of one of its partial matches."""
        if self._end is None or end.rank > self._end.rank:
            self._end = end

    def closed(self) -> Start:
        """What became of it, once all of its partial matches have ended."""
        assert self.matched or self._end is not None, f"start {self.position} has no fate"
        return Start(self.position, frozenset(self._stages), None if self.matched else self._end)


def at_the_end(reached: int) -> End:
    """The end of a partial match that is still open when the events end."""
    return End(Fate.STILL_OPEN, reached, FOREVER, event=None, moment=FOREVER)
