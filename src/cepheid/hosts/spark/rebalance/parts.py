"""The stored state of shards as rows, one for each part: how workers pass it on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cepheid.errors import SnapshotError
from cepheid.hosts.shards.store import Entry, Head
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.processor import HEAD as HEAD_COLUMNS
from cepheid.hosts.spark.stream.processor import head_of, stored_head
from cepheid.hosts.spark.stream.stored_state import CheckpointedPattern, shard_column, state_of
from cepheid.requests.request import ERROR

PART, VALUE, DIGEST = "part", "value", "digest"
HEAD, SNAPSHOT, ENTRY, LEDGER, KEY, PIECE = range(6)
"""What a row is: a head, a snapshot, an entry of a log, a ledger; a key (its name is the value, and `entries` says the
shard that it will belong to); or a part of the snapshot of a shard that is to be, with its head.
"""

ROW = StructType(
    [
        StructField(ERROR, StringType()),
        StructField(SHARD, IntegerType()),
        StructField(PART, IntegerType()),
        *HEAD_COLUMNS.fields,
        StructField(VALUE, BinaryType()),
        StructField(DIGEST, BinaryType()),
    ]
)
"""The columns: those of a head, a value and its digest. `entries` is also the number of an entry, and the target of a
key. A worker that fails returns a row with the reason.
"""
_HEAD = tuple(HEAD_COLUMNS.names)


def head_in(row: Mapping[str, Any]) -> Head:
    """The head in the columns of this row."""
    return head_of([row[name] for name in _HEAD])


def columns_of(head: Head) -> dict[str, Any]:
    """The columns of a row that have the head."""
    return dict(zip(_HEAD, stored_head(head), strict=True))


class StoredShard(NamedTuple):
    """The parts of a shard; as `store.ShardState`."""

    number: int
    head: Head
    first: bytes
    entries: tuple[Entry, ...]

    def snapshot(self) -> bytes:
        return self.first

    def log(self) -> tuple[Entry, ...]:
        return self.entries

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """Its parts as rows."""
        yield {SHARD: self.number, PART: HEAD, **columns_of(self.head)}
        yield {SHARD: self.number, PART: SNAPSHOT, VALUE: self.first}
        for number, entry in enumerate(self.entries, 1):
            values = {"passed": entry.passed, VALUE: entry.events, DIGEST: entry.digest}
            yield {SHARD: self.number, PART: ENTRY, "entries": number, **values}


def shard_of(rows: Iterable[Mapping[str, Any]]) -> StoredShard:
    """The shard whose parts these rows are.

    Raises:
        SnapshotError: it lacks parts.
    """
    each = [*rows]
    heads, snapshots = ([row for row in each if row[PART] == part] for part in (HEAD, SNAPSHOT))
    number = each[0][SHARD]
    if len(heads) != 1 or len(snapshots) != 1:
        raise SnapshotError(f"shard {number} has {len(heads)} heads and {len(snapshots)} snapshots, not one of each")
    logged = sorted((row for row in each if row[PART] == ENTRY), key=lambda row: row["entries"])
    entries = tuple(Entry(row["passed"], row[VALUE], row[DIGEST]) for row in logged)
    return StoredShard(number, head_in(heads[0]), snapshots[0][VALUE], entries)


def by_shard(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The rows of each shard, whose rows follow each other."""
    rows = (row for batch in batches for row in batch.to_pylist())
    return ((shard, [*each]) for shard, each in groupby(rows, key=lambda row: row[SHARD]))


def parts_of(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    """The rows of all shards of an operator, but without ledgers."""
    head = {name: f"value.{name}" for name in _HEAD}
    entry = {name: f"user_map_value.{name}" for name in ("passed", DIGEST)}
    entry |= {"entries": "user_map_key.number", VALUE: "user_map_value.events"}
    variables = {"head": (HEAD, head), "snapshot": (SNAPSHOT, {VALUE: "value.snapshot"}), "log": (ENTRY, entry)}
    each = [_as_rows(state_of(spark, stored, name), *given) for name, given in variables.items()]
    return each[0].union(each[1]).union(each[2])


def _as_rows(state: DataFrame, part: int, fields: Mapping[str, str]) -> DataFrame:
    given = {SHARD: shard_column(), PART: F.lit(part)} | {name: F.col(field) for name, field in fields.items()}
    columns = [given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in ROW.fields]
    return state.select(*columns)
