"""When rows of open partial matches may expire, so that a step without any need not ask the store."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from cepheid.kernel.arrays import FOREVER, NO_TIME

_MOST = 1000
_OF_BEFORE = NO_TIME
"""The beginning of the range of rows that an earlier process has written."""


class Wakeups:
    """The times at which rows of a table expire, as ranges. There is one range for the rows of each step."""

    def __init__(self, window: int | None) -> None:
        """A row expires at most `window` microseconds after it was written; None: that is not known. At first there may
        be rows that an earlier process has written, whose times are not known.
        """
        self._window = window
        self._ranges: list[tuple[int, int]] = [(_OF_BEFORE, FOREVER)]

    def forget(self) -> None:
        """There are no rows."""
        self._ranges = []

    def add(self, times: Iterable[int | None]) -> None:
        """Rows with these times are written; None: the row does not expire."""
        known = [time for time in times if time is not None]
        if known:
            heappush(self._ranges, (min(known), max(known)))
        if len(self._ranges) > _MOST:
            self._ranges = [(self._ranges[0][0], max(last for _, last in self._ranges))]

    def expire(self, time: int) -> bool:
        """Whether rows may have expired at `time` (microseconds). They count as removed from now on."""
        if not self._ranges or self._ranges[0][0] > time:
            return False
        while self._ranges and self._ranges[0][0] <= time:
            first, last = heappop(self._ranges)
            if first == _OF_BEFORE and self._window is not None:
                last = time + self._window
            if last > time:
                heappush(self._ranges, (time + 1, last))
        return True
