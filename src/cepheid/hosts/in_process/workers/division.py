"""Which events each task of a worker has: whole keys, or the slice of one key."""

from __future__ import annotations

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
    """The events of a part, which are in order."""

    part: int
    key_starts: Rows
    """The rows with which keys begin."""
    times: Rows
    """(events,) microseconds."""
    slices: TimeSlices | None
    """How a key is divided into time slices; None: not at all."""


def divided(events: PartEvents, division: Division) -> list[Task]:
    """The tasks for one part, in the order of their results."""
    part, key_starts, times, slices = events
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
        task = Task(part, first, end, division.until, as_of=division.until)
        if slices is not None and first in alone:
            tasks += _sliced(task, times[first:end], target, slices, division)
        else:
            tasks.append(task)
    return tasks


def _sliced(key: Task, times: Rows, target: int, slices: TimeSlices, division: Division) -> list[Task]:
    """The slices of one key, of about `target` events each, and fewer if they overlap much."""
    most = -(-len(times) // target)
    while True:
        tasks = _slices(key, times, most, slices)
        repeated = sum(task.size for task in tasks) - len(times)
        if repeated <= division.repeated * len(times) or most <= division.workers:
            return tasks
        most = max(division.workers, most // 2)


def _slices(key: Task, times: Rows, most: int, slices: TimeSlices) -> list[Task]:
    """At most `most` slices of the key, with about the same number of events."""
    places = np.arange(most) * len(times) // most
    begins = np.unique(np.searchsorted(times, times[places]))  # no instant is divided
    if len(begins) == 1:
        return [key]
    windows = 1 if slices.settles else WINDOWS
    started_from = times[begins] - slices.window * (0 if slices.by_start else windows)
    may_start, first = (np.searchsorted(times, started_from - before) for before in (0, slices.before))
    ends, entered = np.append(begins[1:], len(times)), (times[begins] - 1).tolist()
    last = times[ends - 1] + (slices.window if slices.by_start else 0)
    reads_to = np.searchsorted(times, last, side="right")
    borders = zip(*(rows.tolist() for rows in (first, may_start, begins, ends, reads_to)), entered, strict=True)
    count = len(begins)
    return [
        key._replace(
            first=key.first + reads_from,
            end=key.first + until,
            until=key.until if number == count - 1 else entered[number + 1],
            slice=Slice(
                key=key.first,
                may_start=key.first + starts_from,
                begin=key.first + begin,
                end=key.first + end,
                entered=time,
                is_last=number == count - 1,
                hands_over=not slices.settles,
                certain=slices.settles or number == 0,
            ),
        )
        for number, (reads_from, starts_from, begin, end, until, time) in enumerate(borders)
    ]
