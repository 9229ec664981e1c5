"""Killed at any point and started again, a query writes each row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import TESTS
from tests.live.events import ALL, PAIR, at, events
from tests.stream.running import written
from tests.stream.test_spark_stream import delivered, random_events

from cepheid import detect

KILLS = 3
BATCHES = 9


@pytest.mark.spark
@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    """SIGKILL of Spark and its workers at three points, before, in and behind a commit: the rows of an uninterrupted
    run, each once.
    """
    rows = random_events(7, 1200, 40)
    written([*delivered(rows, 8, 5, BATCHES - 1), events((-1, "end", 300, "z"))], tmp_path / "events")
    drawn = random.Random(9)
    for log in drawn.sample(["offsets", "commits"] * 2, KILLS):
        run_until(tmp_path, log, 1 + sum(1 for _ in (tmp_path / "checkpoint" / log).glob("[0-9]*")), drawn.random() / 2)
    assert process(tmp_path).wait(timeout=300) == 0
    found = sinked(tmp_path / "found")
    expected = detect(events(*rows), PAIR, key="k", time="at", sequence="id", as_of=at(295), outputs=ALL)
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())


def process(folder: Path) -> subprocess.Popen[bytes]:
    """The query, with all its processes in a group of their own."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(folder)]
    with (folder / "told").open("ab") as told:
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, start_new_session=True, stdout=told, stderr=told
        )


def run_until(folder: Path, log: str, entries: int, seconds: float) -> None:
    """Runs the query and kills it, so long after its log of the checkpoint has as many entries."""
    query = process(folder)
    try:
        while sum(1 for _ in (folder / "checkpoint" / log).glob("[0-9]*")) < entries + 1:
            assert query.poll() is None, (folder / "told").read_text()
            time.sleep(0.01)
        time.sleep(seconds)
    finally:
        os.killpg(query.pid, signal.SIGKILL)
        query.wait()


def sinked(folder: Path) -> pa.Table:
    """What the file sink has committed: the files that its log names."""
    files = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        lines = entry.read_text().splitlines()[1:]
        files |= {line.split('"path":"file://')[1].split('"')[0] for line in lines}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)])
