"""Events that wait for the watermark.

They are stored in runs sorted by time. A new run is merged with the runs before it that are not at least twice as long.
So there are few runs, and an event is copied O(log n) times while n wait, however small the batches are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import MASK, TIME, Batch, join
from cepheid.kernel.arrays import FOREVER
from cepheid.matchers.working_set import mask_of


class EventQueue:
    """A queue of events by their time."""

    def __init__(self) -> None:
        self._runs: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        run = _by_time(batch)
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = _by_time(join([self._runs.pop(), run]))
        self._runs.append(run)

    def take(self, time: int) -> Batch | None:
        """Removes and returns the events up to `time` (microseconds), in no particular order."""
        due: list[Batch] = []
        later: list[Batch] = []
        for run in self._runs:
            count = int(np.searchsorted(times_of(run), time, side="right"))
            due += [run.slice(0, count)] * (count > 0)
            later += [run.slice(count, len(run))] * (count < len(run))
        self._runs = later
        return join(due) if due else None

    def mark(self, bits: int) -> None:
        """Sets these bits in the masks of all events."""
        self._runs = [with_bits(run, np.full(len(run), bits)) for run in self._runs]

    @property
    def earliest(self) -> int:
        """Microseconds: the time of the earliest event; FOREVER if there is none."""
        return min((int(times_of(run)[0]) for run in self._runs), default=FOREVER)

    @property
    def all(self) -> Batch | None:
        """All events, in no particular order."""
        return join(self._runs) if self._runs else None


def times_of(batch: Batch) -> npt.NDArray[np.int64]:
    """(events,) microseconds since 1970 UTC."""
    times: npt.NDArray[np.int64] = batch.column(TIME).view(pa.int64()).to_numpy()
    return times


def with_bits(batch: Batch, bits: npt.NDArray[np.int64]) -> Batch:
    """The events, with these bits set in their masks."""
    place = batch.data.schema.get_field_index(MASK)
    field = batch.data.schema.field(place)
    masks = pa.array(mask_of(batch) | bits).cast(field.type)
    return batch.with_data(batch.data.set_column(place, field, masks))


def _by_time(batch: Batch) -> Batch:
    times = times_of(batch)
    if (times[1:] >= times[:-1]).all():
        return batch
    return batch.take(pa.array(np.argsort(times, kind="stable")))
