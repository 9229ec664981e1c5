"""The events of a step for several workers: in memory that they share, or in a message, if they are few."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import NamedTuple

import pyarrow as pa

from cepheid.events.time import TIME_TYPE
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.in_process.prepare import TimedEvents

_FEW = 1 << 16
"""Bytes: so few are copied faster than they are mapped."""


class SharedEvents(NamedTuple):
    """The events of a step, as an Arrow stream."""

    content: bytes | None
    """The stream; None if it is in a file in memory."""
    file: int | None = None
    """The file's descriptor. It has no name, so nothing is left of it after a crash of all processes."""

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)


def shared(events: StepEvents) -> SharedEvents:
    """The events, for `events_in` in other processes."""
    (times,) = events.events.times
    table = events.events.events.append_column(pa.field("", TIME_TYPE), times)
    if table.nbytes <= _FEW:
        return SharedEvents(stream_of(table))
    descriptor = _file_in_memory()
    with os.fdopen(os.dup(descriptor), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return SharedEvents(None, descriptor)


def events_in(given: SharedEvents) -> StepEvents:
    """The events. Those in a file are not copied; its descriptor is closed."""
    if given.content is not None:
        table = table_of(given.content)
    else:
        assert given.file is not None
        try:
            mapped = mmap.mmap(given.file, os.fstat(given.file).st_size, prot=mmap.PROT_READ)
        finally:
            given.close()
        table = table_of(pa.py_buffer(mapped))
    last = table.num_columns - 1
    return StepEvents(TimedEvents(table.select(range(last)), (table.column(last),)))


def stream_of(table: pa.Table) -> bytes:
    """The rows as an Arrow stream, which is not compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def table_of(stream: bytes | pa.Buffer) -> pa.Table:
    """The rows of an Arrow stream."""
    return pa.ipc.open_stream(stream).read_all()


def _file_in_memory() -> int:
    """The descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("events")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
