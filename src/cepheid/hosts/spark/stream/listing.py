"""What runs in a Spark worker to list what a stream's shards have open, from what they keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import ConditionError, LimitExceeded, SkipError, SnapshotError
from cepheid.hosts.spark.stream.shard_log import restored
from cepheid.hosts.spark.stream.shard_matcher import OfStages, StageShardMatcher, shard_pattern
from cepheid.hosts.spark.stream.store import SHARD, Entry, Head
from cepheid.output.stages import open_schema
from cepheid.requests.request import ERROR

PART, WRITTEN, NUMBER, PASSED, VALUE, DIGEST = "part", "written", "number", "passed", "value", "digest"
"""Columns of what is read of a shard: its head (without events, but with its format and the number of its entries), its
snapshot, and the entries of its log.
"""

HEAD, SNAPSHOT, ENTRY = range(3)


class Look(NamedTuple):
    """What a worker is to list."""

    plan: bytes
    """A pickled Plan."""
    columns: pa.Schema
    """Of the events, as the matcher takes them."""
    made_for: str
    """What the checkpoint is of: JSON."""
    now: int
    """Microseconds: time has passed to here for all shards, also for those that were not called then."""
    most: int
    """Of each key."""


class Shard(NamedTuple):
    """A `stream_store.Kept`, and its head."""

    head: Head
    first: bytes
    entries: list[Entry]

    def snapshot(self) -> bytes:
        return self.first

    def log(self) -> list[Entry]:
        return self.entries


def list_open(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The open partial matches of the shards, whose parts come in order; `given` is a Look's."""
    look = Look(*given)
    pattern = shard_pattern(look.plan)
    assert isinstance(pattern, OfStages)
    rows = open_schema(pattern.plan)
    schema = pa.schema([pa.field(ERROR, pa.string()), *(field.with_nullable(nullable=True) for field in rows)])
    parts = (row for batch in batches for row in batch.to_pylist())
    try:
        for number, kept in groupby(parts, key=lambda row: row[SHARD]):
            shard = _shard(number, [*kept])
            matcher = restored(pattern, shard, shard.head, json.loads(look.made_for), look.columns).matcher
            assert isinstance(matcher, StageShardMatcher)
            matcher.advance_time(look.now)
            listed = matcher.live.partial_matches(look.most)
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
