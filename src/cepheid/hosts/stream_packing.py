"""What runs in a Spark worker around the shards of a stream: events are packed for them, their rows unpacked.

A shard's events travel as one value, an Arrow stream: Spark's Python state interface converts values cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError
from cepheid.events import MASK, Batch
from cepheid.hosts.gathering import gathered
from cepheid.hosts.request import ERROR
from cepheid.order import check_times

SHARD, EVENTS = "_shard", "_events"
LEDGER = -1
"""The shard without events, which is called in every batch that has any: it knows what the checkpoint is of."""


class Packing(NamedTuple):
    """What a worker is to do with the events."""

    layout: tuple[tuple[str, str], ...]
    """The matcher's columns, each with the shipped column that holds it."""
    columns: pa.Schema
    """The matcher's columns."""
    relevant: int | None
    """The bits of the mask of which an event that matters has one; None: all matter."""


def pack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """Each shard's events as one value. `given` is a Packing's.

    Events that cannot matter go no further here, not in a filter: Spark would push that below the watermark, which
    must know them.
    """
    packing = Packing(*given)
    for number, events in enumerate(gathered(batches)):
        if number == 0:
            yield _packed([LEDGER], [b""])
        try:
            yield _shards(events, packing)
        except EventError as error:
            yield _packed([LEDGER], [b""], str(error))
            return


def to_stream(table: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
    return bytes(sink.getvalue())


def events_of(values: Sequence[bytes]) -> Batch | None:
    """The packed events of all values."""
    batches = [batch for value in values if value for batch in pa.ipc.open_stream(value)]
    return Batch(pa.concat_batches(batches)) if batches else None


def unpack(batches: Iterator[pa.RecordBatch], _: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The rows that shards gave as one value each."""
    for batch in batches:
        for value in batch.column(0):
            yield from pa.ipc.open_stream(value.as_buffer())


def _shards(events: pa.RecordBatch, packing: Packing) -> pa.RecordBatch:
    shards = events.column(SHARD).to_numpy()
    if packing.relevant is not None:
        mask = events.column(dict(packing.layout)[MASK]).to_numpy()
        rows = np.flatnonzero(mask & packing.relevant)
        rows = rows[np.argsort(shards[rows], kind="stable")]
    else:
        rows = np.argsort(shards, kind="stable")
    batch = _batch(events.take(pa.array(rows)), packing)
    check_times(Batch(batch))
    numbers, starts = np.unique(shards[rows], return_index=True)
    bounds = pairwise([*starts.tolist(), len(rows)])
    slices = [batch.slice(start, end - start) for start, end in bounds]
    return _packed(numbers.tolist(), [to_stream(part) for part in slices])


def _batch(events: pa.RecordBatch, packing: Packing) -> pa.RecordBatch:
    """The events as a matcher takes them. Spark's times are in the session's zone, which may be another tomorrow."""
    columns = [events.column(shipped) for _, shipped in packing.layout]
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, packing.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=packing.columns)


def _packed(shards: list[int], values: list[bytes], error: str | None = None) -> pa.RecordBatch:
    columns = {SHARD: pa.array(shards, pa.int32()), EVENTS: pa.array(values, pa.binary())}
    return pa.record_batch({**columns, ERROR: pa.array([error] * len(shards), pa.string())})
