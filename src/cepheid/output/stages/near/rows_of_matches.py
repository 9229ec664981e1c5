"""Rows for scripts: events, each with the events that a match has taken before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Flags
from cepheid.kernel.scripts.columns import SURELY_WITHIN, Column, Values, less
from cepheid.output.stages.near.found import Taken
from cepheid.output.stages.near.looked_at import LookedAt
from cepheid.plan.conditions.script import Aggregate, CurrentValue, Fold, StageValue


class MatchRows:
    """Row i is the event with the number `event[i]`, after the events of match `match[i]` up to before place `end[i]`
    in `taken`.
    """

    def __init__(self, taken: Taken, match: Ints, end: Ints, event: Ints, events: LookedAt) -> None:
        self._taken = taken
        self._begin = taken.begin[match]
        self._end = end
        self._event = event
        self._events = events

    def __len__(self) -> int:
        return len(self._event)

    def of_current(self, value: CurrentValue) -> Column | None:
        """The value of the event itself."""
        return self._events.column(value.column, self._event)

    def of_stage(self, value: StageValue) -> Column | None:
        """The value of one of the events before; NULL if the stage has no such event."""
        before = self._before(value.stage)
        found = self._events.column(value.column, self._taken.event[before.places])
        place = before.first + value.back if value.from_first else before.end - 1 - value.back
        return None if found is None else _at(found, place, value.back < before.end - before.first)

    def folded(self, aggregate: Aggregate) -> Column | None:
        """The fold over the events before; None for folds that are evaluated row by row only."""
        before = self._before(aggregate.stage)
        if aggregate.column is None:
            return _counts(before.end - before.first)
        found = self._events.column(aggregate.column, self._taken.event[before.places])
        if found is None:
            return None
        count = before.sums(found.present.astype(np.int64))
        if aggregate.fold is Fold.COUNT:
            return _counts(count)
        if found.value.dtype not in (np.float64, np.int64):
            return None
        value = self._folded(aggregate.fold, found, before, np.maximum(count, 1))
        return None if value is None else Column(value, count > 0, np.ones(len(count), np.bool_))

    def _folded(self, fold: Fold, found: Column, before: _Before, count: Ints) -> Values | None:
        """The folded values, of the rows that have one."""
        if fold is Fold.SUM and found.value.dtype == np.int64:
            integers = np.where(found.present, found.value, 0)
            is_sure = np.abs(integers.astype(np.float64)).sum() < SURELY_WITHIN
            return before.sums(integers) if is_sure else None
        if fold not in _COMBINE:
            return None
        if fold in (Fold.SUM, Fold.AVG):
            found = found._replace(value=found.value + 0.0)  # -0.0 becomes 0.0, where sums begin
        begin = self._taken.begin[self._taken.match[before.places]]
        nth = np.arange(len(before.places)) - np.searchsorted(before.places, begin)
        running = _running(_COMBINE[fold], found, nth)
        last = _at(running, before.end - 1, before.end > before.first).value
        return last / count if fold is Fold.AVG else last

    def _before(self, stage: int) -> _Before:
        places = np.flatnonzero(self._taken.stage == stage)
        return _Before(places, np.searchsorted(places, self._begin), np.searchsorted(places, self._end))


class _Before(NamedTuple):
    """The events of one stage, and those of them that each row has before it."""

    places: Ints
    """(events,) their places in all matches, ascending."""
    first: Ints
    """(rows,) the number of the first one, among those of the stage."""
    end: Ints
    """(rows,) the number after that of the last one."""

    def sums(self, values: Ints) -> Ints:
        """For each row the sum over its events; `values` has one for each event of the stage."""
        total = np.append(0, np.cumsum(values))
        sums: Ints = total[self.end] - total[self.first]
        return sums


def _counts(count: Ints) -> Column:
    every = np.ones(len(count), np.bool_)
    return Column(count, every, every)


def _at(found: Column, rows: Ints, there: Flags) -> Column:
    """The values of these rows where they are `there`, otherwise NULL."""
    if not len(found.value):
        nothing = np.zeros(len(rows), np.bool_)
        return Column(np.zeros(len(rows), found.value.dtype), nothing, ~nothing)
    taken = found.take(np.where(there, rows, 0))
    return taken._replace(present=taken.present & there)


def _running(combine: Callable[[Values, Values], Values], found: Column, nth: Ints) -> Column:
    """For each event the fold over the events of its match up to it. It is the `nth` of them, from 0. One event of each
    match is added at a time, as the order of additions decides how sums are rounded.
    """
    value, present = found.value.copy(), found.present.copy()
    order = np.argsort(nth, kind="stable")
    for first, last in pairwise(np.cumsum(np.bincount(nth)).tolist()):
        rows = order[first:last]
        before, own = value[rows - 1], value[rows]
        combined = np.where(present[rows - 1], combine(before, own), own)
        value[rows] = np.where(present[rows], combined, before)
        present[rows] |= present[rows - 1]
    return found._replace(value=value, present=present)


_COMBINE: Mapping[Fold, Callable[[Values, Values], Values]] = {
    Fold.SUM: np.add,
    Fold.AVG: np.add,
    Fold.MIN: lambda before, own: np.where(less(own, before), own, before),
    Fold.MAX: lambda before, own: np.where(less(before, own), own, before),
}
