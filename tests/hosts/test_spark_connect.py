"""`detect` on a DataFrame of Spark Connect, whose client has no JVM: only the public DataFrame API is available."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A separate process: a process has either a classic session or one of Connect.
DETECTION = """
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

from cepheid import Pattern, PatternError, Report, detect
from cepheid.hosts.spark.session import STATE_STORE

spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")
times = pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=i) for i in range(6)], pa.timestamp("us", "UTC"))
events = pa.table({"k": ["x", "x", "x", "y", "y", "z"], "at": times, "n": [1, 2, 5, 1, 4, 1]})
frame = spark.createDataFrame(events)
assert ".connect." in type(frame).__module__
start = Pattern.begin("a").where("n = 1").followed_by("b").within("1 hour")
patterns = [start.where("n > a.n + 1"), start.where(lambda e, matched: e["n"] > matched["a"][0]["n"] + 1, name="f")]
asking = ({"measures": {"d": "b.n - a.n"}}, {"outputs": ("matches", "timeouts", "late")})
report = Report()
for pattern, asked in zip(patterns, asking):
    options = {"key": "k", "time": "at", "columns": ["n"], **asked}
    expected = detect(events, pattern, **options).to_pylist()
    found = detect(frame, pattern, report=report, **options).toArrow().to_pylist()
    assert len(found) == (3 if "outputs" in asked else 2)
    assert sorted(map(str, found)) == sorted(map(str, expected)), (found, expected)
    assert report.counts.events == 6 and report.counts.matches == 2
try:
    detect(frame, Pattern.begin("a").where("m = 1"), key="k", time="at")
except PatternError as error:
    assert "no column named 'm'" in str(error)
else:
    raise AssertionError("a column that is not there was accepted")
spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
with TemporaryDirectory() as folder:
    frame.coalesce(1).write.parquet(f"{folder}/events")
    stream = spark.readStream.schema(frame.schema).parquet(f"{folder}/events")
    rows = detect(stream, patterns[0], lateness="0 seconds", shards=2, key="k", time="at", columns=["n"])
    sink = rows.writeStream.format("parquet").option("path", f"{folder}/found").trigger(availableNow=True)
    assert sink.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination(120)
    before = times[-1].as_py() - timedelta(seconds=1)
    expected = detect(events, patterns[0], key="k", time="at", columns=["n"], as_of=before)
    found = spark.read.parquet(f"{folder}/found").toArrow().to_pylist()
    assert len(found) == 2 and sorted(map(str, found)) == sorted(map(str, expected.to_pylist())), (found, expected)
spark.stop()
print("the same")
"""


@pytest.mark.spark
@pytest.mark.slow
def test_connect_gives_the_same() -> None:
    """Matches, measures, counts and problems are those of the other hosts; the same holds for a stream's matches."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", DETECTION], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.stdout.splitlines()[-1:] == ["the same"], done.stderr[-3000:]
