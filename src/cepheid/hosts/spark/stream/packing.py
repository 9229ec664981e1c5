"""What runs in a Spark worker around the shards of a stream: events are packed for them, their rows unpacked.

A shard's events travel as one value, an Arrow stream: Spark's Python state interface converts values cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events.batch import MASK, TIME, Batch
from cepheid.events.order import check_times
from cepheid.hosts.spark.batch.worker import compiled_plans
from cepheid.hosts.spark.coalesce import gathered
from cepheid.hosts.spark.stream.store import EVENTS, SHARD, ledger
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.output.intervals import END
from cepheid.output.stages import filled
from cepheid.requests.request import ERROR

Layouts: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""Of each pattern the columns of its matcher, each with that of the events of all which holds it."""

# By this thread alone: there are as many workers as cores, and waking others takes longer than small values do.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
_UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


class Packing(NamedTuple):
    """What a worker is to do with the events."""

    layout: tuple[tuple[str, str], ...]
    """The matchers' columns, each with the shipped column that holds it."""
    columns: pa.Schema
    """The matchers' columns."""
    own: bytes | Layouts
    """How each pattern's events come of those of all: pickled Plans, of patterns of stages."""
    shards: int
    """How many there are for each pattern: shard s of pattern p is number p * shards + s."""
    only_relevant: bool
    """Whether events that cannot matter go no further."""


def pack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The events of each pattern and shard as one value. `given` is a Packing's.

    Events that cannot matter go no further here, not in a filter: Spark would push that below the watermark, which
    must know them.
    """
    packing = Packing(*given)
    own = own_events(packing.own, only_relevant=packing.only_relevant)
    ledgers = [*map(ledger, range(len(own)))]
    for number, events in enumerate(gathered(batches)):
        if number == 0:
            yield _packed(ledgers, [b""] * len(ledgers))
        try:
            yield from _shards(events, own, packing)
        except EventError as error:
            yield _packed(ledgers[:1], [b""], str(error))
            return


class Own(Protocol):
    """One pattern's events out of those of all."""

    def of(self, batch: Batch) -> Batch: ...


def own_events(given: bytes | Layouts, *, only_relevant: bool) -> Sequence[Own]:
    """Of each pattern."""
    if not isinstance(given, bytes):
        return [Laid(layout, only_relevant=only_relevant) for layout in given]
    patterns = compiled_plans(given)
    return [OwnEvents(patterns, number, only_relevant=only_relevant) for number in range(len(patterns.each))]


class Laid(NamedTuple):
    """The events of a pattern that has columns of its own."""

    layout: tuple[tuple[str, str], ...]
    only_relevant: bool

    def of(self, batch: Batch) -> Batch:
        columns = [batch.column(shared) for _, shared in self.layout]
        own = pa.RecordBatch.from_arrays(columns, names=[name for name, _ in self.layout])
        return Batch(own.filter(pc.not_equal(own.column(MASK), 0)) if self.only_relevant else own)


def to_stream(table: pa.Table | pa.RecordBatch) -> bytes:
    """Compressed: what a byte costs on its way through Spark's state is more."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as stream:
        stream.write(table)
    return bytes(sink.getvalue())


def events_of(values: Sequence[bytes]) -> Batch | None:
    """The packed events of all values."""
    batches = [batch for value in values if value for batch in pa.ipc.open_stream(value, options=_UNPACKED)]
    return Batch(pa.concat_batches(batches)) if batches else None


def unpack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The rows that shards gave as one value each, in the columns of the schema that is given."""
    (schema,) = given
    for batch in batches:
        for value in batch.column(0):
            rows = pa.ipc.open_stream(value.as_buffer(), options=_UNPACKED).read_all()
            yield from (rows if rows.schema == schema else filled(rows, schema)).to_batches()


def _shards(events: pa.RecordBatch, own: Sequence[Own], packing: Packing) -> Iterator[pa.RecordBatch]:
    every = _batch(events, packing)
    check_times(every, *(name for name in (TIME, END) if name in every.data.schema.names))
    for number, mine in enumerate(own):
        batch = mine.of(every)
        shards = batch.column(SHARD).to_numpy()
        rows = np.argsort(shards.astype(np.min_scalar_type(packing.shards)), kind="stable")  # narrow: by radix
        batch = Batch(batch.data.drop_columns([SHARD])).take(pa.array(rows))
        numbers, starts = np.unique(shards[rows], return_index=True)
        bounds = pairwise([*starts.tolist(), len(rows)])
        values = [to_stream(batch.slice(*ends).data) for ends in bounds]
        yield _packed([number * packing.shards + shard for shard in numbers.tolist()], values)


def _batch(events: pa.RecordBatch, packing: Packing) -> Batch:
    """The events as matchers take them, and their shards. Spark's times are in the session's zone, which may be another
    tomorrow.
    """
    columns = [events.column(shipped) for _, shipped in packing.layout]
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, packing.columns, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(typed, schema=packing.columns)
    return Batch(batch.append_column(SHARD, events.column(SHARD)))


def _packed(shards: list[int], values: list[bytes], error: str | None = None) -> pa.RecordBatch:
    columns = {SHARD: pa.array(shards, pa.int32()), EVENTS: pa.array(values, pa.binary())}
    return pa.record_batch({**columns, ERROR: pa.array([error] * len(shards), pa.string())})
