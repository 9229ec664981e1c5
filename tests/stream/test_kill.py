"""A query that is killed at any point and restarted writes each row once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.live.events import ALL, PAIR, at, events
from tests.searching import KILLS
from tests.stream.killed import started
from tests.stream.killed_with_copies import KEYS, with_copies
from tests.stream.killing import killed
from tests.stream.running import written
from tests.stream.supervised import END, expected, summary, supervised
from tests.stream.test_spark_stream import delivered, random_events

from cepheid import detect
from cepheid.hosts.spark.supervised.ledger import SetLedger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 2 * KILLS
SCRIPT = Path(__file__).with_name("killed.py")
WITH_COPIES = SCRIPT.with_name("killed_with_copies.py")
SWITCHED = SCRIPT.with_name("switched.py")


@pytest.mark.spark
@pytest.mark.slow
def test_kills(partitioned: SparkSession, tmp_path: Path) -> None:
    """Spark and its workers get SIGKILL at random points, before, during and after a commit; then another process runs
    the query to the end. The rows are those of an uninterrupted run, each once.
    """
    rows = random_events(7, 1200, 40)
    written([*delivered(rows, 8, 5, BATCHES - 1), events((-1, "end", 300, "z"))], tmp_path / "events")
    killed(SCRIPT, tmp_path, seed=9)
    started(partitioned, tmp_path).awaitTermination()
    found = committed_rows(tmp_path / "found")
    expected = detect(events(*rows), PAIR, key="k", time="at", sequence="id", as_of=at(295), outputs=ALL)
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(KILLS < 10, reason="runs in make soak: test_kills kills the same query without copies")
def test_kills_with_copies(partitioned: SparkSession, tmp_path: Path) -> None:
    """Spark and its workers get SIGKILL at random points while keys get copies and lose them, at any moment. The rows
    are those of a finite input, each once.
    """
    rows = random_events(8, 1200, KEYS)
    written([*delivered(rows, 8, 5, BATCHES - 1), events((-1, "end", 300, "z"))], tmp_path / "events")
    killed(WITH_COPIES, tmp_path, seed=10)
    with_copies(partitioned, tmp_path).awaitTermination()
    found = committed_rows(tmp_path / "found")
    expected = detect(events(*rows), PAIR, key="k", time="at", sequence="id", as_of=at(295), outputs=ALL)
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())
    assert len([*(tmp_path / "checkpoint" / "copies" / "decisions").glob("*.json")]) > 2 * KILLS


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(KILLS < 5, reason="each kill starts Spark anew, and test_kills is the sample: make soak does it")
def test_kills_around_switches(partitioned: SparkSession, tmp_path: Path) -> None:
    """Spark and the supervisor get SIGKILL around switches; each start deploys the next version. Each micro-batch has
    the set of patterns that the ledger has for it, and each row is there once.
    """
    rows, count = random_events(7, 60 * (KILLS + 2), 12), 3 * (KILLS + 2)
    size = len(rows) // count
    written([events(*rows[i * size : (i + 1) * size]) for i in range(count)], tmp_path / "events")
    killed(SWITCHED, tmp_path, seed=11)
    written([events(one) for one in END], tmp_path / "events", first=count)
    news: list[Any] = []
    supervisor = supervised(partitioned, tmp_path, news)
    supervisor.query.processAllAvailable()
    supervisor.stop()
    sets = SetLedger(partitioned, str(tmp_path / "checkpoint")).sets()
    assert len(sets) > 1
    begun: dict[Any, int] = {}
    ends: dict[Any, int] = {}
    found = summary(committed_rows(tmp_path / "found"))
    for one in sets:
        first = size * (_files_before(tmp_path, one.first))
        for deployment in one.deployments:
            begun.setdefault((deployment.name, deployment.version, deployment.pattern), first)
            if deployment.drains:
                ends.setdefault((deployment.name, deployment.version, deployment.pattern), first)
    each = [
        expected(pattern, rows, since=first, starts_before=ends.get((name, version, pattern)), version=version)
        for (name, version, pattern), first in begun.items()
    ]
    assert found == sorted(row for part in each for row in part)


def _files_before(folder: Path, batch: int) -> int:
    """The number of files that micro-batches before this one have read."""
    if batch == 0:
        return 0
    last = (folder / "checkpoint" / "offsets" / str(batch - 1)).read_text().splitlines()[-1]
    return int(last.partition(":")[2].strip(" }")) + 1


def committed_rows(folder: Path) -> pa.Table:
    """The rows that the file sink has committed: those in the files that its log names."""
    files = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        lines = entry.read_text().splitlines()[1:]
        files |= {line.split('"path":"file://')[1].split('"')[0] for line in lines}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)])
