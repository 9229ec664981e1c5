"""The code that runs in a Spark worker to list the open partial matches in the stored state of a stream's shards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import ConditionError, LimitExceeded, SkipError, SnapshotError
from cepheid.hosts.shards.log import restored
from cepheid.hosts.shards.store import Entry, Head
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.packing import unpacked_pattern
from cepheid.output.common import nullable
from cepheid.output.times import given_rows, given_schema
from cepheid.requests.request import ERROR

PART, WRITTEN, NUMBER, PASSED, VALUE, DIGEST = "part", "written", "number", "passed", "value", "digest"
"""Columns of a shard's stored parts: its head (without events, but with its format and the number of its entries), its
snapshot, and the entries of its log.
"""

HEAD, SNAPSHOT, ENTRY = range(3)


class Look(NamedTuple):
    """What a worker needs for listing partial matches."""

    runner: bytes
    """The pattern's runner, as `unpacked_pattern` takes it."""
    columns: pa.Schema
    """The columns of the events, as the matcher takes them."""
    made_for: str
    """What the checkpoint was written for, as JSON."""
    now: int
    """The watermark, in microseconds, for all shards, also for those that were not called at that time."""
    most: int
    """The most partial matches that are listed for each key."""


class Shard(NamedTuple):
    """A shard's stored state, as `store.ShardState`, and its head."""

    head: Head
    first: bytes
    entries: list[Entry]

    def snapshot(self) -> bytes:
        return self.first

    def log(self) -> list[Entry]:
        return self.entries


def list_open(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The open partial matches of the shards. Their parts come in order; `given` has the fields of a Look."""
    look = Look(*given)
    runner = unpacked_pattern(look.runner)
    rows, made_for = given_schema(runner.plan, runner.open_schema), json.loads(look.made_for)
    schema = pa.schema([pa.field(ERROR, pa.string()), *nullable(rows)])
    parts = (row for batch in batches for row in batch.to_pylist())
    try:
        for number, stored in groupby(parts, key=lambda row: row[SHARD]):
            shard = _shard(number, [*stored])
            matcher = restored(runner, shard, shard.head, made_for, look.columns).matcher
            matcher.advance_time(look.now)
            listed = given_rows(runner.plan, matcher.partial_matches(look.most), made_for["time_zone"])
            yield from pa.table([pa.nulls(len(listed), pa.string()), *listed.columns], schema=schema).to_batches()
    except (ConditionError, LimitExceeded, SkipError, SnapshotError) as error:
        yield pa.RecordBatch.from_pylist([{ERROR: f"the checkpoint's state does not fit: {error}"}], schema=schema)


def _shard(number: int, parts: list[dict[str, Any]]) -> Shard:
    heads = [part for part in parts if part[PART] == HEAD]
    snapshots = [part for part in parts if part[PART] == SNAPSHOT]
    if len(heads) != 1 or len(snapshots) != 1:
        raise SnapshotError(f"shard {number} has {len(heads)} heads and {len(snapshots)} snapshots, not one of each")
    entries = [Entry(part[PASSED], part[VALUE], part[DIGEST]) for part in parts if part[PART] == ENTRY]
    head = Head(heads[0][WRITTEN], b"", heads[0][NUMBER], 0, 0, heads[0][PASSED], 0, None)
    return Shard(head, snapshots[0][VALUE], entries)
