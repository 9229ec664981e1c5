"""How a worker finds patterns whose events it needs all at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.events.batch import END, TIME, join
from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.spooled_events import SpooledEvents
from cepheid.matchers.parts import GatheredPart, GatheredRows


def find_gathered(part: GatheredPart, task: Task, events: SpooledEvents) -> GatheredRows:
    """The rows of a task: all of its keys', or those that start in its slice."""
    together = join([ordered.batch for ordered in events.read(task.first, task.end)])
    if task.slice is None:
        return part.in_all(together, task.as_of)
    rows = task.first + np.arange(len(together))
    starts, ends = (together.column(name).view(pa.int64()).to_numpy() for name in (TIME, END))
    assert part.slices is not None
    begin = task.slice.begin
    needed = np.flatnonzero((rows >= begin) | (ends >= starts[begin - task.first] - part.slices.before))
    may_start = (rows >= begin) & (rows < task.slice.end)
    return part.in_slice(together.take(pa.array(needed)), may_start[needed], task.as_of)
