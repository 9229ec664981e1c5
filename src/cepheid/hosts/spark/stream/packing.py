"""The code that runs in a Spark worker around the shards of a stream: it packs their events and unpacks their rows.

A shard's events travel as one value, an Arrow stream: Spark's Python state interface converts values cell by cell.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError, SnapshotError
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.narrow import narrowed
from cepheid.events.order import check_times
from cepheid.hosts.shards.arrow_stream import UNPACKED, to_narrow_stream, to_stream
from cepheid.hosts.spark.batch.worker import compiled_plans
from cepheid.hosts.spark.coalesce import coalesced
from cepheid.hosts.spark.stream.copies.copying import Copies, Copying
from cepheid.hosts.spark.stream.ledger import EVENTS, SHARD, ledger_shard
from cepheid.hosts.spark.stream.load.hot_keys import KeySampler, to_text
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.matchers.pattern_events import OwnEvents, projections
from cepheid.matchers.protocols import PatternRunner, ShardMatcher, ShardRunner
from cepheid.matchers.working_set import with_any
from cepheid.output.common import filled
from cepheid.plan.plan_set import Words, relevant_to_any
from cepheid.plan.reserved import VERSION
from cepheid.requests.request import ERROR


class Packing(NamedTuple):
    """What a worker needs for packing events."""

    layout: tuple[tuple[str, str], ...]
    """The matchers' columns, each with the shipped column that holds it."""
    columns: pa.Schema
    """The matchers' columns."""
    kind: str
    """The kind of the patterns."""
    plans: bytes
    """The pickled plans."""
    placement: Placement
    """How the shards of each pattern are numbered."""
    only_relevant: bool
    """Whether events that cannot matter are dropped here."""
    numbers: tuple[int, ...]
    """The numbers of the patterns."""
    labels: tuple[str, ...]
    """What the figures call the patterns."""
    ended: tuple[int, ...] = ()
    """The numbers of patterns that have left the query. Their shards are called to clear what they store."""
    plan: str = ""
    """Unique to the query's plan. Each worker calls the ended shards only once for a plan: that is often enough, and
    calls in every micro-batch would cost more.
    """
    show_keys: bool = False
    """Whether the figures have the hottest keys themselves, not only their hashes."""
    copying: Copying | None = None
    """How standbys get copies of keys; None without standbys."""


FIGURES, COUNT = "_figures", "_count"
"""The columns in which tasks report figures of packing, as text, and the number of events that they have read."""

_WORTH_NARROWING = 1 << 10
"""The least bytes of a column of a value, on average. What narrow events say of a column takes about 180."""

_CLEARED: set[str] = set()
"""The plans for which this worker has called the ended shards."""


def pack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The events of each pattern and shard as one value. `given` has a Packing's fields.

    Events that cannot matter are dropped here, not in a filter: Spark would push a filter below the watermark, but the
    watermark needs these events.
    """
    packing = Packing(*given)
    own, figures = own_events(packing), Figures.of(packing)
    ledgers = [*map(ledger_shard, packing.numbers)]
    try:
        copies = None if packing.copying is None else packing.copying.in_this_batch()
    except SnapshotError as error:
        yield _packed(ledgers[:1], [b""], error=str(error))
        return
    for number, events in enumerate(coalesced(batches)):
        if number == 0:
            called = [*ledgers, *_ended(packing)]
            yield _packed(called, [b""] * len(called))
        try:
            yield from _shards(events, own, packing, figures, copies)
        except EventError as error:
            yield _packed(ledgers[:1], [b""], error=str(error))
            return
    if figures.nanoseconds:
        yield _packed([None], [None], figures=figures)


@dataclass
class Figures:
    """What a task reports of packing."""

    samplers: Sequence[tuple[Sequence[str], KeySampler]]
    """For the events of each pattern, with its label; if all patterns are in the same shards, for those of all, with
    all labels.
    """
    nanoseconds: int = 0
    events: int = 0

    @staticmethod
    def of(packing: Packing) -> Figures:
        """The figures before the first event."""
        labels = [packing.labels] if packing.placement.together else [(label,) for label in packing.labels]
        return Figures([(each, KeySampler(show=packing.show_keys)) for each in labels])

    @property
    def text(self) -> str:
        samples = [(labels, sampler.sample) for labels, sampler in self.samplers]
        return to_text({label: sample for labels, sample in samples for label in labels}, self.nanoseconds)


class EventsForAny:
    """Selects the events that matter to any of several patterns; with all columns, as these share them."""

    def __init__(self, relevant: Words | None) -> None:
        """`relevant` has bits of the mask: an event with none of them matters to no pattern. None: each may matter."""
        self._relevant = relevant

    def of(self, batch: Batch) -> Batch:
        return with_any(batch, self._relevant)


def own_events(packing: Packing) -> Sequence[OwnEvents]:
    """For each pattern, the selection of its events from those of all; only one if all are in the same shards."""
    plans, compiled = compiled_plans(packing.kind, packing.plans)
    relevant_to = compiled.relevant_to if packing.only_relevant else [None] * len(plans.each)
    if packing.placement.together:
        return [EventsForAny(relevant_to_any(relevant_to))]
    return projections(plans, relevant_to)


def _ended(packing: Packing) -> list[int]:
    """The shards of the ended patterns, if this worker has not called them yet."""
    if packing.plan in _CLEARED:
        return []
    _CLEARED.add(packing.plan)
    shards = (number for pattern in packing.ended for number in packing.placement.numbers(pattern).tolist())
    return [*map(ledger_shard, packing.ended), *shards]


@lru_cache(maxsize=1024)
def unpacked_runner(packed: bytes) -> ShardRunner[ShardMatcher]:
    """The shards' runner. It is the same object for all calls in a worker, so that it is compiled once."""
    runner: ShardRunner[ShardMatcher] = pickle.loads(packed)  # noqa: S301 - from the driver, as the function itself is
    return runner


def unpacked_pattern(packed: bytes) -> PatternRunner:
    """The runner of shards that have one pattern."""
    return cast("PatternRunner", unpacked_runner(packed))


def unpack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The rows that the shards returned, one value for each call with the pattern's number, in the columns of the given
    schema. `given` also has the versions of the patterns, by number, if there is a column for them.
    """
    schema, versions = given
    for batch in batches:
        for value, number in zip(batch.column(0), batch.column(1).to_pylist(), strict=True):
            rows = pa.ipc.open_stream(value.as_buffer(), options=UNPACKED).read_all()
            if number in versions:
                rows = rows.append_column(VERSION, pa.array([versions[number]] * len(rows), pa.string()))
            yield from (rows if rows.schema == schema else filled(rows, schema)).to_batches()


def _shards(
    events: pa.RecordBatch,
    own: Sequence[OwnEvents],
    packing: Packing,
    figures: Figures,
    copies: Copies | None,
) -> Iterator[pa.RecordBatch]:
    began = perf_counter_ns()
    every = _batch(events, packing)
    check_times(every, *(name for name in (TIME, END) if name in every.data.schema.names))
    figures.events += len(every)
    numbers = packing.numbers[: len(own)]  # if all patterns are in the same shards, these have those of the first one
    for number, mine, (_, sampler) in zip(numbers, own, figures.samplers, strict=True):
        batch = mine.of(every)
        shards, batch = batch.column(SHARD).to_numpy(), Batch(batch.data.drop_columns([SHARD]))
        sampler.add(batch.keys, shards)
        if copies is not None:
            batch, shards = copies.routed(number, batch, shards, packing.placement.shards)
        narrow = np.min_scalar_type(packing.placement.shards + packing.placement.standbys)
        rows = np.argsort(shards.astype(narrow), kind="stable")  # narrow types are sorted by radix
        called, starts = np.unique(shards[rows], return_index=True)
        values = _values(batch.data, pa.array(rows), [*pairwise([*starts.tolist(), len(rows)])])
        packed = _packed(packing.placement.numbers(number)[called].tolist(), values)
        figures.nanoseconds += perf_counter_ns() - began
        yield packed
        began = perf_counter_ns()


def _values(events: pa.RecordBatch, rows: pa.Array, bounds: Sequence[tuple[int, int]]) -> list[bytes]:
    """The events in the order of the row numbers, as a value for each of the bounds: start and stop."""
    write: Callable[[pa.RecordBatch], bytes] = to_stream
    if bounds and events.nbytes > _WORTH_NARROWING * events.num_columns * len(bounds):
        events, write = narrowed(events, len(bounds)), to_narrow_stream
    ordered = events.take(rows)
    return [write(ordered.slice(start, stop - start)) for start, stop in bounds]


def _batch(events: pa.RecordBatch, packing: Packing) -> Batch:
    """The events as matchers take them, and their shards. Columns are cast, because Spark's times have the session's
    zone, which may change between runs.
    """
    columns = [events.column(shipped) for _, shipped in packing.layout]
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, packing.columns, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(typed, schema=packing.columns)
    return Batch(batch.append_column(SHARD, events.column(SHARD)))


def _packed(
    shards: Sequence[int | None],
    values: Sequence[bytes | None],
    *,
    error: str | None = None,
    figures: Figures | None = None,
) -> pa.RecordBatch:
    """A row for each call of a shard. Without a shard, the row only reports figures."""
    columns = {SHARD: pa.array(shards, pa.int32()), EVENTS: pa.array(values, pa.binary())}
    texts = {ERROR: error, FIGURES: None if figures is None else figures.text}
    count = None if figures is None else figures.events
    columns |= {name: pa.array([text] * len(shards), pa.string()) for name, text in texts.items()}
    return pa.record_batch(columns | {COUNT: pa.array([count] * len(shards), pa.int64())})
