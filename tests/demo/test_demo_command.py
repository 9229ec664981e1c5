"""`cepheid demo`: what it prints and what it writes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from cepheid.cli.demos.demo import run_demo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the command prints into a pipe, and the folder that it writes into, replacing the former content."""
    assert spark.getActiveSession() is not None
    output, printed = tmp_path_factory.mktemp("demo") / "out" / "demo", StringIO()
    output.mkdir(parents=True)
    for name in ("matches.parquet", "chain.html", "chain.png"):
        (output / name).write_text("of an earlier run")
    run_demo(output, Console(file=printed, width=80))
    return printed.getvalue(), output


@pytest.mark.long
def test_reports_what_was_left_out(demo: tuple[str, Path]) -> None:
    words = " ".join(demo[0].split())
    assert "336,776 flights. The events are 328,521 departures of 4,037 aircraft." in words
    assert "Left out: 8,255 cancelled flights" in words
    assert "1,175 departures without an arrival delay" in words


def test_prints_tables_without_progress(demo: tuple[str, Path]) -> None:
    """Output into a pipe has no control codes, and no line is wider than 80 columns."""
    printed, output = demo
    assert "The 5 longest of 3,823 late chains" in printed
    assert "N228JB" in printed
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "EV ExpressJet Airlines Inc. 1,469 3 51,356 28.6" in rows
    assert "\x1b" not in printed
    assert max(len(line) for line in printed.splitlines() if str(output) not in line) <= 80


def test_writes_all_chains_and_the_pictures(demo: tuple[str, Path]) -> None:
    _, output = demo
    matches = pq.read_table(output / "matches.parquet")
    assert matches.num_rows == 3_823
    assert {"match_id", "tailnum", "match_start", "match_end", "detected_at", "late", "legs"} <= set(
        matches.column_names
    )
    assert "N228JB" in (output / "chain.html").read_text(encoding="utf-8")
    assert (output / "chain.png").read_bytes().startswith(b"\x89PNG")


def test_the_session_is_unchanged(spark: SparkSession, demo: tuple[str, Path]) -> None:
    """The session still runs, with the settings that it had before."""
    assert demo[1].exists()
    assert spark.range(1).count() == 1
