"""The events in memory of a matcher of events that rows open and close."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cepheid.kernel.scripts.python_functions import Value
from cepheid.matchers.intervals.uncertain.certain import Times
from cepheid.matchers.intervals.uncertain.reach import EventsByTime, Reach


class HeldEvent(NamedTuple):
    """A held event, with what is known of it."""

    name: bytes
    position: int
    key: int
    times: Times
    mask: int
    values: tuple[Value, ...]
    """Its lifted columns, where conditions of negations read them."""


class HeldEvents:
    """The events by their ids, and those that may forbid matches by key and negation. An event that is closed or
    revised has a new position; its former position is empty.
    """

    def __init__(self, negated_bits: Sequence[int]) -> None:
        """`negated_bits` has the bit of each negation in the masks of events."""
        self._negated_bits = negated_bits
        self._any_negated = sum(1 << bit for bit in {*negated_bits})
        self.name_at: list[bytes] = []
        """The id of the event at each position."""
        self._each: dict[bytes, HeldEvent] = {}
        self._negated: dict[tuple[int, int], EventsByTime] = defaultdict(EventsByTime)
        """By key and negation."""

    def __contains__(self, name: bytes) -> bool:
        return name in self._each

    def __getitem__(self, name: bytes) -> HeldEvent:
        return self._each[name]

    @property
    def all(self) -> Iterable[HeldEvent]:
        return self._each.values()

    @property
    def has_open(self) -> bool:
        return any(event.times.is_open for event in self._each.values())

    def get(self, name: bytes) -> HeldEvent | None:
        return self._each.get(name)

    def at(self, positions: Iterable[int]) -> list[HeldEvent]:
        return [self._each[self.name_at[position]] for position in positions]

    def is_there(self, position: int) -> bool:
        """Whether an event is at this position still."""
        event = self._each.get(self.name_at[position])
        return event is not None and event.position == position

    def add(self, event: HeldEvent) -> None:
        """Adds an event, in place of a former one of the same id."""
        if event.name in self._each:
            self.drop(event.name)
        self._each[event.name] = event
        for number in self.negations_of(event):
            self._negated[event.key, number].add(event.times.start, event.times.end, event.name)

    def drop(self, name: bytes) -> HeldEvent:
        event = self._each.pop(name)
        for number in self.negations_of(event):
            self._negated[event.key, number].remove(event.times.start, event.times.end, name)
        return event

    def negations_of(self, event: HeldEvent) -> list[int]:
        """The numbers of the negations by which the event may forbid matches."""
        if not event.mask & self._any_negated:
            return []
        return [number for number, bit in enumerate(self._negated_bits) if event.mask >> bit & 1]

    def forbidding(self, key: int, number: int, reach: Reach) -> Iterator[HeldEvent]:
        """The events of a key that may forbid matches by this negation, within a reach, in the order of their ends."""
        found = self._negated.get((key, number))
        return (self._each[name] for name in (() if found is None else found.within(reach)))

    def keep(self, place: Mapping[int, int], key_at: Callable[[int], int]) -> None:
        """Forgets all events but those with a place: by former positions, the positions from now on. `key_at` gives the
        number of the key at a position.
        """
        self.name_at = [self.name_at[former] for former in place]
        kept = [event for event in self._each.values() if event.position in place]
        self._each, self._negated = {}, defaultdict(EventsByTime)
        for event in kept:
            now = place[event.position]
            self.add(event._replace(position=now, key=key_at(now)))
