"""What is found of near misses: matches of changed patterns, and the order of the events around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.plan.stages.near.changes import Change


def first_of_each(ascending: Ints) -> Ints:
    """The index of the first of each run of equal numbers."""
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])) if len(ascending) else ascending


@dataclass(frozen=True)
class Taken:
    """The events of matches."""

    end: Ints
    """(matches,) match i has the events from end[i - 1] (0 for the first match) to before end[i]; at least one."""
    event: Ints
    """(events,) the number of the event in the source."""
    stage: Int32s
    """(events,) the stage that took it."""

    @cached_property
    def begin(self) -> Ints:
        """(matches,) the place of each match's first event."""
        return np.append(0, self.end)[:-1]

    @property
    def starts(self) -> Ints:
        """(matches,) the number of each match's first event."""
        first: Ints = self.event[self.begin]
        return first

    @cached_property
    def match(self) -> Ints:
        """(events,) the number of the match that each event belongs to."""
        return np.repeat(np.arange(len(self.end)), np.diff(self.end, prepend=0))

    @cached_property
    def is_first(self) -> Flags:
        """(events,) whether each event is the first of its match."""
        first = np.zeros(len(self.event), np.bool_)
        first[self.begin] = True
        return first

    def first_with(self, flags: Flags) -> Ints:
        """The place of the first event of each match that has the flag; none for a match without such an event."""
        places = np.flatnonzero(flags)
        return places[first_of_each(self.match[places])]

    def only(self, chosen: Flags) -> Taken:
        """The `chosen` matches."""
        events = chosen[self.match]
        return Taken(np.cumsum(np.diff(self.end, prepend=0)[chosen]), self.event[events], self.stage[events])


@dataclass(frozen=True)
class NearMatches:
    """The matches of a changed pattern whose start does not match the pattern itself, one for each such start."""

    change: Change
    taken: Taken
    """The stages are those of the unchanged pattern."""
    lost: Flags
    """(matches,) whether the skip strategy of the changed pattern then drops the start."""
    dropped: int
    """The number of partial matches that a limit has dropped."""


@dataclass(frozen=True)
class EventOrder:
    """The events that matter to the unchanged pattern, in the order of key, time and sequence."""

    number: Ints
    """(events,) the number of the event in the source."""
    time: Ints
    """(events,) microseconds since 1970 UTC."""
    mask: Ints
    """(events,) the lifted conditions of the unchanged pattern."""
    key_end: Ints
    """(keys,) the place after the last event of each key, ascending."""

    @cached_property
    def _places(self) -> Ints:
        places = np.full(int(self.number.max(initial=-1)) + 1, -1, np.int64)
        places[self.number] = np.arange(len(self.number))
        return places

    def places(self, numbers: Ints) -> Ints:
        """The places of the events with these numbers."""
        places: Ints = self._places[numbers]
        return places

    def times(self, numbers: Ints) -> Ints:
        """The times of the events with these numbers."""
        times: Ints = self.time[self.places(numbers)]
        return times

    def ends_of_key(self, places: Ints) -> Ints:
        """For each place, the place after the last event of the same key."""
        ends: Ints = self.key_end[np.searchsorted(self.key_end, places, side="right")]
        return ends

    def begins_of_key(self, places: Ints) -> Ints:
        """For each place, the place of the first event of the same key."""
        begins: Ints = np.append(0, self.key_end)[np.searchsorted(self.key_end, places, side="right")]
        return begins

    def with_bit(self, bit: int | None) -> Ints:
        """The places of the events whose mask has the bit, ascending; None: of all events."""
        if bit is None:
            return np.arange(len(self.number))
        return np.flatnonzero(self.mask >> bit & 1)
