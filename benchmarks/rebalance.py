"""Measures how long a stream with a million open partial matches, or with 200,000 open occurrences or stored intervals,
takes to get other numbers of shards and partitions.

PYTHONPATH=. python benchmarks/rebalance.py [stages | occurrences | intervals]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cepheid import OccurrencePattern, Pattern, detect
from cepheid.hosts.spark.session import local_session
from cepheid.intervals import interval_pattern
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_704_067_200_000_000


class Case(NamedTuple):
    """A pattern of which so many events stay open."""

    pattern: Any
    open: int
    keys: int
    time: str | tuple[str, str] = "at"


CASES = {
    "stages": Case(
        Pattern.begin("a")
        .where("kind = 'A'")
        .followed_by("b")
        .where("kind = 'B' AND price > a.price")
        .within("10 days"),
        open=1_000_000,
        keys=100_000,
    ),
    "occurrences": Case(
        OccurrencePattern.of("(?a:A ; ?b:B)_10d [b.price > a.price]").taxonomy("kind").policy("unrestricted"),
        open=200_000,
        keys=20_000,
    ),
    "intervals": Case(
        interval_pattern("EVENT PAL(A a before B b) WITHIN 10 days").taxonomy("kind"),
        open=200_000,
        keys=20_000,
        time=("at", "until"),
    ),
}


def main(kind: str) -> None:
    case = CASES[kind]
    spark = local_session("rebalance", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _open(spark, folder, case)
        for shards, partitions in ((32, 4), (16, 2), (16, 4)):
            began = time.monotonic()
            done = rebalance(folder / "checkpoint", shards=shards, partitions=partitions)
            seconds = time.monotonic() - began
            (pattern,) = done.patterns
            size = sum(path.stat().st_size for path in (folder / "checkpoint").rglob("*") if path.is_file())
            parts = f"{pattern.before} → {shards} shards, {done.partitions_before} → {partitions} partitions"
            held = f"{case.open:,} stored" if kind == "intervals" else f"{pattern.open:,} open"
            sys.stdout.write(f"{parts}: {seconds:.1f} s, {held}, {size / 1e6:.0f} MB\n")
    spark.stop()


def _open(spark: SparkSession, folder: Path, case: Case) -> None:
    """Runs a query until so many events are open."""
    drawn = np.random.default_rng(1)
    times = START + np.arange(case.open + 1) * 1000
    columns = {
        "user": pa.array(drawn.integers(0, case.keys, case.open + 1)),
        "at": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "until": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "kind": pa.array(["A"] * case.open + ["Z"]),
        "price": pa.array(drawn.random(case.open + 1)),
    }
    (folder / "events").mkdir()
    pq.write_table(pa.table(columns), folder / "events" / "first.parquet")
    events = spark.readStream.schema(spark.read.parquet(str(folder / "events")).schema).parquet(str(folder / "events"))
    rows = detect(events, case.pattern, key="user", time=case.time, lateness="0 seconds")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:] or ["stages"])
