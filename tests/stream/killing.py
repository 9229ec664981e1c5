"""Queries in processes of their own, which are killed at random points and restarted.

Each is a script `SCRIPT FOLDER …` with its checkpoint in the folder.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import TESTS
from tests.searching import STREAM_KILLS


def killed(script: Path, folder: Path, *arguments: str, seed: int) -> None:
    """Starts the query and kills it, STREAM_KILLS times: within a micro-batch first, then also around commits."""
    drawn = random.Random(seed)
    logs = ["offsets", *drawn.choices(["offsets", "commits"], k=STREAM_KILLS - 1)]
    for log in logs:
        _run_until(script, folder, arguments, log, seconds=drawn.random() / 2)


def _process(script: Path, folder: Path, arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """The query, with all its processes in one process group."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(script), str(folder), *arguments]
    with (folder / "told").open("ab") as output:
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, start_new_session=True, stdout=output, stderr=output
        )


def _run_until(script: Path, folder: Path, arguments: tuple[str, ...], log: str, *, seconds: float) -> None:
    """Runs the query and kills it `seconds` after it has written the next entry of that log of its checkpoint."""
    entries = _entries(folder, log)
    query = _process(script, folder, arguments)
    try:
        while _entries(folder, log) <= entries:
            assert query.poll() is None, (folder / "told").read_text()
            time.sleep(0.01)
        time.sleep(seconds)
    finally:
        os.killpg(query.pid, signal.SIGKILL)
        query.wait()


def _entries(folder: Path, log: str) -> int:
    return sum(1 for _ in (folder / "checkpoint" / log).glob("[0-9]*"))
