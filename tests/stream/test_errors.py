"""Problems of a stream are reported before it starts, or by the query that meets them, with Cepheid's message first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import PAIR, events
from tests.stream.running import finished, run, streamed, written

from cepheid import CepheidWarning, Pattern, Report, SchemaError, detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "lateness": "2 seconds"}
ADVICE = (
    "To continue from the checkpoint, call detect with the former arguments; otherwise give the query a new checkpoint"
)
RESCALED = (
    "A query that is stopped can get another number of shards and go on: cepheid.streams.rebalance(checkpoint, "
    "shards=…), or cepheid stream rebalance CHECKPOINT --shards N"
)
OTHERWISE = (
    "its shards may be numbered otherwise, as by earlier versions of Cepheid: name the checkpoint, so that the query "
    "goes on with these numbers, as in detect(…, checkpoint='…')"
)


@pytest.fixture
def stream(streams: SparkSession, tmp_path: Path) -> DataFrame:
    written([events((0, "p", 0, "a"), (1, "p", 2, "b"))], tmp_path / "events")
    return streamed(streams, tmp_path / "events")


@contextmanager
def failing(message: str) -> Iterator[None]:
    """The block must fail with a StreamingQueryException that begins with the message."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as caught:
        yield
    found = str(caught.value).partition("terminated with exception: [USER_RAISED_EXCEPTION] ")[2]
    assert found.startswith(message), str(caught.value)[:2000]


def test_what_a_stream_needs(stream: DataFrame) -> None:
    """A stream needs event times and a lateness; arguments for finite inputs are refused; all problems are reported at
    once.
    """
    with pytest.raises(SchemaError) as caught:
        detect(stream, PAIR, key="k", time="at", as_of="2024-01-01", report=Report())
    assert str(caught.value) == (
        "lateness: say how late an event of the stream may come, as in lateness='2 minutes'. Events that come later "
        "count as late; a match waits that long\n"
        "as_of: the time of a stream is its watermark. Leave it out\n"
        "report: the counts of a stream are in the progress of its query: cepheid.streams.progress(query), or a "
        "progress_listener"
    )
    with pytest.raises(SchemaError) as caught:
        detect(stream, Pattern.begin("a"), key="k", time=None, sequence="id")
    assert str(caught.value) == (
        "time: a stream needs event times, as its watermark decides when a match is certain. Name a column"
    )
    with pytest.raises(SchemaError) as caught:
        detect(stream, PAIR, key="user", time="at", columns=["y"])
    lateness, *others = str(caught.value).splitlines()
    assert lateness.startswith("lateness: say how late")
    for column in ("user", "y"):
        assert any(f"'{column}'" in other for other in others), others


def test_state_that_can_only_grow(stream: DataFrame) -> None:
    """A stage without a window is reported in a warning, with the clauses that would bound the state."""
    endless = Pattern.begin("a").followed_by("b").where("x = 'b'")
    with pytest.warns(CepheidWarning) as caught:
        detect(stream, endless, **OPTIONS)
    (warning,) = caught
    assert str(warning.message) == (
        "a stream does not end, and keeps what is open: stage 'b': partial matches wait for it until an event matches, "
        "however long that takes, so their number can grow without bound. Add within(…), or within_previous(…) to "
        "this stage."
    )


def test_a_watermark_of_its_own(stream: DataFrame) -> None:
    """A stream that already has a watermark keeps it; a second watermark is refused."""
    marked = stream.withWatermark("at", "1 minute")
    assert detect(marked, PAIR, key="k", time="at").isStreaming
    with pytest.raises(SchemaError, match=r"^lateness: 'at' has a watermark already. Leave out one of them$"):
        detect(marked, PAIR, **OPTIONS)
    other = stream.selectExpr("*", "at AS sent").withWatermark("sent", "1 minute")
    with pytest.raises(SchemaError, match=r"^time: the stream has a watermark on 'sent' already, and Spark has only"):
        detect(other, PAIR, **OPTIONS)


def test_columns_that_differ_only_in_case(stream: DataFrame) -> None:
    with pytest.raises(SchemaError, match=r"^Spark does not distinguish the columns 'x' and 'X' of the events: rename"):
        detect(stream.selectExpr("*", "x AS X"), PAIR, **OPTIONS)


def test_another_store(stream: DataFrame) -> None:
    """Spark supports Python state in RocksDB only: this is reported before the query starts, with the setting
    to use.
    """
    setting = "spark.sql.streaming.stateStore.providerClass"
    streams = stream.sparkSession
    rocks_db = streams.conf.get(setting)
    streams.conf.set(setting, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(SchemaError) as caught:
            detect(stream, PAIR, **OPTIONS)
    finally:
        streams.conf.set(setting, rocks_db)
    assert str(caught.value) == (
        f"Spark stores the state of streams in RocksDB only: spark.conf.set({setting!r}, {rocks_db!r})"
    )


def test_without_protobuf(stream: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's workers would end without a message: a missing protobuf is reported before the query starts."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(SchemaError, match="with the package protobuf, which it does not install itself"):
        detect(stream, PAIR, **OPTIONS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lateness": "soon"}, "lateness: not a length of time: 'soon'"),
        ({"lateness": 5}, "lateness: a length of time is text such as '12 hours', or a timedelta; got int: 5"),
        ({"shards": 0}, "shards: a whole number from 1 to 65,536 is expected, got 0"),
        ({"shards": True}, "shards: a whole number from 1 to 65,536 is expected, got True"),
        ({"show_keys": "yes"}, "show_keys: True or False is expected, got 'yes'"),
        ({"checkpoint": 5}, "checkpoint: the path of a folder is expected, got 5"),
    ],
)
def test_wrong_arguments(stream: DataFrame, given: dict[str, Any], message: str) -> None:
    """Wrong arguments are named, with what is expected."""
    with pytest.raises(SchemaError) as caught:
        detect(stream, PAIR, **{**OPTIONS, **given})
    assert str(caught.value).startswith(message)


def test_a_condition_that_fails(stream: DataFrame, tmp_path: Path) -> None:
    """The query fails with a message that has the condition and the event."""
    fails = Pattern.begin("a").where("x = 'a'").next("b").where("id / a.id > 0").within("1 hour")
    rows = detect(stream, fails, shards=1, **{**OPTIONS, "lateness": "0 seconds"})
    written([events((2, "p", 3, "z"))], tmp_path / "events", first=1)
    with failing("division by zero in the condition of stage 'b' (id / a.id > 0), at the event with "):
        finished(rows.writeStream.format("noop"), tmp_path / "checkpoint")


def test_fewer_shards_when_a_timer_is_due(stream: DataFrame, tmp_path: Path) -> None:
    """Spark calls a shard that the query does not have: this is reported, also in a micro-batch without events."""
    no_data = "spark.sql.streaming.noDataMicroBatches.enabled"
    written([events((9, "p", 60, "z"))], tmp_path / "events", first=1)
    stream.sparkSession.conf.set(no_data, "false")  # the timer that is due then waits for the next event
    try:
        run(detect(stream, PAIR, shards=5, **OPTIONS), tmp_path / "checkpoint")
    finally:
        stream.sparkSession.conf.unset(no_data)
    written([events()], tmp_path / "events", first=2)
    reason = f"it has more shards or patterns; {OTHERWISE}"
    with failing(f"the checkpoint belongs to another query: {reason}. {ADVICE}. {RESCALED}"):
        finished(detect(stream, PAIR, shards=1, **OPTIONS).writeStream.format("noop"), tmp_path / "checkpoint")


def test_a_checkpoint_of_another_query(stream: DataFrame, tmp_path: Path) -> None:
    """On a checkpoint of a query with another pattern, other shards or another time zone, the changes are reported
    before anything is matched, with the way to other shards.
    """
    run(detect(stream, PAIR, shards=2, **OPTIONS), tmp_path / "checkpoint")
    written([events((2, "q", 3, "z"))], tmp_path / "events", first=1)
    streams = stream.sparkSession
    streams.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    changed = (
        'pattern.within was "10 seconds" and is "5 seconds"; shards was 2 and is 3; '
        'session.time_zone was "UTC" and is "Asia/Tokyo"'
    )
    try:
        with failing(f"the checkpoint belongs to another query: {changed}. {ADVICE}. {RESCALED}"):
            shorter = detect(stream, PAIR.within("5 seconds"), shards=3, time_zone="UTC", **OPTIONS)
            finished(shorter.writeStream.format("noop"), tmp_path / "checkpoint")
    finally:
        streams.conf.set("spark.sql.session.timeZone", "UTC")
    assert run(detect(stream, PAIR, shards=2, **OPTIONS), tmp_path / "checkpoint") == [[], []]
