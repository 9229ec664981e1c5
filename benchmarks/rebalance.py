"""Measures how long a stream with a million open partial matches takes to get other numbers of shards and partitions.

PYTHONPATH=. python benchmarks/rebalance.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN, KEYS = 1_000_000, 100_000
START = 1_704_067_200_000_000
PAIR = Pattern.begin("a").where("kind = 1").followed_by("b").where("kind = 2 AND price > a.price").within("10 days")


def main() -> None:
    spark = local_session("rebalance", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _open(spark, folder)
        for shards, partitions in ((32, 4), (16, 2), (16, 4)):
            began = time.monotonic()
            done = rebalance(folder / "checkpoint", shards=shards, partitions=partitions)
            seconds = time.monotonic() - began
            (pattern,) = done.patterns
            size = sum(path.stat().st_size for path in (folder / "checkpoint").rglob("*") if path.is_file())
            parts = f"{pattern.before} → {shards} shards, {done.partitions_before} → {partitions} partitions"
            sys.stdout.write(f"{parts}: {seconds:.1f} s, {pattern.open:,} open, {size / 1e6:.0f} MB\n")
    spark.stop()


def _open(spark: SparkSession, folder: Path) -> None:
    """Runs a query until so many partial matches are open."""
    drawn = np.random.default_rng(1)
    columns = {
        "user": pa.array(drawn.integers(0, KEYS, OPEN + 1)),
        "at": pa.array(START + np.arange(OPEN + 1) * 1000).cast(pa.timestamp("us", "UTC")),
        "kind": pa.array([1] * OPEN + [0], pa.int32()),
        "price": pa.array(drawn.random(OPEN + 1)),
    }
    (folder / "events").mkdir()
    pq.write_table(pa.table(columns), folder / "events" / "first.parquet")
    events = spark.readStream.schema(spark.read.parquet(str(folder / "events")).schema).parquet(str(folder / "events"))
    rows = detect(events, PAIR, key="user", time="at", lateness="0 seconds")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
