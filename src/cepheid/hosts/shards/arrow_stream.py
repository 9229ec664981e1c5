"""Rows as bytes: an Arrow stream, which is compressed unless it is short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.narrow import widened

# In this thread only: there are as many workers as cores, and for small values it costs more to wake other threads.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_FAST = pa.ipc.IpcWriteOptions(compression=pa.Codec("lz4"), use_threads=False)
_END = 8
"""The bytes of the mark at a stream's end (Arrow columnar format, "IPC Streaming Format")."""
_SMALL = 1 << 10
"""Bytes: so few do not become fewer. Compressing them takes 45 microseconds, and writing them 5."""


def to_stream(table: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as an Arrow stream. It is compressed, which costs less than moving the bytes through Spark's state."""
    return _written(table, _COMPRESSED)


def to_narrow_stream(events: pa.RecordBatch) -> bytes:
    """Narrow events as an Arrow stream. If all columns have a fixed width, it is compressed in a third of the time: it
    becomes a quarter larger than with the slower compression.
    """
    is_fixed = all(pa.types.is_primitive(type_) or pa.types.is_dictionary(type_) for type_ in events.schema.types)
    return _written(events, _FAST if is_fixed else _COMPRESSED)


def to_passing_stream(table: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as an Arrow stream that is read once, soon, and not stored. It is compressed in a third of the time, and
    is three quarters larger.
    """
    return _written(table, _FAST)


def _written(table: pa.Table | pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> bytes:
    sink = pa.BufferOutputStream()
    options = _PLAIN if table.nbytes <= _SMALL else options
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write(table)
    return bytes(sink.getvalue())


def joined(values: Sequence[bytes]) -> bytes:
    """The streams one after the other. They are not decoded. One that begins as the one before it continues that one:
    its schema is left out, and before it the mark of the end.
    """
    parts: list[memoryview] = []
    schema = None
    for value in values:
        stream = memoryview(value)
        length = _schema_length(stream)
        if schema == stream[:length]:
            parts[-1] = parts[-1][:-_END]
            parts.append(stream[length:])
        else:
            schema = stream[:length]
            parts.append(stream)
    return values[0] if len(values) == 1 else b"".join(parts)


def _schema_length(stream: memoryview) -> int:
    """The bytes of the stream's first message, which has no body: a mark, the length of its metadata, the metadata."""
    return 8 + int.from_bytes(stream[4:8], "little")


def events_of(values: Sequence[bytes]) -> Batch | None:
    """The packed events of all values, each with one stream or several."""
    batches = [widened(batch) for value in values for batch in _batches(value)]
    return Batch(pa.concat_batches(batches)) if batches else None


def _batches(value: bytes) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(value)
    while source.tell() < len(value):
        yield from pa.ipc.open_stream(source, options=UNPACKED)
