"""The live view of `cepheid stream`."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.live.events import PAIR, events
from tests.stream.running import finished, streamed, written

from cepheid import detect
from cepheid.cli.stream_view import View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_restarted_query(streams: SparkSession, tmp_path: Path) -> None:
    """After a restart, the number of open partial matches continues from that in the checkpoint; dropped events are
    reported.
    """
    checkpoint = tmp_path / "checkpoint"
    shown_twice = []
    for number, batch in enumerate(
        (
            events((0, "p", 0, "a"), (1, "q", 1, "a"), (2, "r", 2, "z")),
            events((3, "p", 4, "b"), (4, "s", 5, "a"), (5, "s", None, "a"), (6, "t", 6, "z")),
        )
    ):
        written([batch], tmp_path / "events", first=number)
        rows = detect(
            streamed(streams, tmp_path / "events"),
            PAIR,
            key="k",
            time="at",
            lateness="0 seconds",
            nulls="drop",
            shards=2,
        )
        query = finished(rows.writeStream.format("noop"), checkpoint)
        shown = StringIO()
        view = View("pattern", Console(file=shown, force_terminal=True, width=100), checkpoint)
        with view.shown():
            view.follow(query)
        shown_twice.append((view.summary().partition(" (")[0], shown.getvalue()))
    (first, drawn), (second, drawn_anew) = shown_twice
    assert first == "3 events, 0 matches, 0 timeouts, 0 late events"
    assert second == "4 events, 1 matches, 0 timeouts, 0 late events, 1 without time"
    assert "open partial matches  2" in drawn
    assert "open partial matches  2" in drawn_anew
    assert "busiest shard         1.0 times the mean of all" in drawn or "busiest shard         2.0" in drawn
    assert "  pattern " in drawn
    assert "KiB of state" in drawn
    assert "watermark             2024-01-01T00:00:06.000Z" in drawn_anew
