"""Blocks of narrow events (`narrow.py`), each an Arrow stream in parts.

A block is cut into parts because Spark hands rows to Python by their number: so many rows of whole blocks would exceed
what an Arrow batch can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError, with_noun
from cepheid.events.narrow import widened
from cepheid.requests.request import ERROR

TARGET = "target"
BLOCK = "block"
PART = "part"
PARTS = "parts"
BYTES = "bytes"
PARTS_OF_BLOCKS = pa.schema(
    [
        pa.field(ERROR, pa.string()),
        pa.field(TARGET, pa.int32()),
        pa.field(BLOCK, pa.int64()),
        pa.field(PART, pa.int32()),
        pa.field(PARTS, pa.int32()),
        pa.field(BYTES, pa.binary()),
    ]
)
"""Rows with parts: an error in place of one, the value by which Spark partitions, the number of the block, of the part
in the block and of all its parts, and the bytes.
"""

_WRITES = pa.ipc.IpcWriteOptions(use_threads=False)
_READS = pa.ipc.IpcReadOptions(use_threads=False)


def in_parts(blocks: Sequence[tuple[int, pa.RecordBatch]], first: int, size: int) -> pa.RecordBatch:
    """The blocks of narrow events, each with its target, in parts of at most so many bytes. The blocks are numbered
    from `first`.
    """
    streams = [_stream(events) for _, events in blocks]
    sizes = np.array([len(stream) for stream in streams])
    counts = -(-sizes // size)
    block = np.repeat(np.arange(len(blocks)), counts)
    part = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = np.minimum((part + 1) * size, sizes[block]) + (np.cumsum(sizes) - sizes)[block]
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())  # raises if 32 bits are too few
    data = [None, offsets.buffers()[1], pa.py_buffer(b"".join(streams))]
    columns = [
        pa.nulls(len(block), pa.string()),
        pa.array(np.array([target for target, _ in blocks], np.int32)[block]),
        pa.array(first + block),
        pa.array(part.astype(np.int32)),
        pa.array(counts[block].astype(np.int32)),
        pa.Array.from_buffers(pa.binary(), len(block), data),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PARTS_OF_BLOCKS)


def whole_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of each block as soon as all its parts are there; parts may come in any order.

    Raises:
        EventError: a part is missing at the end.
    """
    waiting: dict[int, dict[int, bytes]] = {}
    for batch in batches:
        columns = (batch.column(name) for name in (BLOCK, PART, PARTS))
        values = batch.column(BYTES)
        for row, (block, part, parts) in enumerate(zip(*(c.to_pylist() for c in columns), strict=True)):
            known = waiting.setdefault(block, {})
            known[part] = values[row].as_buffer()
            if len(known) == parts:
                del waiting[block]
                stream = known[0] if parts == 1 else b"".join(known[number] for number in range(parts))
                yield from map(widened, pa.ipc.open_stream(stream, options=_READS))
    if waiting:
        blocks = with_noun(len(waiting), "block")
        its = "its" if len(waiting) == 1 else "their"
        raise EventError(f"{blocks} of events came without all {its} parts: run the query again")


def _stream(events: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=_WRITES) as stream:
        stream.write(events)
    return sink.getvalue()
