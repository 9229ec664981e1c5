"""Which events and matches of a matcher of events that rows open and close may still change, or matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Window
from cepheid.matchers.intervals.uncertain.held_events import HeldEvent, HeldEvents
from cepheid.matchers.intervals.uncertain.matches import UncertainMatch
from cepheid.plan.intervals.growth import Purge, purge_of
from cepheid.plan.intervals.plan import IntervalPlan


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
        return match.blocker is not None and not self.named(match.blocker.name)


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
