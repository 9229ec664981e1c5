"""The watermark of a stream: events wait for it, deadlines pass with it, and events before it are late."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import ALL, PAIR, events, summaries
from tests.stream.running import detected

from cepheid import Pattern, detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}


def test_watermark(streams: SparkSession, tmp_path: Path) -> None:
    """The watermark is the latest time of all events, also irrelevant ones, minus the lateness; it applies from the
    next batch on. A match is emitted when the watermark is after its last event, and a timeout when it is after the
    deadline, also if the shard gets no further events. Events before the watermark are late, also irrelevant ones.
    """
    batches = [
        events((0, "p", 0, "a"), (1, "q", 1, "a"), (2, "r", 2, "a")),
        events((3, "p", 7, "b"), (4, "q", 3, "z")),  # watermark 0
        events((5, "q", 5, "b"), (6, "p", 4.999, "a"), (12, "p", 4.5, "z")),  # watermark 5: the last two are late
        events((7, "nobody", 12, "z")),
        events((8, "nobody", 14.001, "z")),  # watermark 10
        events((9, "p", 14, "z")),  # watermark 12.001: r's deadline is 12
        events((10, "nobody", 20, "z"), (11, "r", 11, "a")),  # late
    ]
    rows = detected(streams, batches, tmp_path, PAIR, lateness="2 seconds", shards=5, **OPTIONS)
    assert [sorted(summaries(batch)) for batch in rows] == [
        [],
        [],
        [("late", (6,), 4.999999), ("late", (12,), 4.999999)],
        [],
        [("match", (0, 3), 7.0), ("match", (1, 5), 5.0)],
        [("timeout", (2,), 12.0)],
        [("late", (11,), 12.000999)],
        [],
    ]


def test_absence(streams: SparkSession, tmp_path: Path) -> None:
    """An absence is certain exactly when the watermark is after its end: a timer has a precision of a millisecond, and
    fires in the micro-batch with that watermark, even if its shard has no events. Spark's documentation promises
    neither.
    """
    (row,) = streams.sql("SELECT pmod(hash('p'), 5) AS p, pmod(hash('z'), 5) AS z").collect()
    assert row.p != row.z
    alone = Pattern.begin("a").where("x = 'a'").not_followed_by("b").where("x = 'b'").within("10 seconds")
    batches = [
        events((0, "p", 0, "a"), (1, "q", 1, "a")),
        events((2, "q", 4, "b"), (3, "z", 10, "z")),
        events((4, "z", 10.001, "z")),  # watermark 10
        events((5, "z", 30, "z")),  # watermark 10.001
    ]
    rows = detected(streams, batches, tmp_path, alone, lateness="0 seconds", shards=5, **OPTIONS)
    assert [summaries(batch) for batch in rows] == [[], [], [], [("match", (0,), 10.0)], []]


def test_sessions_in_which_timestamps_are_local(streams: SparkSession) -> None:
    """The watermark of local times is an instant, whatever TIMESTAMP means in the SQL of the session."""
    clock = streams.readStream.format("rate").load()
    local = clock.selectExpr("CAST(timestamp AS TIMESTAMP_NTZ) AS at", "1 AS k", "value AS n")
    streams.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        zone = "Europe/Berlin"
        found = detect(local, Pattern.begin("a"), key="k", time="at", time_zone=zone, lateness="1 second", shards=1)
        assert found.schema["match_start"].dataType.typeName() == "timestamp_ntz"
    finally:
        streams.conf.unset("spark.sql.timestampType")
