"""The streaming query that test_kill kills: `python killed.py FOLDER`. It reads and writes files in the folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.live.events import PAIR
from tests.stream.running import streamed

from cepheid import detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


SHARDS = 4


def session() -> SparkSession:
    return local_session("killed", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")


def started(spark: SparkSession, folder: Path, **further: Any) -> StreamingQuery:
    """The query over all events in the folder, started; `further` are arguments of `detect`."""
    rows = detect(
        streamed(spark, folder / "events"),
        PAIR,
        key="k",
        time="at",
        sequence="id",
        lateness="5 seconds",
        outputs=("matches", "timeouts", "late"),
        shards=SHARDS,
        **further,
    )
    return (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "found"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    started(session(), Path(sys.argv[1])).awaitTermination()
