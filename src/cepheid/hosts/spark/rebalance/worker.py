"""The code that runs in Spark's workers to make the state of other shards from the stored one.

The state of a shard is divided by key: its matcher is restored, and for each shard that is to be, one with the keys of
that shard is made. The parts of a new shard, which come from several old ones, are then joined. Where shards only get
other numbers, no matcher is restored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from cepheid.errors import ConditionError, LimitExceeded, SkipError, SnapshotError
from cepheid.events.batch import KEY_PREFIX
from cepheid.events.identity import key_names
from cepheid.events.key_columns import key_columns
from cepheid.hosts.shards.arrow_stream import events_of
from cepheid.hosts.shards.log import first_head, open_of_each, restored_as_written, snapshot_of
from cepheid.hosts.shards.store import FORMAT, Head, check_format
from cepheid.hosts.spark.rebalance.parts import (
    KEY,
    PART,
    PIECE,
    ROW,
    VALUE,
    StoredShard,
    by_shard,
    columns_of,
    head_in,
    shard_of,
)
from cepheid.hosts.spark.stream.advance import timer_of
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.matchers.protocols import ShardMatcher, ShardRunner
from cepheid.matchers.snapshot import apart, from_bytes, to_bytes, together
from cepheid.matchers.watermark import Reached
from cepheid.requests.request import ERROR

NAME = "name"
"""The column of a key's name."""
_EVENTS = ("held", "waiting")
"""The batches of a snapshot that have events."""
_FAILURES = (ConditionError, LimitExceeded, SkipError, SnapshotError)


class Division(NamedTuple):
    """What a worker needs to divide shards."""

    runner: bytes
    """The shards' runner, as `unpacked_runner` takes it."""
    columns: pa.Schema
    """The columns of the events, as the matcher takes them."""
    was_made_for: str
    """What the checkpoint was written for, as JSON."""
    made_for: str
    """What the new one is for."""
    now: int
    """The watermark, in microseconds: time advances to it in all shards."""


class Renumbering(NamedTuple):
    """What a worker needs to give shards other numbers."""

    numbers: tuple[tuple[int, int], ...]
    """The old and the new number of each shard."""
    made_for: str
    """What the new checkpoint is for, as JSON."""


def renumber(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The same shards with their new numbers. `given` has the fields of a Renumbering."""
    renumbering = Renumbering(*given)
    numbers, made_for = dict(renumbering.numbers), json.loads(renumbering.made_for)
    try:
        for number, rows in by_shard(batches):
            shard = shard_of(rows)
            check_format(shard.head.format)
            first = _remade(shard.first, made_for)
            yield _batch(shard._replace(number=numbers[number], first=first).rows)
    except _FAILURES as error:
        yield _failure(error)


def _remade(first: bytes, made_for: Mapping[str, Any]) -> bytes:
    """The snapshot for shards that are made for something else."""
    if "each" in made_for:
        each = made_for["each"]
        parts = apart(first, [*each])
        remade = (_remade(own, each[name]) for name, own in zip(each, parts.each, strict=True))
        return together(dict(zip(each, remade, strict=True)), parts.shared)
    snapshot = from_bytes(first)
    if snapshot.header["made_for"] == made_for:
        return first
    return to_bytes(snapshot._replace(header=snapshot.header | {"made_for": made_for}))


def keys(batches: Iterator[pa.RecordBatch], given: tuple[StructType]) -> Iterator[pa.RecordBatch]:
    """The keys that shards have something of, or had events of, each with its columns and name. `given` has the type of
    the rows.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    from cepheid.hosts.spark.shipping import IN_UTC

    schema = to_arrow_schema(given[0], **IN_UTC)
    types = schema.types[len((ERROR, SHARD, NAME)) :]
    try:
        for number, rows in by_shard(batches):
            for columns, names in _keys(shard_of(rows), types):
                first = {name: place for place, name in reversed([*enumerate(names)])}
                chosen = pa.array(first.values(), pa.int64())
                shards, no_errors = pa.array([number] * len(first), pa.int32()), pa.nulls(len(first))
                arrays = [no_errors, shards, pa.array(first, pa.binary()), *(column.take(chosen) for column in columns)]
                typed = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(typed, schema=schema)
    except _FAILURES as error:
        yield pa.RecordBatch.from_pylist([{ERROR: _message(error)}], schema=schema)


def _keys(shard: StoredShard, types: Sequence[pa.DataType]) -> Iterator[tuple[list[pa.Array], list[bytes]]]:
    """The key columns and the names of the shard's keys, in several parts. A key of which no event is left, but of
    which something is remembered, has only its name in the snapshot.
    """
    batches, known = from_bytes(shard.first).batches, set[bytes]()
    logged = (events for entry in shard.entries if (events := events_of([entry.events])) is not None)
    for events in [*(batches[name] for name in _EVENTS if name in batches), *(one.data for one in logged)]:
        columns = [events.column(f"{KEY_PREFIX}{i}") for i in range(len(types))]
        names = key_names(columns, len(events))
        known.update(names)
        yield columns, names
    listed = batches["names"].column("name").to_pylist() if "names" in batches else []
    if others := [name for name in listed if name not in known]:
        yield key_columns(others, types), others


def divide(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The parts of the new shards that come from each old one. `given` has the fields of a Division."""
    division = Division(*given)
    try:
        for _, rows in by_shard(batches):
            targets: dict[int, set[bytes]] = {}
            for row in rows:
                if row[PART] == KEY:
                    targets.setdefault(row["entries"], set()).add(row[VALUE])
            shard = shard_of(row for row in rows if row[PART] != KEY)
            yield from map(_row, _pieces(shard, targets, division))
    except _FAILURES as error:
        yield _failure(error)


def _pieces(shard: StoredShard, targets: Mapping[int, set[bytes]], division: Division) -> Iterator[dict[str, Any]]:
    matcher = _restored(shard, division, division.was_made_for)
    if len(matcher.advance_time(division.now)):
        raise SnapshotError(
            "a match or a timeout is due that has not been emitted: let the query run another micro-batch first"
        )
    made_for = json.loads(division.made_for)
    if unknown := {*matcher.open_keys} - set[bytes]().union(*targets.values()):
        raise SnapshotError(f"shard {shard.number} has {len(unknown)} keys of which it has no event")
    whole, open_ = snapshot_of(matcher, made_for), 0
    stored = StoredShard(shard.number, Head(FORMAT, b"", 0, 0, 0, division.now, 0, None), whole, ())
    for target, names in sorted(targets.items()):
        piece = matcher if len(targets) == 1 else _restored(stored, division, division.made_for)
        if len(targets) > 1:
            piece.keep_only(names)
        open_ += piece.open
        if not piece.is_idle:
            yield {
                SHARD: target,
                PART: PIECE,
                VALUE: snapshot_of(piece, made_for),
                **columns_of(_head(piece, division.now)),
            }
    if open_ != matcher.open and len(targets) > 1:
        raise SnapshotError(f"of {matcher.open:,} open partial matches of shard {shard.number} only {open_:,} are left")


def _head(matcher: ShardMatcher, now: int) -> Head:
    """The head of a snapshot, whose size does not matter."""
    head = first_head(0, Reached(now), matcher.open, timer_of(matcher))
    return head._replace(open_of_each=open_of_each(matcher))


def _restored(shard: StoredShard, division: Division, made_for: str) -> ShardMatcher:
    runner = unpacked_runner(division.runner)
    return restored_as_written(runner, shard, shard.head, json.loads(made_for), division.columns).matcher


def join(batches: Iterator[pa.RecordBatch], given: tuple[bytes]) -> Iterator[pa.RecordBatch]:
    """The new shards, from their parts. `given` has the shards' runner."""
    runner = unpacked_runner(given[0])
    try:
        for number, rows in by_shard(batches):
            yield _batch(_joined(number, rows, runner).rows)
    except _FAILURES as error:
        yield _failure(error)


def _joined(number: int, rows: Sequence[Mapping[str, Any]], runner: ShardRunner[ShardMatcher]) -> StoredShard:
    snapshot, heads = runner.joined([row[VALUE] for row in rows]), [*map(head_in, rows)]
    timer = min((head.timer for head in heads if head.timer is not None), default=None)
    head = first_head(len(snapshot), heads[0].reached, sum(head.open for head in heads), timer)
    each = zip(*(head.open_of_each for head in heads), strict=True)
    return StoredShard(number, head._replace(open_of_each=tuple(map(sum, each))), snapshot, ())


def _batch(rows: Iterator[dict[str, Any]]) -> pa.RecordBatch:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(ROW)
    return pa.RecordBatch.from_pylist([*rows], schema=schema)


def _row(row: dict[str, Any]) -> pa.RecordBatch:
    return _batch(iter([row]))


def _failure(error: Exception) -> pa.RecordBatch:
    return _row({ERROR: _message(error)})


def _message(error: Exception) -> str:
    return f"the checkpoint's state cannot be divided: {error}"
