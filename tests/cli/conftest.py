"""Shared parts of the command line tests: a pattern, events in each kind of file, and ways to run a command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cepheid.cli.app import app

PATTERN = """\
name: rising
within: 1 hour
stages:
  - begin: low
    where: price < 10
  - next: high
    where:
      - price > low.price
      - price >= 10
"""
START = datetime(2024, 5, 1, 10)  # noqa: DTZ001 the times of the files have no zone
PRICES = [("a", 5.0), ("a", 12.0), ("b", 8.0), ("b", 7.0), ("b", 11.0), ("a", 13.0)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rising.yaml and the same six events as events.parquet, events.csv and events.jsonl."""
    (tmp_path / "rising.yaml").write_text(PATTERN)
    events = pa.table(
        {
            "symbol": [symbol for symbol, _ in PRICES],
            "at": pa.array([START + timedelta(minutes=minute) for minute in range(len(PRICES))], pa.timestamp("us")),
            "price": [price for _, price in PRICES],
        }
    )
    pq.write_table(events, tmp_path / "events.parquet")
    pyarrow.csv.write_csv(events, tmp_path / "events.csv")
    lines = [json.dumps({**event, "at": event["at"].isoformat()}) for event in events.to_pylist()]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    return tmp_path


class Done(NamedTuple):
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def cepheid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs a command in the folder, within this process, as if its output went into a pipe."""
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Done:
        result = CliRunner().invoke(app, arguments, prog_name="cepheid", catch_exceptions=False)
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process(folder: Path) -> Callable[..., Done]:
    """Runs a command in the folder as a process of its own, with pipes for its output."""

    def run(*arguments: str) -> Done:
        command = [sys.executable, "-m", "cepheid", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    return run
