"""Runs Spark on a few events, as the tests do, so that Java writes the classes that it has loaded to an archive. `make
test` calls it. Loading Spark's classes without the archive takes a third of the processor time of a short query.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session

PATTERN = Pattern.begin("a").where("x = 1").next("b").where("x = 2").within("1 minute")


def main() -> None:
    spark = local_session("classes", settings={"spark.sql.shuffle.partitions": "1"}, time_zone="UTC")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "events").mkdir()
        at = [datetime(2026, 1, 1, minute=minute, tzinfo=UTC) for minute in range(4)]
        pq.write_table(pa.table({"k": ["p"] * 4, "at": at, "x": [1, 2, 1, 2]}), folder / "events" / "0.parquet")
        events = spark.read.parquet(str(folder / "events"))
        detect(events, PATTERN, key="k", time="at").collect()
        stream = spark.readStream.schema(events.schema).parquet(str(folder / "events"))
        rows = detect(stream, PATTERN, key="k", time="at", lateness="1 second", shards=1)
        writer = rows.writeStream.format("parquet").option("path", str(folder / "found"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(600)
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    assert gateway is not None
    spark.stop()
    gateway.proc.stdin.close()  # ends Java, which then writes the archive
    assert gateway.proc.wait(120) == 0


if __name__ == "__main__":
    main()
