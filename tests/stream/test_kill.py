"""Killed at any point and started again, a query writes each row once."""

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
    """SIGKILL of Spark and its workers at random points, before, in and behind a commit, then to the end in another
    process: the rows of an uninterrupted run, each once.
    """
    rows = random_events(7, 1200, 40)
    written([*delivered(rows, 8, 5, BATCHES - 1), events((-1, "end", 300, "z"))], tmp_path / "events")
    killed(SCRIPT, tmp_path, seed=9)
    started(streams, tmp_path).awaitTermination()
    found = sinked(tmp_path / "found")
    expected = detect(events(*rows), PAIR, key="k", time="at", sequence="id", as_of=at(295), outputs=ALL)
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())


def sinked(folder: Path) -> pa.Table:
    """What the file sink has committed: the files that its log names."""
    files = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        lines = entry.read_text().splitlines()[1:]
        files |= {line.split('"path":"file://')[1].split('"')[0] for line in lines}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)])
