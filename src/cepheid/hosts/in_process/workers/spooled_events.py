"""Where the events of a part, in their final order, are until tasks read them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.order import Ordered
from cepheid.hosts.pace import Pace

_KEY_START = "_key_start"
"""The column that flags the events with which keys begin."""
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


class SpooledEvents(Protocol):
    """The events of a part."""

    def read(self, first: int, end: int) -> Iterator[Ordered]:
        """The events from row `first` to before `end`, without a copy."""


class EventWriter(Protocol):
    """Takes the events of a part in batches."""

    def add(self, events: Ordered) -> None:
        """Adds a batch."""

    def close(self) -> None:
        """Ends the events, or gives them up."""


class EventsInMemory(NamedTuple):
    """Batches, and where they end."""

    batches: Sequence[Ordered]
    ends: Sequence[int]
    """The number of events up to the end of each batch."""

    def read(self, first: int, end: int) -> Iterator[Ordered]:
        pace = Pace()
        for number, low, high in _pieces(self.ends, first, end):
            ordered = self.batches[number]
            for start, stop in pace.portions(low, high):
                yield Ordered(ordered.batch.slice(start, stop), ordered.key_start[start:stop])


class MemoryWriter:
    """Keeps events in the memory of this process."""

    def __init__(self) -> None:
        self._batches: list[Ordered] = []
        self._ends: list[int] = []

    def add(self, events: Ordered) -> None:
        self._batches.append(events)
        self._ends.append(_last(self._ends) + len(events.batch))

    @property
    def events(self) -> EventsInMemory:
        """What was added."""
        return EventsInMemory(self._batches, self._ends)

    def close(self) -> None:
        """There is nothing to do."""


class EventsInFile(NamedTuple):
    """A file of batches, and where they end. Processes map it into their memory."""

    path: Path
    ends: Sequence[int]
    """The number of events up to the end of each batch."""

    def read(self, first: int, end: int) -> Iterator[Ordered]:
        with pa.memory_map(str(self.path)) as file, pa.ipc.open_file(file) as batches:
            for number, low, high in _pieces(self.ends, first, end):
                rows = batches.get_batch(number).slice(low, high - low)
                flags = rows.column(_KEY_START).to_numpy(zero_copy_only=False)
                yield Ordered(Batch(rows.drop_columns([_KEY_START])), flags)


class FileWriter:
    """Writes events to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pa.ipc.RecordBatchFileWriter | None = None
        self._ends: list[int] = []

    def add(self, events: Ordered) -> None:
        rows = events.batch.whole.with_column(_KEY_START, pa.array(events.key_start)).data
        if self._file is None:
            self._file = pa.ipc.new_file(str(self._path), rows.schema)
        self._file.write_batch(rows)
        self._ends.append(_last(self._ends) + len(rows))

    @property
    def events(self) -> EventsInFile:
        """What was added, once the writer is closed."""
        return EventsInFile(self._path, self._ends)

    def close(self) -> None:
        """Ends the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def new_folder(needed: int) -> Path:
    """A new folder for about so many bytes: in memory if there is room for more than that, else on the disk."""
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 * needed
    return Path(mkdtemp(prefix="cepheid-", dir=_MEMORY if in_memory else None))


def _pieces(ends: Sequence[int], first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The batches with the rows from `first` to before `end`: the number of each, and which of its rows these are."""
    number = int(np.searchsorted(ends, first, side="right"))
    begin = ends[number - 1] if number else 0
    while max(begin, first) < end:
        yield number, max(first - begin, 0), min(end, ends[number]) - begin
        begin, number = ends[number], number + 1


def _last(ends: Sequence[int]) -> int:
    return ends[-1] if ends else 0
