"""Events in one topic, and the query that writes their matches to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from tests.live.events import ALL, PAIR
from tests.searching import KILLS

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

EVENTS, MATCHES = "events", "matches"
COUNT = 400 * KILLS
OPTIONS = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}


def written(spark: SparkSession, events: pa.Table, servers: str, topic: str = EVENTS) -> None:
    """Writes the events to a topic in order, as JSON, with the key that chooses the partition."""
    frame = spark.createDataFrame(events).coalesce(1).select("k", F.to_json(F.struct("*")).alias("value"))
    writer = frame.withColumnRenamed("k", "key").write.format("kafka")
    writer.option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def matches_into(
    spark: SparkSession, servers: str, checkpoint: Path, topics: tuple[str, str] = (EVENTS, MATCHES), shards: int = 4
) -> StreamingQuery:
    """The query over all events in the first topic, in micro-batches of COUNT / (2 * KILLS) events. Its matches go to
    the second one.
    """
    events_in, matches_in = topics
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", COUNT // (2 * KILLS))
    texts = source.option("subscribe", events_in).load().select(F.col("value").cast("string"))
    events = texts.select(F.from_json("value", "id BIGINT, k STRING, at TIMESTAMP, x STRING").alias("e")).select("e.*")
    rows = messages(detect(events, PAIR, lateness="30 seconds", shards=shards, **OPTIONS))
    sink = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", matches_in)
    return sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def messages(rows: DataFrame) -> DataFrame:
    """The rows as messages: the match id is the key, and the row as JSON is the value."""
    return rows.select(F.col("match_id").alias("key"), F.to_json(F.struct("*")).alias("value"))


def read(spark: SparkSession, servers: str, topic: str = MATCHES) -> list[tuple[str, str]]:
    """The key and value of each message in a topic of matches."""
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return [(row.key.decode(), row.value.decode()) for row in source.load().select("key", "value").collect()]
