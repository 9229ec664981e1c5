"""What a streaming query has stored in its checkpoint, read with Spark's state reader, also while the query runs.

It is the state after the last committed micro-batch. The ledger says which query the checkpoint belongs to and what its
plan is made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import SchemaError, SnapshotError
from cepheid.hosts.spark.stream.ledger import SHARD, from_ledger, pattern_of_ledger
from cepheid.hosts.spark.stream.placement import Placement

_VARIABLES = {"head", "snapshot", "log", "ledger"}
NEEDED = "Give the checkpointLocation of a query of detect that has had events"


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
    def placement(self) -> Placement:
        """How its shards are numbered."""
        return Placement.of(self.made_for)

    @property
    def versioned(self) -> str:
        """The pattern's name and version."""
        return f"{self.name}@{self.asked.get('pattern', {}).get('version', '1')}"


def checkpointed_patterns(checkpoint: str) -> dict[str, CheckpointedPattern]:
    """What is stored for each pattern that has had events, by name; for earlier versions of a pattern, by name and
    version, as in `Places.labels`.

    Raises:
        SnapshotError: there is no checkpoint of a query of detect.
    """
    spark = active_session()
    operators = all_operators(spark, checkpoint)
    if not operators:
        raise SnapshotError(f"there is no checkpoint with state at {checkpoint!r}. {NEEDED}")
    ours = our_operators(operators)
    if not ours:
        names = ", ".join(operator.operatorName for operator in operators)
        raise SnapshotError(f"the checkpoint at {checkpoint!r} belongs to another kind of query ({names}). {NEEDED}")
    each = [stored for operator in ours for stored in _patterns_of(spark, checkpoint, operator)]
    newest = {stored.name: stored for stored in sorted(each, key=lambda stored: stored.number)}
    return {stored.name if stored is newest[stored.name] else stored.versioned: stored for stored in each}


def stored_patterns(spark: SparkSession, checkpoint: str | None) -> list[CheckpointedPattern]:
    """What the checkpoint has for each of its patterns, in all tiers; nothing without a checkpoint, or if nothing is
    stored in it.
    """
    if checkpoint is None:
        return []
    ours = our_operators(all_operators(spark, checkpoint))
    return [stored for operator in ours for stored in _patterns_of(spark, checkpoint, operator)]


def open_by_number(checkpoint: str, placement: Placement) -> dict[int, int]:
    """How many partial matches are open after the last committed micro-batch, by the number of the pattern. Patterns
    without state are missing: nothing of them is open, and no events wait.
    """
    spark, found = active_session(), dict[int, int]()
    for operator in our_operators(all_operators(spark, checkpoint)):
        stored = CheckpointedPattern(checkpoint, operator.operatorId, operator.maxBatchId, 0, {}, {})
        open_in = dict[int, int]()
        for shard, open_ in _heads(spark, stored).select(shard_column(), "value.open").collect():
            pattern, _ = placement.shard_of(shard)
            open_in[pattern] = open_in.get(pattern, 0) + open_
        found |= open_in
    return found


def query_of(checkpoint: str) -> str:
    """The id of the checkpoint's query. Spark writes it there when the query starts."""
    return str(json.loads(active_session().read.text(f"{checkpoint}/metadata").collect()[0][0])["id"])


def all_operators(spark: SparkSession, checkpoint: str) -> list[Any]:
    """The stateful operators of the checkpoint's query."""
    return spark.read.format("state-metadata").load(checkpoint).collect()


def our_operators(operators: list[Any]) -> list[Any]:
    """Those whose state is that of shards."""
    return [operator for operator in operators if _variables(operator.operatorProperties) >= _VARIABLES]


def active_session() -> SparkSession:
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
    for row in state_of(spark, stored, "ledger").collect():
        made_for, asked = from_ledger(bytes(row.value.ledger))
        yield stored._replace(number=pattern_of_ledger(row.key[SHARD]), made_for=made_for, asked=asked)


def state_of(spark: SparkSession, stored: CheckpointedPattern, variable: str) -> DataFrame:
    """The variable's state after one micro-batch, even if the query has continued since."""
    reader = spark.read.format("statestore").options(operatorId=stored.operator, batchId=stored.batch)
    return reader.option("stateVarName", variable).load(stored.checkpoint)


def shard_column() -> Column:
    return F.col("key")[SHARD]


def _heads(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    """The heads of all patterns' shards."""
    return state_of(spark, stored, "head")


def own_heads(spark: SparkSession, stored: CheckpointedPattern) -> DataFrame:
    return of_pattern(spark, stored, "head")


def of_pattern(spark: SparkSession, stored: CheckpointedPattern, variable: str) -> DataFrame:
    """The variable's state in the pattern's shards."""
    numbers = stored.placement.numbers(stored.number).tolist()
    return state_of(spark, stored, variable).where(shard_column().isin(numbers))
