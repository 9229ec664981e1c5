"""The streaming query that test_kill kills: `python killed.py FOLDER`. It reads and writes files in the folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.events import PAIR
from tests.stream.running import streamed

from cepheid import detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def main(folder: Path) -> None:
    spark = local_session("killed", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")
    started(spark, folder).awaitTermination()


def started(spark: SparkSession, folder: Path) -> StreamingQuery:
    """The query over all events in the folder, started."""
    rows = detect(
        streamed(spark, folder / "events"),
        PAIR,
        key="k",
        time="at",
        sequence="id",
        lateness="5 seconds",
        outputs=("matches", "timeouts", "late"),
        shards=4,
    )
    return (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "found"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
