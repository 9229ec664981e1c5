"""What a row is: it opens an event, closes one, is a whole event, or is late. This is decided row by row, as every row
moves the clock by its own time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from cepheid.errors import EventError
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.lang.consistency import End

_MOST_CLOSED = 1 << 15
"""Up to this many closed events, no search is made for those that no row in time can repeat."""


class RowKind(IntEnum):
    LATE = 0
    OPENS = 1
    CLOSES = 2
    WHOLE = 3
    EXPIRES = 4
    """No row: an event has been open for too long."""


class Step(NamedTuple):
    """A row, or the end of an event that was open for too long."""

    kind: RowKind
    row: int
    """Its number among the given rows; -1 for EXPIRES."""
    name: bytes
    """The event's id."""
    clock: int
    """The clock after it."""
    is_last: bool = True
    """Whether it is the last step of its row: what is certain then is emitted."""


class GivenRow(NamedTuple):
    name: bytes | None
    start: int | None
    end: int | None
    has_key: bool = True


class RowReader:
    """Decides for each row what it is. Its state is the clock, and the ids of events that later rows may have."""

    def __init__(
        self,
        delay: int | None,
        lateness: End,
        open_for: int | None,
        *,
        drops: bool,
        is_held: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        """`delay` and `open_for` are in microseconds; None: no bound. With `drops`, rows and events that cannot be used
        are counted, otherwise they are an error. `is_held` says whether the event with this id is still needed, as the
        calls before have left it: its id cannot be used again.
        """
        self._delay, self._lateness, self._open_for, self._drops = delay, lateness, open_for, drops
        self.clock = BEGINNING
        self.opened: dict[bytes, int] = {}
        """The start of each open event."""
        self.closed: dict[bytes, int] = {}
        """The end of each event that is not open any more; only those that a row in time may repeat."""
        self.counts = {"null_keys": 0, "null_times": 0, "reversed": 0, "repeated": 0, "unclosed": 0}
        self._starts: list[tuple[int, bytes]] = []
        """With `open_for`: the open events as a heap, and some that were open."""
        self._is_held = is_held
        self._held_now: dict[bytes, bool] = {}
        """For ids of closed events that this call has looked up, whether the events are still needed."""
        self._most_closed = _MOST_CLOSED

    @property
    def horizon(self) -> int:
        """Rows before this time are late."""
        if self.clock == FOREVER:
            return FOREVER
        return BEGINNING if self._delay is None or self.clock == BEGINNING else self.clock - self._delay

    def steps(self, rows: Sequence[GivenRow]) -> list[Step]:
        """What the rows of one call are, in the order of their own times.

        Raises:
            EventError: a row cannot be used, or an event is open for too long.
        """
        self._held_now = {}
        order = sorted(range(len(rows)), key=lambda number: _place(rows[number]))
        found: list[Step] = []
        for number in order:
            if (step := self._step(number, rows[number])) is not None:
                found += (one._replace(is_last=False) for one in self._expired())
                found.append(step)
        if len(self.closed) > self._most_closed:
            self._forget_closed()
        return found

    def advance(self, time: int) -> list[Step]:
        """Moves the clock."""
        self.clock = max(self.clock, time)
        return self._expired()

    def finish(self) -> list[Step]:
        """All events that are still open end without a row. They are counted, and no error."""
        found = [Step(RowKind.EXPIRES, -1, name, self.clock) for name in self.opened]
        self.counts["unclosed"] += len(found)
        self.opened.clear()
        self.clock = FOREVER
        return found

    def restore(self, clock: int, opened: dict[bytes, int], closed: dict[bytes, int]) -> None:
        self.clock, self.opened, self.closed = clock, opened, closed
        if self._open_for is not None:
            self._starts = sorted((start, name) for name, start in opened.items())

    def _step(self, number: int, row: GivenRow) -> Step | None:
        name, start, end, has_key = row
        if name is None:
            return self._unusable("repeated", "a row has no id")
        if start is None and end is None:
            return self._unusable("null_times", "a row has neither start nor end")
        if name in self.opened and end is not None:
            return self._closed(number, name, end)
        if not has_key:
            return self._unusable("null_keys", "a row has no key")
        if start is None:
            return self._unusable("repeated", "a row with an end and no start closes an event that is not open")
        if name in self.opened or self._is_used(name):
            return self._unusable("repeated", "a row has the id of an event that is there already")
        if end is not None and end < start:
            return self._unusable("reversed", "an event ends before it starts")
        if self._is_late(end if end is not None and self._lateness is End.END else start):
            return Step(RowKind.LATE, number, name, self.clock)
        self.clock = max(self.clock, start if end is None else end)
        if end is None:
            self.opened[name] = start
            if self._open_for is not None:
                heappush(self._starts, (start, name))
            return Step(RowKind.OPENS, number, name, self.clock)
        self.closed[name], self._held_now[name] = end, True
        return Step(RowKind.WHOLE, number, name, self.clock)

    def _closed(self, number: int, name: bytes, end: int) -> Step | None:
        if end < self.opened[name]:
            return self._unusable("reversed", "a row closes an event before its start")
        if self._is_late(end):
            return Step(RowKind.LATE, number, name, self.clock)
        self.clock = max(self.clock, end)
        start = self.opened.pop(name)
        self.closed[name], self._held_now[name] = end, True
        if self._open_for is not None and end - start > self._open_for:
            return self._expire(name)
        return Step(RowKind.CLOSES, number, name, self.clock)

    def _expired(self) -> list[Step]:
        """The events that no row in time can close within `open_for`."""
        found = []
        while self._open_for is not None and self._starts and self._starts[0][0] + self._open_for < self.horizon:
            _, name = heappop(self._starts)
            if name in self.opened:
                del self.opened[name]
                found.append(self._expire(name))
        return found

    def _is_used(self, name: bytes) -> bool:
        """Whether an event that is not open any more has this id, which a row in time may repeat, or which is needed.
        The answer does not depend on which closed events have been forgotten.
        """
        end = self.closed.get(name)
        if end is not None and end >= self.horizon:
            return True
        held = self._held_now.get(name)
        return self._is_held(name) if held is None else held

    def _expire(self, name: bytes) -> Step:
        self._held_now[name] = False
        self._unusable("unclosed", "an event is open for longer than open_for")
        return Step(RowKind.EXPIRES, -1, name, self.clock)

    def _unusable(self, count: str, what: str) -> Step | None:
        if not self._drops:
            raise EventError(f"{what}. Drop such rows before, or with nulls='drop', which counts them")
        self.counts[count] += 1
        return None

    def _is_late(self, time: int) -> bool:
        return time < self.horizon

    def _forget_closed(self) -> None:
        horizon = self.horizon
        self.closed = {name: end for name, end in self.closed.items() if end >= horizon}
        self._most_closed = max(_MOST_CLOSED, 2 * len(self.closed))


def _place(row: GivenRow) -> tuple[int, bool, int, bytes]:
    """The row's own time; at the same time, openings come first."""
    own = row.end if row.end is not None else row.start
    return (own or 0, row.end is not None, row.start or 0, row.name or b"")
