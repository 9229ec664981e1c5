"""Orders and writes the events of a part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import END, TIME, Batch
from cepheid.events.order import Ordered, Ordering
from cepheid.hosts.in_process.workers.spooled_events import EventWriter


class Spool:
    """Orders the events of a part, and writes them."""

    def __init__(self, writer: EventWriter, ordering: Ordering) -> None:
        self._writer = writer
        self._ordering = ordering
        self.ties = 0
        """The number of events that were ordered by their content alone."""
        self.longest = 0
        """Microseconds: the longest duration of an event; 0 for events with one time."""
        self._count = 0
        self._key_starts: list[npt.NDArray[np.int64]] = []
        self._times: list[npt.NDArray[np.int64]] = []

    @property
    def key_starts(self) -> npt.NDArray[np.int64]:
        """The rows with which keys begin."""
        return np.concatenate([np.zeros(0, np.int64), *self._key_starts])

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """(events,) microseconds."""
        return np.concatenate([np.zeros(0, np.int64), *self._times])

    def add(self, events: Batch) -> None:
        """Adds events, which come in the order of key, time and sequence."""
        self._put(self._ordering.process(events))

    def finish(self) -> None:
        """Ends the events."""
        self._put(self._ordering.finish())
        self._writer.close()

    def _put(self, parts: Iterator[Ordered]) -> None:
        for part in parts:
            self._key_starts.append(np.flatnonzero(part.key_start) + self._count)
            self._times.append(part.batch.column(TIME).view(pa.int64()).to_numpy())
            if END in part.batch.data.schema.names:
                ends = part.batch.column(END).view(pa.int64()).to_numpy()
                self.longest = max(self.longest, int((ends - self._times[-1]).max()))
            self._writer.add(part)
            self._count += len(part.batch)
            self.ties += part.ties
