"""When rows of open partial matches may expire, so that a step without any need not ask the store."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from cepheid.kernel.arrays import FOREVER, NO_TIME

_MOST = 1000


class Wakeups:
    """The times at which rows of a table expire, as ranges: rows that were written together have one."""

    def __init__(self, reaches: int | None) -> None:
        """A row expires at most `reaches` microseconds after it was written; None: that is not known. At first there
        may be rows of any time.
        """
        self._reaches = reaches
        self._ranges: list[tuple[int, int]] = [(NO_TIME, FOREVER)]

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
            if first == NO_TIME and self._reaches is not None:
                last = time + self._reaches
            if last > time:
                heappush(self._ranges, (time + 1, last))
        return True
