"""Which events each task of a worker has: whole keys, or the slice of one key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.plan.division import TimeSlices

Rows = npt.NDArray[np.int64]

TASKS = 8
"""Tasks a worker: so many that workers end at about the same time, and so few that a task costs almost nothing. P8 with
one hot key took two threads 3.8 to 4.6 seconds with 4 tasks each, 3.5 to 3.7 with 8, 4.0 to 4.6 with 16 and 3.7 to 4.3
with 32.
"""
LEAST = 1 << 14
"""So few events take milliseconds."""
MOST_REPEATED = 0.2
"""Where slices would read more than this share of a key's events twice, there are fewer slices."""

WINDOWS = 3
"""So many windows before its begin a slice assumes that nothing was open, where one window does not make sure that this
has no effect. In slices of four patterns, 56 in all, one window gave 35 wrong assumptions, two gave 2, and three none.
With events by twos (`a next b`) half of the assumptions are wrong, whatever the number is.
"""


class Slice(NamedTuple):
    """Which of a task's events are those of its slice. Others come before, and tell what is open at its begin, or come
    after it (`TimeSlices.by_start`).
    """

    key: int
    """The row with which the slice's key begins."""
    may_start: int
    """The first row whose event may start a partial match."""
    begin: int
    """The first row of the slice. What is certain before its event is no result of the slice."""
    end: int
    """The row after its last one."""
    entered: int
    """Microseconds: how far time has advanced in the slice before. The events of the slice are later."""
    is_last: bool
    """Whether the key ends with it."""
    hands_over: bool
    """Whether it reports which starts are open at its begin and at its end."""
    certain: bool
    """Whether what is open at its begin is as in one sequence of all events; otherwise it is assumed."""
    open: Rows | None = None
    """The rows before its begin that start partial matches, as they are open then; None: from `may_start` on."""


class Task(NamedTuple):
    """Rows of a part's events, in order: whole keys, or the slice of one key."""

    part: int
    first: int
    """The rows to read are those from `first` to before `end`."""
    end: int
    until: int | None = None
    """Microseconds: how far time advances at the end of each key, or of the slice; None: the input is complete."""
    slice: Slice | None = None
    """None: these are whole keys."""
    as_of: int | None = None
    """Microseconds: the end of time in all tasks; None: the input is complete."""

    @property
    def size(self) -> int:
        """The number of events to read."""
        return self.end - self.first

    @property
    def key(self) -> int | None:
        """The row with which the key of a slice begins; None: these are whole keys."""
        return None if self.slice is None else self.slice.key

    @property
    def is_certain(self) -> bool:
        """Whether its results are certainly those of one sequence of all events."""
        return self.slice is None or self.slice.certain

    def knowing(self, open_: Rows) -> Task:
        """The task again, with the starts that are open at its begin."""
        assert self.slice is not None
        return self._replace(slice=self.slice._replace(certain=True, open=open_))


class Division(NamedTuple):
    """How a call's events are divided."""

    workers: int
    until: int | None
    """Microseconds: the end of time; None: the input is complete."""
    least: int = LEAST
    """Fewer events than this are one task."""
    repeated: float = MOST_REPEATED
    memory: int | None = None
    """The bytes that each worker may allocate; None: as many as there are."""


class PartEvents(NamedTuple):
    """The events of a part, which are in order. A division needs to know few of them."""

    part: int
    length: int
    key_at: Callable[[int], tuple[int, int]]
    """The rows with which the key of the event in this row begins, and before which it ends."""
    time_at: Callable[[int], int]
    """The time of the event in this row, in microseconds."""
    slices: TimeSlices | None
    """How a key is divided into time slices; None: not at all."""

    @classmethod
    def of(cls, part: int, key_starts: Rows, times: Rows, slices: TimeSlices | None) -> PartEvents:
        """The same from the rows with which keys begin, and (events,) the times in microseconds."""
        borders = np.append(key_starts, len(times))

        def key_at(row: int) -> tuple[int, int]:
            number = int(np.searchsorted(key_starts, row, side="right"))
            return int(borders[number - 1]), int(borders[number])

        return cls(part, len(times), key_at, lambda row: int(times[row]), slices)


def divided(events: PartEvents, division: Division) -> list[Task]:
    """The tasks for one part, in the order of their results."""
    length, slices = events.length, events.slices
    if not length:
        return []
    target = max(division.least, -(-length // (division.workers * TASKS)))
    borders, alone, end = {0, length}, set[int](), 0
    for row in range(target, length, target):  # each key with more events than `target` has one of these rows
        if row < end:
            continue
        begin, end = events.key_at(row)
        borders |= {begin if begin == row else end}
        if end - begin > target:
            borders |= {begin, end}
            alone.add(begin)
    tasks = list[Task]()
    for first, end in pairwise(sorted(borders)):
        task = Task(events.part, first, end, division.until, as_of=division.until)
        if slices is not None and first in alone:
            tasks += _sliced(task, events.time_at, target, slices, division)
        else:
            tasks.append(task)
    return tasks


def _sliced(
    key: Task, time_at: Callable[[int], int], target: int, slices: TimeSlices, division: Division
) -> list[Task]:
    """The slices of one key, of about `target` events each, and fewer if they overlap much."""
    most = -(-key.size // target)
    while True:
        tasks = _slices(key, time_at, most, slices)
        repeated = sum(task.size for task in tasks) - key.size
        if repeated <= division.repeated * key.size or most <= division.workers:
            return tasks
        most = max(division.workers, most // 2)


def _slices(key: Task, time_at: Callable[[int], int], most: int, slices: TimeSlices) -> list[Task]:
    """At most `most` slices of the key, with about the same number of events."""
    rows = range(key.first, key.end)

    def first_from(time: int) -> int:
        """The first row of the key that is not before this time."""
        return key.first + bisect_left(rows, time, key=time_at)

    begins = sorted({first_from(time_at(rows[number * len(rows) // most])) for number in range(most)})
    if len(begins) == 1:
        return [key]
    windows = 0 if slices.by_start else 1 if slices.settles else WINDOWS
    tasks = []
    for begin, end in pairwise([*begins, key.end]):
        is_last = end == key.end
        started_from = time_at(begin) - slices.window * windows
        last = time_at(end - 1) + (slices.window if slices.by_start else 0)
        slice_ = Slice(
            key=key.first,
            may_start=first_from(started_from),
            begin=begin,  # no instant is divided
            end=end,
            entered=time_at(begin) - 1,
            is_last=is_last,
            hands_over=not slices.settles,
            certain=slices.settles or begin == key.first,
        )
        task = key._replace(
            first=first_from(started_from - slices.before),
            end=key.first + bisect_right(rows, last, key=time_at),
            until=key.until if is_last else time_at(end) - 1,
            slice=slice_,
        )
        tasks.append(task)
    return tasks
