"""The events in memory of a matcher of events that rows open and close, and which of them may change or matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.kernel.scripts.python_functions import Value
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Window
from cepheid.matchers.intervals.certain import Times
from cepheid.matchers.intervals.open_matches import UncertainMatch
from cepheid.plan.intervals.growth import Purge, purge_of
from cepheid.plan.intervals.plan import IntervalPlan


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
    revised has a new position; at the former one is nothing any more.
    """

    def __init__(self, negated_bits: Sequence[int]) -> None:
        """`negated_bits` has the bit of each negation in the masks of events."""
        self._negated_bits = negated_bits
        self._any_negated = sum(1 << bit for bit in {*negated_bits})
        self.name_at: list[bytes] = []
        """The id of the event at each position."""
        self._each: dict[bytes, HeldEvent] = {}
        self._negated: dict[tuple[int, int], dict[bytes, HeldEvent]] = defaultdict(dict)
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
        self._each[event.name] = event
        for number in self.negations_of(event):
            self._negated[event.key, number][event.name] = event

    def drop(self, name: bytes) -> HeldEvent:
        event = self._each.pop(name)
        for number in self.negations_of(event):
            del self._negated[event.key, number][name]
        return event

    def negations_of(self, event: HeldEvent) -> list[int]:
        """The numbers of the negations by which the event may forbid matches."""
        if not event.mask & self._any_negated:
            return []
        return [number for number, bit in enumerate(self._negated_bits) if event.mask >> bit & 1]

    def forbidding(self, key: int, number: int) -> Iterable[HeldEvent]:
        """The events of a key that may forbid matches by this negation."""
        return self._negated.get((key, number), {}).values()

    def keep(self, place: Mapping[int, int], key_at: Callable[[int], int]) -> None:
        """Forgets all events but those with a place: by former positions, the positions from now on. `key_at` gives the
        number of the key at a position.
        """
        self.name_at = [self.name_at[former] for former in place]
        kept = [event for event in self._each.values() if event.position in place]
        self._each, self._negated = {}, defaultdict(dict)
        for event in kept:
            now = place[event.position]
            self.add(event._replace(position=now, key=key_at(now)))


class Changeable(NamedTuple):
    """What a row in time may still change."""

    held: HeldEvents
    horizon: int
    """Rows before this time are late."""
    revises: bool
    """Whether rows revise and withdraw events that have ended."""

    def event(self, event: HeldEvent) -> bool:
        """Whether a row may give the event an end, or another one."""
        return event.times.is_open or (self.revises and event.times.end >= self.horizon)

    def named(self, name: bytes) -> bool:
        event = self.held.get(name)
        return event is not None and self.event(event)

    def is_final(self, match: UncertainMatch) -> bool:
        """Whether no row can change the match."""
        if not self.revises:
            return match.is_final(self.horizon)
        names = {*match.names, *(name for _, name in match.forbidding)}
        return match.is_final(self.horizon) and not any(map(self.named, names))

    def is_impossible(self, match: UncertainMatch) -> bool:
        """Whether an event that no row can change forbids the match."""
        forbidding = [name for (_, name), until in match.forbidding.items() if until == FOREVER]
        return self.revises and not all(map(self.named, forbidding))


class Needs:
    """Which events later matches may need, with the clock where it is."""

    def __init__(self, plan: IntervalPlan, lateness: End, changeable: Changeable) -> None:
        kinds = [Purge.START] * plan.positives if plan.positives > 1 else [None]
        purges = [*kinds, *(purge_of(plan.pattern, negation) for negation in plan.pattern.negations)]
        self._changeable, self._window = changeable, plan.window
        self._purges = [(1 << bit, purge) for bit, purge in zip(plan.variable_bits, purges, strict=True)]
        self._base = changeable.horizon
        if plan.pattern.window_of is Window.STARTS:
            starts = [event.times.start for event in changeable.held.all if changeable.event(event)]
            self._base = FOREVER if lateness is End.END else min([self._base, *starts])

    def has(self, event: HeldEvent) -> bool:
        """Whether the event may change, a later match may contain it, or it may forbid one."""
        return self._changeable.event(event) or (event.mask != 0 and self._may_be_in_a_match(event))

    def positions(self, used: set[int]) -> Int32s:
        """The positions, ascending, of these events and of those that are `used` by open matches."""
        found = [event.position for event in self._changeable.held.all if event.position in used or self.has(event)]
        return np.array(sorted(found), np.int32)

    def _may_be_in_a_match(self, event: HeldEvent) -> bool:
        """Starts of later matches are at most a window before the base; FOREVER: nothing bounds them."""
        for bit, purge in self._purges:
            if purge is None or not event.mask & bit:
                continue
            if self._window is None or self._base == FOREVER or purge is Purge.KEEP:
                return True
            if (event.times.end if purge is Purge.END else event.times.start) >= self._base - self._window:
                return True
        return False
