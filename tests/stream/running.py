"""Streams for tests: each table is written as a file, and each file becomes a micro-batch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cepheid import Pattern, detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery


def written(batches: Sequence[pa.Table], folder: Path, first: int = 0) -> None:
    """Writes the batches as files, whose modification times give the order in which a stream reads them.

    A file gets its name, without which Spark does not see it, when it is whole and has its time. A running query that
    found it before that would know it as a file of today, and then take later ones with their old times as too old.
    """
    folder.mkdir(exist_ok=True)
    for number, batch in enumerate(batches, first):
        file = folder / f"{number:05}.parquet"
        unfinished = folder / f".{file.name}"
        pq.write_table(batch, unfinished)
        os.utime(unfinished, (1_000_000_000 + number, 1_000_000_000 + number))
        unfinished.rename(file)


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream with one file per micro-batch."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(pq.read_schema(next(folder.glob("*.parquet"))), prefer_timestamp_ntz=True)
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(rows: DataFrame, checkpoint: Path) -> list[list[dict[str, Any]]]:
    """The rows of each micro-batch, after all files are read."""
    found: list[list[dict[str, Any]]] = []

    def collect(batch: DataFrame, _: int) -> None:
        found.append(batch.toArrow().to_pylist())

    finished(rows.writeStream.foreachBatch(collect), checkpoint)
    return found


def finished(writer: DataStreamWriter, checkpoint: Path) -> StreamingQuery:
    """The query, after all files are read."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def detected(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    folder: Path,
    pattern: Pattern | Mapping[str, Pattern],
    **options: Any,
) -> list[list[dict[str, Any]]]:
    """The rows that detect emits for these batches, by micro-batch."""
    written(batches, folder / "events")
    given = {"shards": 2, **options}
    return run(detect(streamed(spark, folder / "events"), pattern, **given), folder / "checkpoint")
