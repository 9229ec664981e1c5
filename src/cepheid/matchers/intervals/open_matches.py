"""The matches of events that rows open and close: those that are emitted, and those that wait to be certain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.lang.consistency import Consistency

EventNames: TypeAlias = tuple[bytes, ...]
"""The ids of a match's events, one for each variable."""


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
    is_out: bool = False
    forbidding: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """What forbids it, or may: the negation's number and the event's id, and from when on the event does not."""
    settled_from: int = NO_TIME
    """For `earliest` where rows revise events: the horizon from which on no row can undo it, but for `unsettled`."""
    unsettled: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """For the same: the events of negations, and from which horizon on they cannot forbid it, whatever ends come."""
    reach: int = NO_TIME
    """For the same: the greatest start of an event that could forbid the match if ends change."""

    @property
    def certain_from(self) -> int:
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
        self._of_key: dict[int, dict[EventNames, None]] = defaultdict(dict)
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
        self.all[match.names] = match
        self._of_key[match.key][match.names] = None
        for name in match.names:
            self._of_event[name][match.names] = None
        self.wait(match)

    def remove(self, match: UncertainMatch) -> None:
        del self.all[match.names]
        _discard(self._of_key, match.key, match.names)
        for name in match.names:
            _discard(self._of_event, name, match.names)

    def with_event(self, name: bytes) -> list[UncertainMatch]:
        return [self.all[names] for names in self._of_event.get(name, ())]

    def with_key(self, key: int) -> list[UncertainMatch]:
        return [self.all[names] for names in self._of_key.get(key, ())]

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
        certain = match.certain_from - 1
        if self._consistency is Consistency.REALTIME:
            return certain
        if self._consistency is Consistency.EARLIEST and self._revises:
            return max(match.settled_from, *match.unsettled.values(), NO_TIME) - 1
        if self._consistency is Consistency.EARLIEST:
            return max(match.until, certain)
        return FOREVER if match.is_open else max(match.end, match.until, certain)


def _discard(
    index: dict[bytes, dict[EventNames, None]] | dict[int, dict[EventNames, None]], at: bytes | int, names: EventNames
) -> None:
    found = index[at]  # type: ignore[index]
    del found[names]
    if not found:
        del index[at]  # type: ignore[arg-type]
