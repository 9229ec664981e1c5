"""Queries for the streams benchmarks. They read files, one per micro-batch, to the last file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.hosts.spark.stream.progress import Progress, progress_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def stream_of(session: SparkSession, folder: Path) -> DataFrame:
    """The Parquet files of the folder as a stream, by name and time of writing, one per micro-batch."""
    schema = session.read.parquet(str(folder)).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


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
