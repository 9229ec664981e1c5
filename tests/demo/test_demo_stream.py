"""`cepheid demo-stream`: the flights replayed as a stream."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cepheid import detect
from cepheid.cli.demos.demo_stream import run_demo_stream
from cepheid.demo.pattern import LATE_CHAIN
from cepheid.demo.replay import departures_in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.slow
def test_chains_are_printed_as_they_happen(spark: SparkSession) -> None:
    """Three days in three seconds: each chain that is certain at the end is printed, as for a finite input."""
    assert spark.getActiveSession() is not None
    printed = StringIO()
    found = run_demo_stream(Console(file=printed, width=200), speed=86_400, days=3)
    departures = departures_in_order(3)
    last = max(departures.column("departed_at").to_pylist())
    expected = detect(departures, LATE_CHAIN, key="tailnum", time="departed_at", as_of=last)
    lines = [line for line in printed.getvalue().splitlines() if line.startswith("N")]
    assert len(lines) == found
    assert 0 < found <= expected.num_rows
    first = expected.sort_by("detected_at").column("tailnum")[0].as_py()
    assert any(line.startswith(first) for line in lines)
