"""The state of a streaming query, read from its checkpoint with Spark's state reader, also while the query runs.

It is the state after the last committed micro-batch. The ledger says which query the checkpoint belongs to and what its
plan is made from. So nothing else is needed unless the pattern has functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cepheid.errors import SchemaError, SnapshotError
from cepheid.hosts.spark.shipping import mapped
from cepheid.hosts.spark.stream.detect import checked
from cepheid.hosts.spark.stream.ledger import SHARD, from_ledger, pattern_of_ledger
from cepheid.hosts.spark.stream.listing import DIGEST, ENTRY, HEAD, NUMBER, PART, PASSED, SNAPSHOT, VALUE, WRITTEN
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.hosts.spark.stream.shard import Matching
from cepheid.hosts.spark.stream.source import DIVIDED_BY, SESSION_ZONE, matchings, source_of
from cepheid.kernel.arrays import NO_TIME
from cepheid.matchers.snapshot import differences
from cepheid.output.times import given_schema
from cepheid.requests.request import ERROR, Request

_LIST = "cepheid.hosts.spark.stream.listing.list_open"
_TOGETHER = {"patterns": None, "supervised": None, DIVIDED_BY: None}
"""Entries of `made_for` that are about all patterns of the query together."""
_VARIABLES = {"head", "snapshot", "log", "ledger"}
_NEEDED = "Give the checkpointLocation of a query of detect that has had events"


class CheckpointedPattern(NamedTuple):
    """The state of a pattern's operator in a query."""

    checkpoint: str
    operator: int
    batch: int
    """The last committed micro-batch."""
    number: int
    """The pattern's number within the operator."""
    made_for: dict[str, Any]
    asked: dict[str, Any]

    @property
    def name(self) -> str:
        """The pattern's name."""
        return str(self.made_for["pattern.name"])

    @property
    def versioned(self) -> str:
        """The pattern's name and version."""
        return f"{self.name}@{self.asked.get('pattern', {}).get('version', '1')}"


def checkpointed_pattern(checkpoint: str, name: str | None) -> CheckpointedPattern:
    """What is stored for the pattern with this name, or with this name and version, as name@version; None: for the only
    pattern. A plain name is that of the newest version that has had events.

    Raises:
        SnapshotError: there is no checkpoint with that pattern.
    """
    found = _checkpointed_patterns(checkpoint)
    if not found:
        raise SnapshotError(
            f"the query of the checkpoint at {checkpoint!r} has had no events yet, or its files are damaged. {_NEEDED}"
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
    spark = _session()
    columns = StructType.fromJson(stored.asked["events"])
    events = spark.createDataFrame([], columns)
    source = source_of(events, request, "start", stored.made_for[SESSION_ZONE])
    (matching,) = (Matching(*parts) for parts in matchings(source))  # type: ignore[arg-type]
    # The other patterns of the query do not matter here.
    if changed := differences({**stored.made_for, **_TOGETHER}, {**json.loads(matching.made_for), **_TOGETHER}):
        raise SnapshotError(f"the checkpoint at {stored.checkpoint!r} belongs to another query: {'; '.join(changed)}")
    look = matching.runner, matching.columns, json.dumps(stored.made_for), _now(spark, stored), most
    parts = _parts(spark, stored)
    runner = unpacked_runner(matching.runner)
    rows = _row_type(given_schema(runner.plan, runner.open_schema))
    in_order = parts.repartition(SHARD).sortWithinPartitions(SHARD, PART, NUMBER)
    return checked(in_order.mapInArrow(mapped(_LIST, look, rows), rows)).drop(ERROR)


def open_by_shard(checkpoint: str, batch: int) -> dict[str, dict[int, int]]:
    """How many partial matches of each pattern were open after a micro-batch, by the number of the shard within it.
    Shards without state are missing. A pattern that has had no events is missing, too: for example one of a second
    tier, before its first match.
    """
    found = _checkpointed_patterns(checkpoint)
    return {label: _open_by_shard(stored._replace(batch=batch)) for label, stored in found.items()}


def open_by_number(checkpoint: str, shards: int) -> dict[int, int]:
    """How many partial matches are open after the last committed micro-batch, by the number of the pattern. Patterns
    without state are missing: nothing of them is open, and no events wait. Each pattern has this many shards.
    """
    spark, found = _session(), dict[int, int]()
    for operator in _ours(_all_operators(spark, checkpoint)):
        stored = CheckpointedPattern(checkpoint, operator.operatorId, operator.maxBatchId, 0, {}, {})
        numbers = F.floor(_shard() / shards).cast("int")
        found |= dict(_heads(spark, stored).groupBy(numbers).agg(F.sum("value.open")).collect())
    return found


def query_of(checkpoint: str) -> str:
    """The id of the checkpoint's query. Spark writes it there when the query starts."""
    return str(json.loads(_session().read.text(f"{checkpoint}/metadata").collect()[0][0])["id"])


def _checkpointed_patterns(checkpoint: str) -> dict[str, CheckpointedPattern]:
    """What is stored for each pattern that has had events, by name; for earlier versions of a pattern, by name and
    version, as in `Places.labels`.

    Raises:
        SnapshotError: there is no checkpoint of a query of detect.
    """
    spark = _session()
    operators = _all_operators(spark, checkpoint)
    if not operators:
        raise SnapshotError(f"there is no checkpoint with state at {checkpoint!r}. {_NEEDED}")
    ours = _ours(operators)
    if not ours:
        names = ", ".join(operator.operatorName for operator in operators)
        raise SnapshotError(f"the checkpoint at {checkpoint!r} belongs to another kind of query ({names}). {_NEEDED}")
    each = [stored for operator in ours for stored in _patterns_of(spark, checkpoint, operator)]
    newest = {stored.name: stored for stored in sorted(each, key=lambda stored: stored.number)}
    return {stored.name if stored is newest[stored.name] else stored.versioned: stored for stored in each}


def _all_operators(spark: SparkSession, checkpoint: str) -> list[Any]:
    """The stateful operators of the checkpoint's query."""
    return spark.read.format("state-metadata").load(checkpoint).collect()


def _ours(operators: list[Any]) -> list[Any]:
    """Those whose state is that of shards."""
    return [operator for operator in operators if _variables(operator.operatorProperties) >= _VARIABLES]


def _open_by_shard(stored: CheckpointedPattern) -> dict[int, int]:
    heads = _own_heads(_session(), stored).select(_shard(), "value.open").collect()
    return {shard - stored.number * stored.made_for["shards"]: open_ for shard, open_ in heads}


def _session() -> SparkSession:
    try:
        return SparkSession.active()
    except PySparkException as error:
        advice = "Start one, as with SparkSession.builder.getOrCreate()"
        raise SchemaError(f"a checkpoint is read with Spark, and there is no active session here. {advice}") from error


def _variables(properties: str | None) -> set[str]:
    """The names of an operator's state variables."""
    known = json.loads(properties) if properties else {}
    return {variable["stateName"] for variable in known.get("stateVariables", [])}


def _patterns_of(spark: SparkSession, checkpoint: str, operator: Any) -> Iterator[CheckpointedPattern]:
    """What the operator stores for each pattern."""
    stored = CheckpointedPattern(checkpoint, operator.operatorId, operator.maxBatchId, 0, {}, {})
    for row in _state(spark, stored, "ledger").collect():
        made_for, asked = from_ledger(bytes(row.value.ledger))
        yield stored._replace(number=pattern_of_ledger(row.key[SHARD]), made_for=made_for, asked=asked)


def _state(spark: SparkSession, stored: CheckpointedPattern, variable: str) -> DataFrame:
    """The variable's state after one micro-batch, even if the query has continued since."""
    reader = spark.read.format("statestore").options(operatorId=stored.operator, batchId=stored.batch)
    return reader.option("stateVarName", variable).load(stored.checkpoint)


def _shard() -> Column:
    return F.col("key")[SHARD]


def _heads(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    """The heads of all patterns' shards."""
    return _state(spark, stored, "head")


def _own_heads(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    return _of_pattern(spark, stored, "head")


def _of_pattern(spark: SparkSession, stored: CheckpointedPattern, variable: str) -> DataFrame:
    """The variable's state in the pattern's shards."""
    shards = stored.made_for["shards"]
    return _state(spark, stored, variable).where(
        _shard().between(stored.number * shards, (stored.number + 1) * shards - 1)
    )


def _now(spark: SparkSession, stored: CheckpointedPattern) -> int:
    """The watermark of the shard that was called last."""
    passed = _own_heads(spark, stored).agg(F.max("value.passed")).collect()[0][0]
    return NO_TIME if passed is None else int(passed)


def _parts(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    """The head, the snapshot and the log entries of each shard."""
    snapshots, log = (_of_pattern(spark, stored, variable) for variable in ("snapshot", "log"))
    entry = {PASSED: "user_map_value.passed", VALUE: "user_map_value.events", DIGEST: "user_map_value.digest"}
    head = {WRITTEN: "value.format", NUMBER: "value.entries", PASSED: "value.passed"}
    heads = _part(_own_heads(spark, stored), HEAD, head)
    return heads.union(_part(snapshots, SNAPSHOT, {VALUE: "value.snapshot"})).union(
        _part(log, ENTRY, {NUMBER: "user_map_key.number", **entry})
    )


def _part(state: DataFrame, part: int, fields: dict[str, str]) -> DataFrame:
    types = {WRITTEN: "int", NUMBER: "int", PASSED: "bigint", VALUE: "binary", DIGEST: "binary"}
    given = {name: F.col(fields[name]) if name in fields else F.lit(None) for name in types}
    columns = [column.cast(types[name]).alias(name) for name, column in given.items()]
    return state.select(_shard().alias(SHARD), F.lit(part).alias(PART), *columns)


def _row_type(rows: pa.Schema) -> StructType:
    """The type of the workers' rows."""
    fields = [pa.field(ERROR, pa.string()), *(field.with_nullable(nullable=True) for field in rows)]
    return from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
