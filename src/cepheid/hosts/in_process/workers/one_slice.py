"""How a worker finds what becomes certain in one slice of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.events.order import Ordered
from cepheid.hosts.in_process.workers.division import Rows, Slice, Task
from cepheid.hosts.in_process.workers.messages import Counted, Open
from cepheid.hosts.in_process.workers.spooled_events import SpooledEvents
from cepheid.kernel.arrays import Flags
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.parts import OrderedPart, SliceDetector

ROW = "_row_number"
"""The column with the rows of events, by which starts are handed over."""
AddRows: TypeAlias = Callable[[list[pa.Table]], None]


def find_in_slice(part: OrderedPart, task: Task, events: SpooledEvents, add: AddRows) -> Counted:
    """Adds the rows of a slice, in the order of emission. Returns their counts, and what the slice hands over.

    The events before the slice only open the partial matches that its own events meet. The results there are those of
    earlier slices.
    """
    slice_ = task.slice
    assert slice_ is not None
    detector = part.slice_detector()
    matcher = OrderedMatcher(detector, until=task.until)
    with detector.replaying(detector.plan.limits):
        for marked in _read(part, slice_, events, (task.first, slice_.begin)):
            matcher.run([marked])
        matcher.advance(slice_.entered)
    counted, before = asdict(detector.found), _open_starts(detector, slice_)
    own, ties = (slice_.begin, slice_.end), 0
    for rows in (own, (slice_.end, task.end)):
        for marked in _read(part, slice_, events, rows):
            add(matcher.run([marked]))
            ties += marked.ties if rows is own else 0
    if slice_.is_last:
        add(matcher.end())
        after = before[:0]
    else:
        assert task.until is not None
        add(matcher.advance(task.until))
        after = _open_starts(detector, slice_)
    counts = {name: count - counted[name] for name, count in asdict(detector.found).items()}
    return Counted(counts | {"ties": ties}, Open(before, after) if slice_.hands_over else None)


def _read(part: OrderedPart, slice_: Slice, events: SpooledEvents, rows: tuple[int, int]) -> Iterator[Ordered]:
    """The events of these rows, with marks on those that may start, and with their rows."""
    first, end = rows
    for ordered in events.read(first, end):
        numbers = first + np.arange(len(ordered.batch))
        first += len(numbers)
        marked = part.marked(ordered.batch, _may_start(slice_, numbers))
        yield Ordered(marked.with_column(ROW, pa.array(numbers)), ordered.key_start, ordered.ties)


def _may_start(slice_: Slice, rows: Rows) -> Flags:
    if slice_.open is None:
        return rows >= slice_.may_start
    return (rows >= slice_.begin) | np.isin(rows, slice_.open)


def _open_starts(detector: SliceDetector, slice_: Slice) -> Rows:
    """The rows of the starts of what is open, if the slice hands it over and has had events."""
    if not slice_.hands_over or not len(detector.working_set):
        return np.zeros(0, np.int64)
    rows: Rows = detector.open_starts().column(ROW).to_numpy()
    return rows
