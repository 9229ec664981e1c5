"""Which events each task of a worker has: whole keys, or the slice of one key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.plan.division import TimeSlices

Rows = npt.NDArray[np.int64]

TASKS = 4
"""Tasks a worker: so many that workers end at about the same time, and so few that a task costs almost nothing."""
LEAST = 1 << 14
"""So few events take milliseconds."""
MOST_REPEATED = 0.2
"""Where slices would read more than this share of a key's events twice, there are fewer slices."""


class Task(NamedTuple):
    """Rows of a part's events."""

    part: int
    first: int
    """The rows to read are those from `first` to before `end`."""
    end: int
    starts: tuple[int, int] | None = None
    """Those whose events may start partial matches; None: all, as these are whole keys."""
    until: int | None = None
    """Microseconds: how far time advances at the end of each key; None: the input is complete."""
    key: int | None = None
    """The row with which the key of the slice begins; None: these are whole keys."""

    @property
    def size(self) -> int:
        """The number of events whose matches it finds."""
        first, end = self.starts or (self.first, self.end)
        return end - first


class Division(NamedTuple):
    """How a call's events are divided."""

    workers: int
    slices: TimeSlices | None
    """None: keys are not divided."""
    until: int | None
    """Microseconds: the end of time; None: the input is complete."""
    least: int = LEAST
    """Fewer events than this are one task."""
    repeated: float = MOST_REPEATED


def divided(part: int, key_starts: Rows, times: Rows, division: Division) -> list[Task]:
    """The tasks for one part, in the order of their results. Its events are in order; `key_starts` are the rows with
    which keys begin, and `times` are the events' times.
    """
    count = len(times)
    if not count:
        return []
    target = max(division.least, -(-count // (division.workers * TASKS)))
    sizes = np.diff(key_starts, append=count)
    large = np.flatnonzero(sizes > target)
    even = key_starts[np.searchsorted(key_starts, np.arange(0, key_starts[-1] + 1, target))]
    borders = np.unique(np.concatenate([even, key_starts[large], key_starts[large] + sizes[large], [0, count]]))
    tasks, alone = list[Task](), set(key_starts[large].tolist())
    for first, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if division.slices is not None and first in alone:
            tasks += _sliced(Task(part, first, end, None, division.until), times[first:end], target, division)
        else:
            tasks.append(Task(part, first, end, None, division.until))
    return tasks


def _sliced(key: Task, times: Rows, target: int, division: Division) -> list[Task]:
    """The slices of one key, of about `target` events each, and fewer if they overlap much."""
    assert division.slices is not None
    most = -(-len(times) // target)
    while True:
        tasks = _slices(key, times, most, division.slices)
        repeated = sum(task.end - task.first - task.size for task in tasks)
        if repeated <= division.repeated * len(times) or most <= division.workers:
            return tasks
        most = max(division.workers, most // 2)


def _slices(key: Task, times: Rows, most: int, slices: TimeSlices) -> list[Task]:
    """At most `most` slices of the key, with about the same number of events."""
    places = np.arange(most) * len(times) // most
    begins = np.unique(np.searchsorted(times, times[places]))  # no instant is divided
    if len(begins) == 1:
        return [key]
    ends = np.append(begins[1:], len(times))
    reads_from = np.searchsorted(times, times[begins] - slices.before)
    passed = times[ends - 1] + slices.after  # by then, all that has started in the slice has ended
    reads_to = np.searchsorted(times, passed, side="right")
    until = [*(_earlier(key.until, time) for time in passed[:-1].tolist()), key.until]
    borders = zip(*(rows.tolist() for rows in (reads_from, reads_to, begins, ends)), until, strict=True)
    return [
        key._replace(
            first=key.first + first,
            end=key.first + end,
            starts=(key.first + start, key.first + stop),
            until=last,
            key=key.first,
        )
        for first, end, start, stop, last in borders
    ]


def _earlier(until: int | None, time: int) -> int:
    return time if until is None else min(until, time)
