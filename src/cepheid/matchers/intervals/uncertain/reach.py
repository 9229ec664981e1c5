"""Which negated events may forbid which matches, by their times alone: a match meets few of the events in memory.

A reach leaves out only events that `Certainty` would find harmless.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import OPEN_END
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Negation, Scope, Window
from cepheid.matchers.intervals.uncertain.certain import Times
from cepheid.plan.intervals.bounds import comparison_differences
from cepheid.plan.intervals.plan import IntervalPlan


class Reach(NamedTuple):
    """An event may forbid a match only if its start and, unless it is open, its end lie between these times."""

    first_start: int = NO_TIME
    last_start: int = FOREVER
    first_end: int = NO_TIME
    last_end: int = FOREVER

    def has(self, start: int, end: int) -> bool:
        if not self.first_start <= start <= self.last_start:
            return False
        return end == OPEN_END or self.first_end <= end <= self.last_end

    def until(self, endpoint: End, time: int) -> Reach:
        """The part with this endpoint at `time` at the latest."""
        if endpoint is End.START:
            return self._replace(last_start=min(self.last_start, time))
        return self._replace(last_end=min(self.last_end, time))

    def since(self, endpoint: End, time: int) -> Reach:
        """The part with this endpoint at `time` at the earliest."""
        if endpoint is End.START:
            return self._replace(first_start=max(self.first_start, time))
        return self._replace(first_end=max(self.first_end, time))


class _Scoped(NamedTuple):
    """A negation, by the places of its variables among those of the match."""

    scope: Scope | None
    left: tuple[int, ...]
    right: tuple[int, ...]
    above: list[tuple[End, int, End, int]]
    """The endpoint of the negated event that is bounded from above, the variable and its endpoint that bound it, and by
    how much more.
    """
    below: list[tuple[End, int, End, int]]
    """The same for bounds from below, and by how much less."""


class Reaches:
    """The reach of each negation of a plan, for its matches."""

    def __init__(self, plan: IntervalPlan) -> None:
        variables = [positive.variable for positive in plan.pattern.positives]
        place = {variable: number for number, variable in enumerate(variables)}
        self._negations = [_scoped(negation, place) for negation in plan.pattern.negations]
        self._window = plan.window or 0
        self._of_starts = plan.pattern.window_of is Window.STARTS

    def of(self, times: Sequence[Times]) -> tuple[Reach, ...]:
        """One for each negation, whatever ends the open events of the match get."""
        starts, least_ends = [one.start for one in times], [one.least_end for one in times]
        last = max(starts if self._of_starts else least_ends)
        borders = last - self._window, min(starts) + self._window
        return tuple([_reach(one, times, starts, least_ends, borders) for one in self._negations])


def _scoped(negation: Negation, place: Mapping[str, int]) -> _Scoped:
    own, above, below = negation.variable, list[tuple[End, int, End, int]](), list[tuple[End, int, End, int]]()
    for comparison in negation.order:
        for left, right, most in comparison_differences(comparison):
            if left.variable == own != right.variable:
                above.append((left.end, place[right.variable], right.end, most))
            elif right.variable == own != left.variable:
                below.append((right.end, place[left.variable], left.end, most))
    left_part, right_part = (tuple(place[v] for v in part) for part in (negation.left, negation.right))
    return _Scoped(negation.scope, left_part, right_part, above, below)


def _reach(
    one: _Scoped, times: Sequence[Times], starts: Sequence[int], least_ends: Sequence[int], borders: tuple[int, int]
) -> Reach:
    found = _in_scope(one, times, starts, least_ends, borders)
    for own, variable, end, most in one.above:
        found = found.until(own, (starts[variable] if end is End.START else times[variable].end) + most)
    for own, variable, end, most in one.below:
        found = found.since(own, (starts[variable] if end is End.START else least_ends[variable]) - most)
    first_start, last_start, first_end, last_end = found  # an event starts before it ends
    return Reach(first_start, min(last_start, last_end), max(first_end, first_start), last_end)


def _in_scope(
    one: _Scoped, times: Sequence[Times], starts: Sequence[int], least_ends: Sequence[int], borders: tuple[int, int]
) -> Reach:
    """The reach by the scope. `borders` are in place of a part that is empty."""
    scope, left, right = one.scope, one.left, one.right
    if scope is None:
        return Reach()
    x_start = min([starts[v] for v in left]) if left else borders[0]
    x_end = max([least_ends[v] for v in left]) if left else borders[0]
    y_start = min([starts[v] for v in right]) if right else borders[1]
    match scope:
        case Scope.START_BETWEEN:
            return Reach(first_start=x_start + bool(left), last_start=y_start - bool(right))
        case Scope.GAP | Scope.SEQ_BETWEEN:
            return Reach(first_start=x_end, last_end=y_start)
        case Scope.INTERSECTS_GAP:
            return Reach(last_start=y_start - bool(right), first_end=x_end + 1)
        case Scope.DURING_SPAN:
            return Reach(first_start=min(x_start, y_start), last_end=max([times[v].end for v in (*left, *right)]))


class EventsByTime:
    """The ids of events in the order of their starts, and of their ends."""

    def __init__(self) -> None:
        self._by_start: list[tuple[int, int, bytes]] = []
        self._by_end: list[tuple[int, int, bytes]] = []

    def add(self, start: int, end: int, name: bytes) -> None:
        insort(self._by_start, (start, end, name))
        insort(self._by_end, (end, start, name))

    def remove(self, start: int, end: int, name: bytes) -> None:
        del self._by_start[bisect_left(self._by_start, (start, end, name))]
        del self._by_end[bisect_left(self._by_end, (end, start, name))]

    def within(self, reach: Reach) -> Iterator[bytes]:
        """The events within a reach, in the order of their ends, open ones last. The shorter of both lists is looked
        through: the events that start in time, or those that end in time.
        """
        starts, ends = self._by_start, self._by_end
        start = slice(bisect_left(starts, (reach.first_start,)), bisect_left(starts, (reach.last_start + 1,)))
        opened = bisect_left(ends, (OPEN_END,))
        end = slice(bisect_left(ends, (reach.first_end,)), min(bisect_left(ends, (reach.last_end + 1,)), opened))
        if start.stop - start.start < max(0, end.stop - end.start) + len(ends) - opened:
            near = sorted((end, start, name) for start, end, name in starts[start])
        else:
            near = [*ends[end], *ends[opened:]]
        return (name for end, start, name in near if reach.has(start, end))
