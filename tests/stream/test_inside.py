"""partial_matches: the open partial matches of a query, read from its checkpoint while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.live.events import PAIR, at, events
from tests.stream.running import finished, streamed, written

from cepheid import Matcher, Pattern, SchemaError, SnapshotError, detect, partial_matches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "lateness": "2 seconds", "shards": 2}
BATCHES = [
    events((0, "p", 0, "a"), (1, "q", 1, "a"), (2, "r", 1, "b")),
    events((3, "p", 4, "b"), (4, "q", 5, "a"), (5, "s", 3, "a")),
]
NEEDED = "Give the checkpointLocation of a query of detect that has had events"


def waited_for(happened: Callable[[], object], query: StreamingQuery) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def in_any_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_while_it_runs(streams: SparkSession, tmp_path: Path) -> None:
    """After each micro-batch, the listing equals that of a matcher with the same events and time, in the
    events' types.
    """
    written(BATCHES[:1], tmp_path / "events")
    rows = detect(streamed(streams, tmp_path / "events"), PAIR, **OPTIONS)
    matcher = Matcher(PAIR, BATCHES[0], key="k", time="at")
    checkpoint = tmp_path / "checkpoint"
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    try:
        for number, latest in enumerate((1, 5)):
            written([BATCHES[number]], tmp_path / "events", first=number)
            watermark = at(latest - 2)
            reached = f"{watermark:%Y-%m-%dT%H:%M:%S}.000Z"
            waited_for(lambda: (query.lastProgress or {}).get("eventTime", {}).get("watermark") == reached, query)  # noqa: B023
            matcher.process(BATCHES[number])
            matcher.advance_time(watermark - timedelta(microseconds=1))
            listed = partial_matches(checkpoint).toArrow()
            assert in_any_order(listed) == in_any_order(matcher.partial_matches())
            assert query.isActive
    finally:
        query.stop()
    assert [field.name for field in listed.schema] == ["pattern", "k", "stage", "match_start", "deadline", "stages"]
    assert len(listed) == 2


def test_other_checkpoints_are_refused(streams: SparkSession, tmp_path: Path) -> None:
    """A missing checkpoint and one of another kind of query are refused, and the message says what is needed."""
    nothing, other = str(tmp_path / "nothing"), tmp_path / "other"
    with pytest.raises(SnapshotError) as caught:
        partial_matches(nothing)
    assert str(caught.value) == f"there is no checkpoint with state at {nothing!r}. {NEEDED}"
    written(BATCHES[:1], tmp_path / "events")
    stream = streamed(streams, tmp_path / "events")
    finished(stream.dropDuplicates(["k"]).writeStream.format("noop"), other)
    with pytest.raises(SnapshotError) as caught:
        partial_matches(other)
    reason = f"the checkpoint at {str(other)!r} belongs to another kind of query (dedupe)"
    assert str(caught.value) == f"{reason}. {NEEDED}"
    for wrong, message in (
        ({"pattern": 3}, "pattern: a Pattern or the name of one is expected, got 3"),
        ({"most": 0}, "most: a whole number from 1 is expected, got 0"),
    ):
        with pytest.raises(SchemaError) as refused:
            partial_matches(nothing, **wrong)  # type: ignore[arg-type]
        assert str(refused.value) == message


def is_a(event: Any) -> bool:
    return bool(event["x"] == "a")


@pytest.mark.long
def test_functions_and_tiers(streams: SparkSession, tmp_path: Path) -> None:
    """A pattern with functions must be given as an argument; among several tiers, the pattern must be named."""
    checkpoint = tmp_path / "checkpoint"
    first = Pattern.begin("a", name="first").where(is_a).next("b").where("x = 'b'").within("9 seconds")
    second = Pattern.begin("one", name="second").next("other").within("1 minute")
    written(BATCHES[:2], tmp_path / "events")
    stream: DataFrame = streamed(streams, tmp_path / "events")
    matches = detect(stream, first, **OPTIONS, columns="x")
    rows = detect(matches, second, key="k", time="detected_at", shards=2, columns="match_id")
    written([events((9, "p", 7, "a"))], tmp_path / "events", first=2)
    finished(rows.writeStream.format("noop"), checkpoint)
    with pytest.raises(SnapshotError) as caught:
        partial_matches(checkpoint)
    there = f"the checkpoint at {str(checkpoint)!r} has the patterns"
    assert str(caught.value).startswith(there)
    assert str(caught.value).endswith(". Choose one: pattern=…")
    with pytest.raises(SnapshotError, match=r"; 'third' is none of them\. Choose one: pattern=…$"):
        partial_matches(checkpoint, "third")
    with pytest.raises(SchemaError) as refused:
        partial_matches(checkpoint, "first")
    assert str(refused.value) == (
        "pattern: 'first' has conditions in Python (is_a), which a checkpoint does not store. Give the pattern: "
        "partial_matches(checkpoint, pattern)"
    )
    with pytest.raises(
        SnapshotError, match=r'belongs to another query: pattern.within was "9 seconds" and is "8 seconds"$'
    ):
        partial_matches(checkpoint, first.within("8 seconds"))
    streams.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # functions still see the time zone that the query had
    try:
        assert sorted(row.k for row in partial_matches(checkpoint, first).collect()) == ["q", "s"]
    finally:
        streams.conf.set("spark.sql.session.timeZone", "UTC")
    (row,) = partial_matches(checkpoint, "second").collect()
    assert (row.k, row.stage, row.match_start) == ("p", "one", at(4).replace(tzinfo=None))


def test_several_patterns(streams: SparkSession, tmp_path: Path) -> None:
    """Each of several patterns on one stream is read by its name, independently of the others."""
    checkpoint = tmp_path / "checkpoint"
    single = Pattern.begin("only").where("x = 'a'").next("z").where("x = 'z'")
    written([*BATCHES, events((9, "p", 7, "z"))], tmp_path / "events")
    stream = streamed(streams, tmp_path / "events")
    rows = detect(stream, {"pair": PAIR, "single": single}, **OPTIONS)
    finished(rows.writeStream.format("noop"), checkpoint)
    with pytest.raises(SnapshotError, match=r"has the patterns 'pair', 'single'\. Choose one"):
        partial_matches(checkpoint)
    listed = {name: partial_matches(checkpoint, name).collect() for name in ("pair", "single")}
    assert sorted((row.pattern, row.k, row.stage) for row in listed["pair"]) == [
        ("pair", "q", "a"),
        ("pair", "s", "a"),
    ]
    assert sorted((row.k, row.stage, row.deadline) for row in listed["single"]) == [
        ("q", "only", None),
        ("s", "only", None),
    ]
