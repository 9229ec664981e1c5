"""Writes the state of shards with a query that Spark runs for it: its processor stores what it is given.

Spark's own rewriter of state (new in 4.2, for its `repartition`) is neither public nor made for other keys. A query is
both: its first micro-batch leaves a state in the form in which Spark reads it, whatever the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, StructField, StructType

from cepheid.hosts.spark.rebalance.parts import HEAD, LEDGER, PART, ROW, VALUE, shard_of
from cepheid.hosts.spark.session import STATE_STORE
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.processor import SparkStore

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",  # a whole file a partition
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_PINNED = "spark.sql.streaming."
"""The start of the settings about the form of the state, which are those of the checkpoint."""
_TIME = "_time"
"""Spark drops rows that are not after the watermark, which is 1970 at first: all have a time one millisecond later."""


class StateWriter(StatefulProcessor):
    """Stores the shards whose parts it gets."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = SparkStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        parts = [row.asDict() for row in rows]
        for part in parts:
            part.update({name: bytes(part[name]) for name in ("state", VALUE, "digest") if part[name] is not None})
        if parts[0][PART] == LEDGER:
            self._store.write_ledger(parts[0][VALUE])
            return iter(())
        shard = shard_of([{**part, SHARD: key[0]} for part in parts])
        for number, entry in enumerate(shard.entries, 1):
            self._store.append(shard.head._replace(entries=number), entry)
        self._store.write(shard.head, shard.first, None)
        if shard.head.timer is not None:
            self._handle.registerTimer(shard.head.timer)
        return iter(())


class WrittenState(NamedTuple):
    """The state of shards that a query has written."""

    checkpoint: Path
    """That of the query."""
    open: dict[int, int]
    """How many partial matches are open in each shard, by its number."""


def write_state(
    spark: SparkSession, parts: DataFrame, folder: Path, settings: Mapping[str, str], partitions: int
) -> WrittenState:
    """Writes the state of the shards with these parts into so many partitions. `settings` are those of the checkpoint's
    micro-batch.

    Raises:
        PySparkException: the query has failed.
    """
    parts.write.parquet(str(folder / "parts"))
    heads = spark.read.parquet(str(folder / "parts")).where(F.col(PART) == HEAD).select(SHARD, "open")
    session = spark.newSession()
    pinned = {name: value for name, value in settings.items() if name.startswith(_PINNED)}
    for name, value in {**pinned, **_SETTINGS, "spark.sql.shuffle.partitions": str(partitions)}.items():
        session.conf.set(name, value)
    timed = (
        session.readStream.schema(ROW).parquet(str(folder / "parts")).withColumn(_TIME, F.timestamp_millis(F.lit(1)))
    )
    shards = timed.withWatermark(_TIME, "0 seconds").groupBy(SHARD)
    nothing = StructType([StructField("nothing", IntegerType())])
    written = shards.transformWithState(StateWriter(), nothing, outputMode="append", timeMode="eventTime")
    checkpoint = folder / "checkpoint"
    writer = written.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return WrittenState(checkpoint, dict(heads.collect()))
