"""A query that is killed at any point and restarted writes each row once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.live.events import ALL, PAIR, at, events
from tests.searching import KILLS
from tests.stream.killed import started
from tests.stream.killing import killed
from tests.stream.running import written
from tests.stream.test_spark_stream import delivered, random_events

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 2 * KILLS
SCRIPT = Path(__file__).with_name("killed.py")


@pytest.mark.spark
@pytest.mark.slow
def test_kills(streams: SparkSession, tmp_path: Path) -> None:
    """Spark and its workers get SIGKILL at random points, before, during and after a commit; then another process runs
    the query to the end. The rows are those of an uninterrupted run, each once.
    """
    rows = random_events(7, 1200, 40)
    written([*delivered(rows, 8, 5, BATCHES - 1), events((-1, "end", 300, "z"))], tmp_path / "events")
    killed(SCRIPT, tmp_path, seed=9)
    started(streams, tmp_path).awaitTermination()
    found = committed_rows(tmp_path / "found")
    expected = detect(events(*rows), PAIR, key="k", time="at", sequence="id", as_of=at(295), outputs=ALL)
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())


def committed_rows(folder: Path) -> pa.Table:
    """The rows that the file sink has committed: those in the files that its log names."""
    files = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        lines = entry.read_text().splitlines()[1:]
        files |= {line.split('"path":"file://')[1].split('"')[0] for line in lines}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)])
