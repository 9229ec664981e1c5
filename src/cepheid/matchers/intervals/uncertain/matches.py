"""The matches of events that rows open and close: those that are emitted, and those that wait to be certain."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.lang.consistency import Consistency
from cepheid.matchers.intervals.uncertain.held_events import HeldEvent
from cepheid.matchers.intervals.uncertain.reach import Reach

EventNames: TypeAlias = tuple[bytes, ...]
"""The ids of a match's events, one for each variable."""
_Reached: TypeAlias = "tuple[int, int, UncertainMatch]"
"""The last start of an event within a match's reach, the match's serial, and the match."""


class Blocker(NamedTuple):
    """An event that forbids a match, or may, as long as no row changes one of their events."""

    end: int
    """Its end; OPEN_END if it is not known."""
    name: bytes


@dataclass(eq=False)
class UncertainMatch:
    """A match that a row may still change, whether or not it is emitted."""

    names: EventNames
    positions: tuple[int, ...]
    """The positions of its events."""
    key: int
    start: int
    end: int
    """OPEN_END while an end is not known."""
    is_open: bool
    holds_from: int
    """The time from which all that is required holds, except for negations."""
    until: int
    """The greatest lateness time of a later event that could forbid it."""
    reaches: tuple[Reach, ...]
    """For each negation, the times of the events that may forbid it."""
    is_out: bool = False
    serial: int = 0
    """Matches are numbered as they are added."""
    blocker: Blocker | None = None
    """An event that forbids the match as long as no row changes it. Of several it is the one that ends first, as that
    one is final first. While there is one, no others are noted.
    """
    forbidding: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """What may forbid it: the negation's number and the event's id, and from when on the event does not."""
    settled_from: int = NO_TIME
    """For `earliest` where rows revise events: the horizon from which on no row can undo it, but for `unsettled`."""
    unsettled: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """For the same: the events of negations, and from which horizon on they cannot forbid it, whatever ends come."""
    noted: set[bytes] = field(default_factory=set)
    """The ids of the events that are or were noted above, since the match was added."""

    @property
    def certain_from(self) -> int:
        if self.blocker is not None:
            return FOREVER
        return max(self.holds_from, *self.forbidding.values()) if self.forbidding else self.holds_from

    def is_final(self, horizon: int) -> bool:
        """Whether no row in time can change it."""
        return not self.is_open and max(self.until, self.certain_from - 1) < horizon


class UncertainMatches:
    """The matches by their events and by their key, and a heap of those that wait."""

    def __init__(self, consistency: Consistency, *, revises: bool = False) -> None:
        """With `revises`, an event may change until its end is the delay before the clock."""
        self._consistency, self._revises = consistency, revises
        self.all: dict[EventNames, UncertainMatch] = {}
        self._of_event: dict[bytes, dict[EventNames, None]] = defaultdict(dict)
        self._noting: dict[bytes, dict[EventNames, None]] = defaultdict(dict)
        self._by_reach: dict[tuple[int, int], list[_Reached]] = defaultdict(list)
        """By key and negation, in the order of the last starts within their reach."""
        self._serial = 0
        self._waiting: list[tuple[int, int, UncertainMatch]] = []
        """Some of them are outdated."""
        self._pushed = 0

    @property
    def consistency(self) -> Consistency:
        return self._consistency

    @consistency.setter
    def consistency(self, consistency: Consistency) -> None:
        self._consistency = consistency
        self._waiting = []
        for match in self.all.values():
            self.wait(match)

    def add(self, match: UncertainMatch) -> None:
        self._serial += 1
        match.serial = self._serial
        self.all[match.names] = match
        for name in match.names:
            self._of_event[name][match.names] = None
        for name in match.noted:
            self._noting[name][match.names] = None
        for number, reach in enumerate(match.reaches):
            insort(self._by_reach[match.key, number], (reach.last_start, match.serial, match))
        self.wait(match)

    def remove(self, match: UncertainMatch) -> None:
        del self.all[match.names]
        for name in match.names:
            _discard(self._of_event, name, match.names)
        for name in match.noted:
            _discard(self._noting, name, match.names)
        for number, reach in enumerate(match.reaches):
            reached = self._by_reach[match.key, number]
            del reached[bisect_left(reached, (reach.last_start, match.serial))]

    def with_event(self, name: bytes) -> list[UncertainMatch]:
        return [self.all[names] for names in self._of_event.get(name, ())]

    def noting(self, name: bytes) -> list[UncertainMatch]:
        """The matches that have noted this event as one that forbids them, or may; in the order of their serials."""
        return sorted((self.all[names] for names in self._noting.get(name, ())), key=_serial)

    def met_by(self, event: HeldEvent, numbers: Sequence[int]) -> list[UncertainMatch]:
        """The matches of its key that the event may forbid by one of these negations, and those that have noted it; in
        the order of their serials.
        """
        start, end = event.times.start, event.times.end
        found = {match.serial: match for match in self.noting(event.name)}
        for number in numbers:
            reached = self._by_reach.get((event.key, number), [])
            later = reached[bisect_left(reached, (start,)) :]
            found |= {serial: match for _, serial, match in later if match.reaches[number].has(start, end)}
        return [found[serial] for serial in sorted(found)]

    def block(self, match: UncertainMatch, event: HeldEvent) -> None:
        """Notes that the event forbids the match until a row changes one of them, which no earlier end does."""
        match.forbidding.clear()
        match.unsettled.clear()
        match.blocker = Blocker(event.times.end, event.name)
        self._index_note(match, event.name)

    def note(self, match: UncertainMatch, by: tuple[int, bytes], allowed: int, cleared: int) -> None:
        """Notes from when on an event does not forbid the match, and from which horizon on it cannot; NO_TIME: it
        never does.
        """
        for notes, time in ((match.forbidding, allowed), (match.unsettled, cleared)):
            notes.pop(by, None)
            if time > NO_TIME:
                notes[by] = time
                self._index_note(match, by[1])

    def _index_note(self, match: UncertainMatch, name: bytes) -> None:
        match.noted.add(name)
        if self.all.get(match.names) is match:
            self._noting[name][match.names] = None

    def wait(self, match: UncertainMatch) -> None:
        """Puts the match among those that wait, if it is to be emitted at some time."""
        if not match.is_out and (due := self._due(match)) < FOREVER:
            self._pushed += 1
            heappush(self._waiting, (due, self._pushed, match))
        if len(self._waiting) > 64 + 4 * len(self.all):
            self._waiting = [one for one in self._waiting if self._is_current(one)]
            heapify(self._waiting)

    def ready(self, clock: int, horizon: int) -> list[UncertainMatch]:
        """Takes out the matches that are to be emitted with the clock at this time, by (end, start, ids)."""
        limit = clock if self._consistency is Consistency.REALTIME else horizon - 1
        if not self._waiting or self._waiting[0][0] > limit:
            return []
        found = []
        while self._waiting and self._waiting[0][0] <= limit:
            entry = heappop(self._waiting)
            if self._is_current(entry):
                entry[2].is_out = True
                found.append(entry[2])
        return sorted(found, key=lambda match: (match.end, match.start, match.names))

    @property
    def next_due(self) -> int:
        """Once the clock minus the delay is after this time, or in real time the clock, a match is to be emitted;
        FOREVER if none is.
        """
        while self._waiting and not self._is_current(self._waiting[0]):
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else FOREVER

    def _is_current(self, entry: tuple[int, int, UncertainMatch]) -> bool:
        due, _, match = entry
        return self.all.get(match.names) is match and not match.is_out and due == self._due(match)

    def _due(self, match: UncertainMatch) -> int:
        """The match is emitted when the clock (in real time) reaches this time, or the clock minus the delay is after
        it.
        """
        if match.blocker is not None:
            return FOREVER
        certain = match.certain_from - 1
        if self._consistency is Consistency.REALTIME:
            return certain
        if self._consistency is Consistency.EARLIEST and self._revises:
            return max(match.settled_from, *match.unsettled.values(), NO_TIME) - 1
        if self._consistency is Consistency.EARLIEST:
            return max(match.until, certain)
        return FOREVER if match.is_open else max(match.end, match.until, certain)


def _serial(match: UncertainMatch) -> int:
    return match.serial


def _discard(index: dict[bytes, dict[EventNames, None]], at: bytes, names: EventNames) -> None:
    found = index[at]
    del found[names]
    if not found:
        del index[at]
