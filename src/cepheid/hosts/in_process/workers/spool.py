"""Events in their final order in files that worker processes map into their memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import END, TIME, Batch
from cepheid.events.order import Ordered, Ordering

_KEY_START = "_key_start"
"""The column that flags the events with which keys begin."""
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


def new_folder(needed: int) -> Path:
    """A new folder for about so many bytes: in memory if there is room for more than that, else on the disk."""
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 * needed
    return Path(mkdtemp(prefix="cepheid-", dir=_MEMORY if in_memory else None))


class Spooled(NamedTuple):
    """A file of events, and where its batches end."""

    path: Path
    ends: Sequence[int]
    """The number of events up to the end of each batch."""

    def read(self, first: int, end: int) -> Iterator[Ordered]:
        """The events from row `first` to before `end`, without a copy."""
        number = int(np.searchsorted(self.ends, first, side="right"))
        begin = self.ends[number - 1] if number else 0
        with pa.memory_map(str(self.path)) as file, pa.ipc.open_file(file) as batches:
            while max(begin, first) < end:
                batch = batches.get_batch(number)
                low, high = max(first - begin, 0), min(end - begin, len(batch))
                rows = batch.slice(low, high - low)
                flags = rows.column(_KEY_START).to_numpy(zero_copy_only=False)
                yield Ordered(Batch(rows.drop_columns([_KEY_START])), flags)
                begin, number = begin + len(batch), number + 1


class Spool:
    """Orders the events of a part, and writes them to a file."""

    def __init__(self, path: Path, ordering: Ordering) -> None:
        self._path = path
        self._ordering = ordering
        self.longest = 0
        """Microseconds: the longest duration of an event; 0 for events with one time."""
        self._file: pa.ipc.RecordBatchFileWriter | None = None
        self._ends: list[int] = []
        self._key_starts: list[npt.NDArray[np.int64]] = []
        self._times: list[npt.NDArray[np.int64]] = []

    @property
    def ties(self) -> int:
        return self._ordering.ties

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
        self._write(self._ordering.process(events))

    def finish(self) -> Spooled:
        """Ends the file."""
        self._write(self._ordering.finish())
        self.close()
        return Spooled(self._path, self._ends)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, parts: Iterator[Ordered]) -> None:
        for part in parts:
            before = self._ends[-1] if self._ends else 0
            self._ends.append(before + len(part.batch))
            self._key_starts.append(np.flatnonzero(part.key_start) + before)
            self._times.append(part.batch.column(TIME).view(pa.int64()).to_numpy())
            if END in part.batch.data.schema.names:
                ends = part.batch.column(END).view(pa.int64()).to_numpy()
                self.longest = max(self.longest, int((ends - self._times[-1]).max()))
            rows = part.batch.whole.with_column(_KEY_START, pa.array(part.key_start)).data
            if self._file is None:
                self._file = pa.ipc.new_file(str(self._path), rows.schema)
            self._file.write_batch(rows)
