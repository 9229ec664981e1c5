"""Counts of starts by what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from cepheid.kernel.stages.observed.fates import Fate, Start


class Stop(NamedTuple):
    """What became of a start without a match."""

    reached: int
    """The last of the pattern's stages that has taken an event, by its number."""
    fate: Fate
    by: int | None
    """The number of the condition of the negated stage, or of the `until`."""


@dataclass
class Tally:
    """How many starts matched, how many reached each stage, and how many were stopped by what."""

    matched: int = 0
    reached: Counter[int] = field(default_factory=Counter)
    """By the number of the stage."""
    stopped: Counter[Stop] = field(default_factory=Counter)

    @property
    def starts(self) -> int:
        return self.matched + self.stopped.total()

    def add(self, other: Tally) -> None:
        """Adds the counts of other starts."""
        self.matched += other.matched
        self.reached.update(other.reached)
        self.stopped.update(other.stopped)


def tally_of(starts: Iterable[Start]) -> Tally:
    """The counts of these starts."""
    tally = Tally()
    for start in starts:
        tally.reached.update(start.stages)
        if start.end is None:
            tally.matched += 1
        else:
            tally.stopped[Stop(start.end.reached, start.end.fate, start.end.by)] += 1
    return tally
