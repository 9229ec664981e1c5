"""Queries for the streams benchmarks. They read files, one per micro-batch, to the last file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from written_values import WRITTEN, WrittenValues

from cepheid import Pattern
from cepheid.hosts.spark.stream.detect import events_by_shard
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.progress import Progress, progress_of
from cepheid.hosts.spark.stream.source import source_of
from cepheid.requests.request_of import request_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def stream_of(session: SparkSession, folder: Path) -> DataFrame:
    """The Parquet files of the folder as a stream, by name and time of writing, one per micro-batch."""
    schema = session.read.parquet(str(folder)).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def packed(events: DataFrame, pattern: Pattern, **options: Any) -> DataFrame:
    """The events of each shard as one value, as `detect` with these options packs them."""
    return events_by_shard(source_of(events, request_of(pattern, **options), "start", "UTC"))


def value_written(events: DataFrame, pattern: Pattern, **options: Any) -> DataFrame:
    """`detect` without matchers: each shard writes its events into one value of state. Spark's workers import its
    processor by name, from PYTHONPATH.
    """
    shards = packed(events, pattern, **options).groupBy(SHARD)
    return shards.transformWithState(WrittenValues(), WRITTEN, outputMode="append", timeMode="eventTime")


def find_benchmarks() -> None:
    """Spark's workers, started from now on, import the modules of this folder."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def run_to_end(rows: DataFrame, checkpoint: Path) -> StreamingQuery:
    """Runs the query to the end of its files, and discards its rows."""
    query = (
        rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    return query


def batch_times(query: StreamingQuery) -> list[int]:
    """The milliseconds of each micro-batch with events, from planning to the commit."""
    return [told["durationMs"]["triggerExecution"] for told in query.recentProgress if told["numInputRows"]]


def events_a_second(query: StreamingQuery, *, least: int, warm_up: int) -> float:
    """Events per second of the micro-batches with at least `least` events, without the first `warm_up` of them."""
    told = [told for told in query.recentProgress if told["numInputRows"] >= least][warm_up:]
    milliseconds = sum(int(one["durationMs"]["triggerExecution"]) for one in told)
    return sum(int(one["numInputRows"]) for one in told) / milliseconds * 1000


def each_progress(query: StreamingQuery) -> list[Progress]:
    """The progress of each micro-batch of a query of `detect`."""
    return [told for one in query.recentProgress if (told := progress_of(json.loads(one.json))) is not None]


def progress_of_all(query: StreamingQuery) -> Progress:
    """The progress of all micro-batches of a query of `detect` together."""
    each = each_progress(query)
    together = each[0]
    for one in each[1:]:
        together = one.after(together)
    return together
