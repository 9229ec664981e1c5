"""The state of a streaming query, read from its checkpoint with Spark's state reader, also while the query runs.

It is the state after the last committed micro-batch. The ledger says which query the checkpoint belongs to and what its
plan is made from. So nothing else is needed unless the pattern has functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cepheid.errors import SnapshotError
from cepheid.hosts.spark.lift import checked
from cepheid.hosts.spark.shipping import mapped
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.listing import DIGEST, ENTRY, HEAD, NUMBER, PART, PASSED, SNAPSHOT, VALUE, WRITTEN
from cepheid.hosts.spark.stream.packing import unpacked_pattern
from cepheid.hosts.spark.stream.places import Places
from cepheid.hosts.spark.stream.processor import stored_open_of_each
from cepheid.hosts.spark.stream.shard import OF_QUERY, SESSION_ZONE, Matching
from cepheid.hosts.spark.stream.source import matchings, source_of
from cepheid.hosts.spark.stream.stored_state import (
    NEEDED,
    CheckpointedPattern,
    active_session,
    checkpointed_patterns,
    of_pattern,
    own_heads,
    shard_column,
)
from cepheid.kernel.arrays import NO_TIME
from cepheid.lang.documents import AnyPattern
from cepheid.matchers.snapshot import differences
from cepheid.output.common import nullable
from cepheid.output.times import given_schema
from cepheid.plan.limits import Limits
from cepheid.requests.request import ERROR, Request
from cepheid.requests.request_of import request_of

_LIST = "cepheid.hosts.spark.stream.listing.list_open"
_OF_QUERY = dict.fromkeys(OF_QUERY)


def checkpointed_pattern(checkpoint: str, name: str | None) -> CheckpointedPattern:
    """What is stored for the pattern with this name, or with this name and version, as name@version; None: for the only
    pattern. A plain name is that of the newest version that has had events.

    Raises:
        SnapshotError: there is no checkpoint with that pattern.
    """
    found = checkpointed_patterns(checkpoint)
    if not found:
        raise SnapshotError(
            f"the query of the checkpoint at {checkpoint!r} has had no events yet, or its files are damaged. {NEEDED}"
        )
    if name is None and len(found) == 1:
        return found[next(iter(found))]
    each = {stored.versioned: stored for stored in found.values()} | found
    if name not in each:
        known = ", ".join(sorted(map(repr, found)))
        problem = "" if name is None else f"; {name!r} is none of them"
        raise SnapshotError(
            f"the checkpoint at {checkpoint!r} has the patterns {known}{problem}. Choose one: pattern=…"
        )
    return each[name]


def open_partial_matches(stored: CheckpointedPattern, request: Request, most: int) -> DataFrame:
    """The open partial matches. They are read by an action; state that Spark has cleaned up by then is missing.

    Raises:
        SnapshotError: the checkpoint was written for another pattern than the request's, or by another version of
            Cepheid.
    """
    spark, matching = active_session(), matching_of([stored], request)
    look = matching.runner, matching.columns, json.dumps(stored.made_for), _now(spark, stored), most
    parts = _parts(spark, stored)
    runner = unpacked_pattern(matching.runner)
    rows = _row_type(given_schema(runner.plan, runner.open_schema))
    in_order = parts.repartition(SHARD).sortWithinPartitions(SHARD, PART, NUMBER)
    return checked(in_order.mapInArrow(mapped(_LIST, look, rows), rows)).drop(ERROR)


def request_of_stored(stored: Sequence[CheckpointedPattern], patterns: Sequence[AnyPattern]) -> Request:
    """The arguments of `detect` that the checkpoint was written with, for these patterns of one query."""
    each = [*map(_request_of_one, stored, patterns)]
    return replace(each[0], patterns=tuple(one.only for one in each), named=len(each) > 1)


def _request_of_one(stored: CheckpointedPattern, pattern: AnyPattern) -> Request:
    arguments = dict(stored.asked["arguments"])
    zone = arguments.pop("time_zone")  # a session's zone may be an offset, which request_of refuses
    return replace(request_of(pattern, limits=Limits(**stored.asked["limits"]), **arguments), time_zone=zone)


def matching_of(stored: Sequence[CheckpointedPattern], request: Request) -> Matching:
    """What shards of a checkpoint need to run that have this pattern, or these patterns, of the request.

    Raises:
        SnapshotError: as `open_partial_matches`.
    """
    first = stored[0]
    events = active_session().createDataFrame([], StructType.fromJson(first.asked["events"]))
    request = replace(request, standbys=first.placement.standbys)
    places = Places.of(request.names, together=len(stored) > 1)
    late_by, zone = first.asked.get("late_by", "start"), first.made_for[SESSION_ZONE]
    made = matchings(source_of(events, request, late_by, zone, places))
    each = [Matching(*fields) for fields in made.each.values()]  # type: ignore[arg-type]
    for one, matching in zip(stored, each, strict=True):  # the other patterns of the query do not matter here
        if changed := differences({**one.made_for, **_OF_QUERY}, {**json.loads(matching.made_for), **_OF_QUERY}):
            raise SnapshotError(f"the checkpoint at {one.checkpoint!r} belongs to another query: {'; '.join(changed)}")
    return each[0] if made.together is None else Matching(*made.together)  # type: ignore[arg-type]


def open_by_shard(checkpoint: str, batch: int) -> dict[str, dict[int, int] | None]:
    """How many partial matches of each pattern were open after a micro-batch, by the number of the shard within it.
    Shards without state are missing. A pattern that has had no events is missing, too: for example one of a second
    tier, before its first match. None: not known, because patterns have a shard together which was last called by a
    version that stored only their sum.
    """
    found = checkpointed_patterns(checkpoint)
    return {label: _open_by_shard(stored._replace(batch=batch)) for label, stored in found.items()}


def _open_by_shard(stored: CheckpointedPattern) -> dict[int, int] | None:
    heads = own_heads(active_session(), stored).select(shard_column(), "value.open", "value.state").collect()
    if not stored.placement.together:
        return {stored.placement.shard_of(number)[1]: open_ for number, open_, _ in heads}
    each = {stored.placement.shard_of(number)[1]: stored_open_of_each(state) for number, _, state in heads}
    return {shard: open_[stored.number] for shard, open_ in each.items()} if all(each.values()) else None


def _now(spark: SparkSession, stored: CheckpointedPattern) -> int:
    """The watermark of the shard that was called last."""
    passed = own_heads(spark, stored).agg(F.max("value.passed")).collect()[0][0]
    return NO_TIME if passed is None else int(passed)


def _parts(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    """The head, the snapshot and the log entries of each shard."""
    snapshots, log = (of_pattern(spark, stored, variable) for variable in ("snapshot", "log"))
    entry = {PASSED: "user_map_value.passed", VALUE: "user_map_value.events", DIGEST: "user_map_value.digest"}
    head = {WRITTEN: "value.format", NUMBER: "value.entries", PASSED: "value.passed"}
    heads = _part(own_heads(spark, stored), HEAD, head)
    return heads.union(_part(snapshots, SNAPSHOT, {VALUE: "value.snapshot"})).union(
        _part(log, ENTRY, {NUMBER: "user_map_key.number", **entry})
    )


def _part(state: DataFrame, part: int, fields: dict[str, str]) -> DataFrame:
    types = {WRITTEN: "int", NUMBER: "int", PASSED: "bigint", VALUE: "binary", DIGEST: "binary"}
    given = {name: F.col(fields[name]) if name in fields else F.lit(None) for name in types}
    columns = [column.cast(types[name]).alias(name) for name, column in given.items()]
    return state.select(shard_column().alias(SHARD), F.lit(part).alias(PART), *columns)


def _row_type(rows: pa.Schema) -> StructType:
    """The type of the workers' rows."""
    fields = pa.schema([pa.field(ERROR, pa.string()), *nullable(rows)])
    return from_arrow_schema(fields, prefer_timestamp_ntz=True)
