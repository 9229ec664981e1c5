"""Since when a watermark stands still, and why: Spark's reports as they are, and a real query."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from tests.live.events import PAIR, events
from tests.stream.running import finished, streamed, written

from cepheid import detect, progress
from cepheid.cli.stream_view import View
from cepheid.hosts.spark.stream.standing import Standing, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report(second: int, watermark: int, newest: int | None = None, **rows: int) -> dict[str, Any]:
    """A report of Spark: the watermark and the newest event time are seconds; `rows` are those of each source."""
    times = {"watermark": _text(watermark)} | ({} if newest is None else {"max": _text(newest)})
    sources = [{"description": name, "numInputRows": count} for name, count in rows.items()]
    return {"timestamp": _text(second), "eventTime": times, "sources": sources}


def _text(second: int) -> str:
    return f"2024-01-01T00:00:{second:02}.000Z"


def stood(*reports: dict[str, Any]) -> Standing | None:
    watch = Watch()
    for one in reports:
        watch.add(one)
    return watch.standing


SINCE = datetime(2024, 1, 1, 0, 0, 20, tzinfo=UTC)
BEFORE = report(10, 0, 8, log=3)


def test_a_watermark_that_moves() -> None:
    """A watermark that the last report has moved does not stand, also if it stood before."""
    assert stood(BEFORE) is None
    assert stood(BEFORE, report(20, 8)) is None
    assert stood(BEFORE, report(20, 8), report(30, 8), report(40, 9)) is None


def test_a_query_without_a_watermark() -> None:
    """Nothing stands where there is no watermark, as in processing time."""
    reports = [{"timestamp": _text(second), "sources": []} for second in (10, 20, 30)]
    assert stood(*reports) is None


def test_triggers_that_had_nothing_to_do() -> None:
    """A listener hears of them without figures; they say that no event has come."""
    watch = Watch()
    watch.add(BEFORE)
    watch.add(report(20, 8, log=0))
    watch.idle(_text(30))
    assert watch.standing == Standing(SINCE, "no event has come since then")


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ([report(20, 8, log=0), report(30, 8, log=0)], "no event has come since then"),
        (
            [report(20, 8, 5, log=1), report(30, 8, log=0)],
            "events have come, but none later than the latest one before, which is of 2024-01-01T00:00:08.000Z",
        ),
        (
            [report(20, 8, 15, log=1, other=0), report(30, 8, log=0, other=0)],
            "no event has come from other, and the slowest source decides",
        ),
        (
            [report(20, 8, 15, log=1), report(30, 8, log=0)],
            "later events have come, and the watermark moves with the next micro-batch",
        ),
        (
            [report(20, 8, log=0), report(30, 8, 15, log=7)],
            "later events have come, and the watermark moves with the next micro-batch",
        ),
    ],
)
def test_why_a_watermark_stands(since: list[dict[str, Any]], why: str) -> None:
    """The reason is the first that the reports since then show."""
    assert stood(BEFORE, *since) == Standing(SINCE, why)


@pytest.mark.spark
def test_events_that_are_not_later(streams: SparkSession, tmp_path: Path) -> None:
    """A query whose events are all earlier than one before says since when its watermark stands, and why."""
    batches = [events((0, "p", 9, "a")), events((1, "p", 5, "z")), events((2, "p", 6, "b"))]
    written(batches, tmp_path / "events")
    rows = detect(streamed(streams, tmp_path / "events"), PAIR, key="k", time="at", lateness="0 seconds", shards=2)
    query = finished(rows.writeStream.format("noop"), tmp_path / "checkpoint")
    last = progress(query)
    assert last is not None
    assert last.standing is not None
    assert last.standing.why.startswith("events have come, but none later than the latest one before, which is of ")
    shown = StringIO()
    view = View("pattern", Console(file=shown, force_terminal=True, width=250))
    with view.shown():
        view.follow(query)
    assert f"stands still since {last.standing.since:%H:%M:%S} UTC: {last.standing.why}" in shown.getvalue()
