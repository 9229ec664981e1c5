"""Rows as bytes: a compressed Arrow stream."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cepheid.events.batch import Batch

# In this thread only: there are as many workers as cores, and for small values it costs more to wake other threads.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_FAST = pa.ipc.IpcWriteOptions(compression=pa.Codec("lz4"), use_threads=False)
_SMALL = 1 << 10
"""Bytes: so few do not become fewer. Compressing them takes 45 microseconds, and writing them 5."""


def to_stream(table: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as an Arrow stream. It is compressed, which costs less than moving the bytes through Spark's state."""
    return _written(table, _COMPRESSED)


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


def events_of(values: Sequence[bytes]) -> Batch | None:
    """The packed events of all values."""
    batches = [batch for value in values if value for batch in pa.ipc.open_stream(value, options=UNPACKED)]
    return Batch(pa.concat_batches(batches)) if batches else None
