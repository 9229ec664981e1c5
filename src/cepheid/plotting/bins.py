"""Fewer marks: events in steps of time, where a picture would have too many to draw one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cepheid.plotting.clock import Clock, Floats

MOST_MARKS = 5_000
"""The most marks that are drawn one by one. Above them, kinds of marks are aggregated, the most frequent kind first."""
LEFT = 1_000
"""About how many marks an aggregated kind has."""

_SECOND, _DAY = 1_000.0, 86_400_000.0
_STEPS = {
    **{f"{n} ms": float(n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)},
    **{f"{n} s": n * _SECOND for n in (1, 2, 5, 10, 15, 30)},
    **{f"{n} min": n * 60 * _SECOND for n in (1, 2, 5, 10, 15, 30)},
    **{f"{n} h": n * 3600 * _SECOND for n in (1, 2, 3, 6, 12)},
    "1 day": _DAY,
    **{f"{n} days": n * _DAY for n in (2, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650, 7300, 36500)},
}
"""Steps of time and their lengths in milliseconds."""


@dataclass(frozen=True)
class Steps:
    """Steps of one length on the axis."""

    length: float
    words: str

    def number(self, places: Floats) -> npt.NDArray[np.int64]:
        """The number of the step that each place is in."""
        return np.floor(places / self.length).astype(np.int64)

    def begin(self, number: npt.NDArray[np.int64]) -> Floats:
        found: Floats = number * np.float64(self.length)
        return found


def steps_for(places: Floats, most: int, clock: Clock) -> Steps:
    """The shortest steps of a usual length of which at most `most` cover the places."""
    least = (float(np.nanmax(places) - np.nanmin(places)) if len(places) else 0.0) / max(most, 1)
    if clock.is_time:
        words, length = next(
            ((words, length) for words, length in _STEPS.items() if length >= least), ("100 years", 36500 * _DAY)
        )
        return Steps(length, words)
    power = 10.0 ** np.floor(np.log10(least)) if least > 0 else 1.0
    length = next(power * times for times in (1, 2, 5, 10) if power * times >= least)
    return Steps(length, clock.word(length))


def too_many(counts: Mapping[str, int]) -> set[str]:
    """The kinds of marks to aggregate, so that about `MOST_MARKS` remain."""
    left, chosen = dict(counts), set[str]()
    while sum(left.values()) > MOST_MARKS and len(chosen) < len(left):
        largest = max((kind for kind in left if kind not in chosen), key=lambda kind: left[kind])
        if left[largest] <= LEFT:
            break
        chosen.add(largest)
        left[largest] = LEFT
    return chosen


@dataclass(frozen=True)
class Cells:
    """Events that are near each other, as one mark each."""

    first: npt.NDArray[np.int64]
    """(cells,) one event of each."""
    count: npt.NDArray[np.int64]
    x: Floats
    """(cells,) the middle of its step."""
    y: Floats | None
    """(cells,) the mean of its events."""
    low: Floats | None
    high: Floats | None


def cells_of(x: Floats, y: Floats | None, groups: npt.NDArray[np.int64], steps: Steps) -> Cells:
    """The events of each group and step of time. Events without `y` count for nothing where there is a `y`."""
    known = np.flatnonzero(np.isfinite(x) & (np.isfinite(y) if y is not None else True))
    number = steps.number(x[known])
    order = np.lexsort([number, groups[known]])
    known, number = known[order], number[order]
    changes = (np.diff(number, prepend=np.int64(-1)) != 0) | (np.diff(groups[known], prepend=np.int64(-1)) != 0)
    if len(changes):
        changes[0] = True
    begins = np.flatnonzero(changes)
    count = np.diff(begins, append=len(known))
    middle = steps.begin(number[begins]) + steps.length / 2
    if y is None or not len(begins):
        return Cells(known[begins], count, middle, None if y is None else middle, None, None)
    values = y[known]
    sums, low, high = (function.reduceat(values, begins) for function in (np.add, np.minimum, np.maximum))
    return Cells(known[begins], count, middle, sums / count, low, high)


@dataclass(frozen=True)
class Open:
    """How many matches are open in a stretch of time."""

    group: npt.NDArray[np.int64]
    begin: Floats
    end: Floats
    count: npt.NDArray[np.int64]


def open_counts(begin: Floats, end: Floats, groups: npt.NDArray[np.int64], steps: Steps) -> Open:
    """For each group the stretches in which the number of intervals that touch a step is the same and not 0."""
    found: list[tuple[int, int, int, int]] = []
    for group in np.unique(groups).tolist():
        own = np.flatnonzero(groups == group)
        change: dict[int, int] = {}
        for first, last in zip(steps.number(begin[own]).tolist(), steps.number(end[own]).tolist(), strict=True):
            change[first] = change.get(first, 0) + 1
            change[last + 1] = change.get(last + 1, 0) - 1
        count, places = 0, sorted(change)
        for place, after in zip(places, [*places[1:], places[-1]], strict=True):
            count += change[place]
            if count and after > place:
                found.append((group, place, after, count))
    table = np.array(found, np.int64).reshape(-1, 4)
    return Open(table[:, 0], steps.begin(table[:, 1]), steps.begin(table[:, 2]), table[:, 3])
