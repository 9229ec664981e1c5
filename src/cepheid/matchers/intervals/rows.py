"""What a row is: it opens an event, closes one, is a whole event, revises or withdraws one, or is late. This is decided
row by row, as every row moves the clock by its own time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.lang.consistency import End

_MOST_CLOSED = 1 << 15
"""Up to this many closed events, no search is made for those that no row in time can repeat or revise."""
_LEAVE_OUT = "Leave such rows out, or give nulls='drop', which drops and counts them"
_TOO_LONG = (
    "Close it with a row of its id, or give a longer open_for, or nulls='drop', which drops and counts such events"
)


class UnusableRow(Exception):
    """A row, or an event, cannot be used. `what` says why, after the name of the row or of the event."""

    def __init__(self, what: str, number: int | None, name: bytes | None, advice: str) -> None:
        """The number is that of the row among the given ones; None: the event with the id `name` is meant."""
        super().__init__(what)
        self.what, self.number, self.name, self.advice = what, number, name, advice


class RowKind(IntEnum):
    LATE = 0
    OPENS = 1
    CLOSES = 2
    WHOLE = 3
    REVISES = 4
    """The event gets another end."""
    DROPS = 5
    """The event is dropped: it has been open for too long, or a row withdraws it."""


class Step(NamedTuple):
    """What a row does, or the end of an event that was open for too long."""

    kind: RowKind
    row: int
    """Its number among the given rows; -1 for DROPS."""
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
    withdraws: bool = False


class ClosedEvent(NamedTuple):
    start: int
    end: int


class RowReader:
    """Decides for each row what it is. Its state is the clock, and the ids of events that later rows may have."""

    def __init__(
        self,
        delay: int | None,
        lateness: End,
        open_for: int | None,
        *,
        drops: bool,
        revises: bool = False,
        external_clock: bool = False,
        is_held: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        """`delay` and `open_for` are in microseconds; None: no bound. With `drops`, rows and events that cannot be used
        are counted, otherwise they are an error. With `revises`, a further row of an event gives it another end, and
        rows may withdraw events. With an `external_clock` rows do not move the clock. `is_held` says whether the event
        with this id is still needed, as the calls before have left it: its id cannot be used again.
        """
        self._delay, self._lateness, self._open_for = delay, lateness, open_for
        self._drops, self._revises, self._external_clock = drops, revises, external_clock
        self.clock = BEGINNING
        self.opened: dict[bytes, int] = {}
        """The start of each open event."""
        self.closed: dict[bytes, ClosedEvent] = {}
        """The events that are not open any more; only those that a row in time may repeat or revise."""
        self.keyless: set[bytes] = set()
        """Those of `opened` and `closed` that have no key. They are counted, and dropped when they are closed."""
        self.counts = dict.fromkeys(("null_keys", "null_times", "null_ids", "reversed", "repeated", "unclosed"), 0)
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

    def may_change(self, name: bytes) -> bool:
        """Whether a row in time may give the event with this id an end, or another one."""
        return name in self.opened or (self._revises and self._is_recent(name))

    @property
    def due(self) -> int:
        """The time after which an event is open for too long; FOREVER: none is."""
        if self._open_for is None:
            return FOREVER
        while self._starts and self.opened.get(self._starts[0][1]) != self._starts[0][0]:
            heappop(self._starts)
        return self._starts[0][0] + self._open_for if self._starts else FOREVER

    @property
    def changeable(self) -> list[bytes]:
        """The ids of the events with a key that a row in time may close or revise."""
        names = (*self.opened, *self.closed)
        return [name for name in names if name not in self.keyless and self.may_change(name)]

    def steps(self, rows: Sequence[GivenRow]) -> list[Step]:
        """What the rows of one call are, in the order of their own times. Where rows revise events, those of one event
        stay in the order in which they are given.

        Raises:
            UnusableRow: a row cannot be used, or an event is open for too long.
        """
        self._held_now = {}
        places = _places_by_event(rows) if self._revises else [*map(_place, rows)]
        found: list[Step] = []
        for number in sorted(range(len(rows)), key=places.__getitem__):
            if (step := self._step(number, rows[number])) is None:
                continue
            if self._has_expired:
                found += (one._replace(is_last=False) for one in self._expired())
            found.append(step)
        if len(self.closed) > self._most_closed:
            self.forget()
        return found

    def advance(self, time: int) -> list[Step]:
        """Moves the clock."""
        self.clock = max(self.clock, time)
        return self._expired()

    def finish(self) -> list[Step]:
        """All events that are still open end without a row. They are counted, and no error."""
        found = [Step(RowKind.DROPS, -1, name, self.clock) for name in self.opened if name not in self.keyless]
        self.counts["unclosed"] += len(self.opened)
        self.opened.clear()
        self.clock = FOREVER
        return found

    def forget(self) -> None:
        """Forgets the closed events that no row in time can repeat or revise."""
        self.closed = {name: event for name, event in self.closed.items() if event.end >= self.horizon}
        self.keyless &= self.opened.keys() | self.closed.keys()
        self._most_closed = max(_MOST_CLOSED, 2 * len(self.closed))

    def restore(
        self, clock: int, opened: dict[bytes, int], closed: dict[bytes, ClosedEvent], keyless: set[bytes]
    ) -> None:
        self.clock, self.opened, self.closed, self.keyless = clock, opened, closed, keyless
        if self._open_for is not None:
            self._starts = sorted((start, name) for name, start in opened.items())

    def _step(self, number: int, row: GivenRow) -> Step | None:
        name, start, end, has_key, withdraws = row
        if name is None:
            return self._unusable("null_ids", "has no id", number)
        if withdraws:
            return self._withdrawn(number, name, row)
        if start is None and end is None:
            return self._unusable("null_times" if has_key else "null_keys", "has neither start nor end", number)
        if name in self.opened and end is not None:
            return self._closed(number, name, end)
        if self._revises and end is not None and self._is_recent(name):
            return self._revised(number, name, start, end)
        if name in self.opened or self._is_used(name):
            if self._revises and end is not None:
                return self._late(number, name)  # the event is final
            return self._unusable("repeated", "has the id of an event that is there already", number)
        if start is None or end is None:
            return self._opened(number, name, row)
        return self._whole(number, name, row)

    def _opened(self, number: int, name: bytes, row: GivenRow) -> Step | None:
        if row.start is None:
            if self._revises and row.end is not None and self._is_late(row.end):
                return self._late(number, name)
            return self._unusable("repeated", "has an end and no start, and closes an event that is not open", number)
        if not row.has_key:
            self._check_drops("has no key", number)
        elif self._is_late(row.start):
            return self._late(number, name)
        else:
            self._move_clock(row.start)
        self._begin(name, has_key=row.has_key)
        self.opened[name] = row.start
        if self._open_for is not None:
            heappush(self._starts, (row.start, name))
        return Step(RowKind.OPENS, number, name, self.clock) if row.has_key else None

    def _whole(self, number: int, name: bytes, row: GivenRow) -> Step | None:
        start, end = row.start, row.end
        assert start is not None
        assert end is not None
        if end < start:
            count = "reversed" if row.has_key else "null_keys"
            return self._unusable(count, "has an event that ends before it starts", number)
        if row.has_key and self._is_late(end if self._lateness is End.END else start):
            return self._late(number, name)
        self._begin(name, has_key=row.has_key)
        self.closed[name], self._held_now[name] = ClosedEvent(start, end), True
        if not row.has_key:
            return self._unusable("null_keys", "has no key", number)
        self._move_clock(end)
        return Step(RowKind.WHOLE, number, name, self.clock)

    def _begin(self, name: bytes, *, has_key: bool) -> None:
        """Forgets the former event with this id, which is final: the id is that of a new event."""
        self.closed.pop(name, None)
        self.keyless.discard(name)
        if not has_key:
            self.keyless.add(name)

    def _closed(self, number: int, name: bytes, end: int) -> Step | None:
        start = self.opened[name]
        if end < start:
            return self._unusable("reversed", "closes an event before its start", number)
        if name not in self.keyless and self._is_late(end):
            return self._late(number, name)
        del self.opened[name]
        self.closed[name], self._held_now[name] = ClosedEvent(start, end), True
        if name in self.keyless:
            return self._unusable("null_keys", "closes an event that has no key", number)
        self._move_clock(end)
        if self._open_for is not None and end - start > self._open_for:
            if self._revises:
                del self.closed[name]
            return self._expire(name)
        return Step(RowKind.CLOSES, number, name, self.clock)

    def _revised(self, number: int, name: bytes, start: int | None, end: int) -> Step | None:
        former = self.closed[name]
        moved = start not in {None, former.start}
        if moved or end == former.end:
            what = "gives an event another start, and does not withdraw it" if moved else "repeats an event"
            return self._unusable("repeated", what, number)
        if end < former.start:
            return self._unusable("reversed", "has an event that ends before it starts", number)
        if self._is_late(end):
            return self._late(number, name)
        self.closed[name] = ClosedEvent(former.start, end)
        if name in self.keyless:
            return None
        self._move_clock(end)
        return Step(RowKind.REVISES, number, name, self.clock)

    def _withdrawn(self, number: int, name: bytes, row: GivenRow) -> Step | None:
        """A row that withdraws an event is late by the time by which the event is late, and does not move the clock."""
        if not self.may_change(name):
            given = row.end if self._lateness is End.END else row.start
            if self._is_used(name) or (given is not None and self._is_late(given)):
                return self._late(number, name)
            return self._unusable("repeated", "withdraws an event that is not there", number)
        start, end = (self.opened[name], None) if name in self.opened else self.closed[name]
        by = end if self._lateness is End.END else start
        if by is not None and self._is_late(by):
            return self._late(number, name)
        self.opened.pop(name, None)
        self.closed.pop(name, None)
        self._held_now[name] = False
        if name in self.keyless:
            self.keyless.discard(name)
            return None
        return Step(RowKind.DROPS, -1, name, self.clock)

    @property
    def _has_expired(self) -> bool:
        if self._open_for is None or not self._starts:
            return False
        return self._starts[0][0] + self._open_for < self.horizon

    def _expired(self) -> list[Step]:
        """The events that no row in time can close within `open_for`."""
        found = []
        while self._has_expired:
            start, name = heappop(self._starts)
            if self.opened.get(name) != start:
                continue
            del self.opened[name]
            step = self._expire(name)
            if name not in self.keyless:
                found.append(step)
            self.keyless.discard(name)
        return found

    def _is_recent(self, name: bytes) -> bool:
        """Whether an event has this id that is not open, and whose end a row in time may repeat or revise."""
        closed = self.closed.get(name)
        return closed is not None and closed.end >= self.horizon

    def _is_used(self, name: bytes) -> bool:
        """Whether an event that is not open any more has this id, which a row in time may repeat, or which is needed.
        The answer does not depend on which closed events have been forgotten.
        """
        if self._is_recent(name):
            return True
        held = self._held_now.get(name)
        return self._is_held(name) if held is None else held

    def _expire(self, name: bytes) -> Step:
        self._held_now[name] = False
        if not self._drops:
            raise UnusableRow("is open for longer than open_for", None, name, _TOO_LONG)
        self.counts["unclosed"] += 1
        return Step(RowKind.DROPS, -1, name, self.clock)

    def _late(self, number: int, name: bytes) -> Step:
        return Step(RowKind.LATE, number, name, self.clock)

    def _unusable(self, count: str, what: str, number: int) -> Step | None:
        """Counts the row, which is no step."""
        self._check_drops(what, number)
        self.counts[count] += 1
        return None

    def _check_drops(self, what: str, number: int) -> None:
        if not self._drops:
            raise UnusableRow(what, number, None, _LEAVE_OUT)

    def _move_clock(self, time: int) -> None:
        if not self._external_clock:
            self.clock = max(self.clock, time)

    def _is_late(self, time: int) -> bool:
        return time < self.horizon


_Place: TypeAlias = tuple[int, bool, int, bytes]


def _place(row: GivenRow) -> _Place:
    """The row's own time; at the same time, openings come first. Rows without times come first of all."""
    own = row.end if row.end is not None else row.start
    return (BEGINNING if own is None else own, row.end is not None, row.start or 0, row.name or b"")


def _places_by_event(rows: Sequence[GivenRow]) -> list[_Place]:
    """The own time of each row, and not before that of an earlier row of its event. A row that withdraws an event has
    no time of its own.
    """
    last: dict[bytes | None, _Place] = {}
    found = []
    for row in rows:
        own = _place(row._replace(start=None, end=None) if row.withdraws else row)
        last[row.name] = max(own, last.get(row.name, own))
        found.append(last[row.name])
    return found
