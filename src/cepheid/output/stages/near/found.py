"""What is found of near misses: matches of changed patterns, and the order of the events around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.plan.stages.near.changes import Change

Events = list[tuple[int, int]]
"""The events of a match in order, each as its stage and its number in the source."""


class Taken(NamedTuple):
    """The events of matches."""

    end: Ints
    """(matches,) match i has the events from end[i - 1] (0 for the first match) to before end[i]."""
    event: Ints
    """(events,) the number of the event in the source."""
    stage: Int32s
    """(events,) the stage that took it."""

    @property
    def starts(self) -> Ints:
        """(matches,) the number of each match's first event."""
        first: Ints = self.event[np.append(0, self.end)[:-1]]
        return first

    @property
    def each(self) -> Iterator[Events]:
        """The events of each match."""
        events, begin = [*zip(self.stage.tolist(), self.event.tolist(), strict=True)], 0
        for end in self.end.tolist():
            yield events[begin:end]
            begin = end


@dataclass(frozen=True)
class NearMatches:
    """The matches of a changed pattern whose start does not match the pattern itself, one for each such start."""

    change: Change
    taken: Taken
    """The stages are those of the unchanged pattern."""
    lost: frozenset[int]
    """The starts that the skip strategy of the changed pattern then drops."""
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

    def place(self, number: int) -> int:
        """The place of the event with the number."""
        return int(self._places[number])

    def time_of(self, number: int) -> int:
        """The time of the event with the number."""
        return int(self.time[self.place(number)])

    def first_with(self, bit: int | None, begin: int, end: int, most: int) -> Ints:
        """The numbers of the first events from the place `begin` to before `end` whose mask has the bit; None: any."""
        if bit is None:
            return self.number[begin : min(end, begin + most)]
        if bit not in self._places_with:
            self._places_with[bit] = np.flatnonzero(self.mask >> bit & 1)
        places = self._places_with[bit]
        first, last = np.searchsorted(places, (begin, end))
        return self.number[places[first : min(last, first + most)]]

    @cached_property
    def _places_with(self) -> dict[int, Ints]:
        """For each bit that was asked for the places of the events whose mask has it."""
        return {}

    def end_of_key(self, place: int) -> int:
        """The place after the last event of the key of the event at the place."""
        return int(self.key_end[np.searchsorted(self.key_end, place, side="right")])
