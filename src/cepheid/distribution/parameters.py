"""Parameters: which object a time belongs to."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple


class Timeframe(NamedTuple):
    """The minutes `first` to `last`, both included, belong to the object `id`."""

    first: int
    last: int
    id: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """Timeframes within each hour, or within each `cycle` of that many minutes, in their order, without overlaps. Parts
    of a minute belong to it.
    """

    name: str
    frames: tuple[Timeframe, ...]
    cycle: int = 60

    def id_at(self, time: float) -> str:
        """The object of this event time, in seconds.

        Raises:
            LookupError: no timeframe includes it.
        """
        minute = int(time // 60) % self.cycle
        at = bisect_right(self.frames, minute, key=lambda frame: frame.first) - 1
        if at >= 0 and minute <= self.frames[at].last:
            return self.frames[at].id
        known = ", ".join(f"{frame.first}-{frame.last}" for frame in self.frames)
        raise LookupError(f"{self.name} has no timeframe for minute {minute}: it has {known}")
