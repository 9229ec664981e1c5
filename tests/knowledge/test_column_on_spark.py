"""Columns of the answers to filters on Spark: batches, streams and Connect."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid import OccurrencePattern, SchemaError, add_column, detect
from cepheid.knowledge import individual
from knowledge.test_column import BELOW, BUILDING, EXPECTED, NAMES, OF_POINT, READINGS, ROOM, ROOM_1, pairs
from stream.running import run, streamed, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> SparkSession:
    """The session of the run, with one partition."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def in_order(table: pa.Table, *names: str) -> list[str]:
    return sorted(map(str, pairs(table, *names)))


def test_a_batch(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The answers are those in process, by a broadcast join and without a query."""
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("column", "made")
    found = add_column(spark.createDataFrame(READINGS), BUILDING.column(ROOM, "room", OF_POINT))
    assert not tracker.getJobIdsForGroup("column")
    assert found.columns == ["n", "point", "room"]
    assert in_order(found.toArrow(), "n", "room") == sorted(map(str, EXPECTED))
    found.explain()
    assert "BroadcastHashJoin" in capsys.readouterr().out


def test_names_and_several_columns(spark: SparkSession) -> None:
    """Columns of names, and columns whose names have points."""
    events = pa.table({"the.name": [*NAMES], "b`c": ["room1"] * len(NAMES)})
    asked = {"point": individual("the.name"), "room": individual("{b`c}")}
    column = BUILDING.column(ROOM, "equipment", asked)
    expected = add_column(events, column, name="unit")
    found = add_column(spark.createDataFrame(events), column, name="unit")
    assert in_order(found.toArrow(), "the.name", "unit") == in_order(expected, "the.name", "unit")
    assert expected["unit"].null_count == 3


VALUES = {
    "area": pa.array([Decimal("12.5"), None], pa.decimal128(4, 1)),
    "number": pa.array([1, 2], pa.int32()),
    "since": pa.array([date(2020, 1, 1), None], pa.date32()),
    "opens": pa.array([timedelta(hours=8), None], pa.duration("us")),
    "checked": pa.array([datetime(2026, 1, 1, 8, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "height": pa.array([2.5, float("nan")], pa.float64()),
    "heated": pa.array([True, False], pa.bool_()),
    "code": pa.array(["r-1", "r-2"], pa.string()),
}


def test_values(spark: SparkSession) -> None:
    """Columns of each type are values by which answers are found."""
    frame = spark.createDataFrame(pa.table(VALUES))
    for name, values in VALUES.items():
        column = BUILDING.column(f"{name}(?room, ?value)", "room", {"value": name})
        found = add_column(frame.select(name), column).toArrow()
        assert in_order(found, "room") == in_order(add_column(pa.table({name: values}), column), "room"), name
        assert (ROOM_1,) in pairs(found, "room")


def test_answers_of_each_type(spark: SparkSession) -> None:
    """The column has the type that it has in process."""
    events = pa.table({"room": ["room1", None]})
    frame = spark.createDataFrame(events)
    for name in ("area", "since", "opens", "checked", "clock", "height", "heated", "code"):
        column = BUILDING.column(f"{name}(?room, ?value)", "value", {"room": individual("room")})
        expected, found = add_column(events, column), add_column(frame, column).toArrow()
        assert found.schema.field("value").type == expected.schema.field("value").type
        assert in_order(found, "value") == in_order(expected, "value")


def test_compared_values(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that built-ins alone have are collected from a batch, up to a limit."""
    events = pa.table({"v": [1.0, 13.0, None, 30.0, 13.0, float("nan")]})
    column = BUILDING.column(BELOW, "room", {"value": "v"})
    found = add_column(spark.createDataFrame(events), column)
    assert in_order(found.toArrow(), "room") == in_order(add_column(events, column), "room")
    monkeypatch.setattr("cepheid.hosts.spark.answers.MOST_VALUES", 3)
    with pytest.raises(SchemaError, match="more than 100,000 values in 'v', for each of which"):
        add_column(spark.createDataFrame(events), column)


def test_faults(spark: SparkSession) -> None:
    """Names and types are checked without a query."""
    frame = spark.createDataFrame(READINGS).selectExpr("n AS Room", "array(point) AS point")
    with pytest.raises(SchemaError) as caught:
        add_column(frame, BUILDING.column(ROOM, "room", OF_POINT))
    assert str(caught.value).splitlines() == [
        "name: the events have a column 'Room'. Give the new one another name, with name=",
        "bindings: the column 'point' must be a number, a text, a time, a duration or a boolean; it is ARRAY<STRING>",
    ]
    with pytest.raises(SchemaError, match="two columns of the events are named 'point'"):
        add_column(frame.select("point", "point"), BUILDING.column(ROOM, "room", OF_POINT))


def points() -> pa.Table:
    """A point of room 1, then one that is in no room, then another one of room 1."""
    at = [datetime(2026, 1, 1, minute=minute, tzinfo=UTC) for minute in range(3)]
    return pa.table({"at": at, "point": ["1", "8", "2"], "type": ["A", "B", "B"]})


@pytest.mark.long
def test_a_stream(streams: SparkSession, tmp_path: Path) -> None:
    """A stream gets the column, which may be the key of a detection with its watermark; the checkpoint continues."""
    column = BUILDING.column(ROOM, "room", OF_POINT)
    pattern = OccurrencePattern.of("(?a: A ; ?b: B)_10min").taxonomy("type")
    later = pa.table({"at": [datetime(2026, 1, 2, tzinfo=UTC)], "point": ["1"], "type": ["C"]})
    batches = [points().slice(0, 2), points().slice(2), later]
    expected = detect(
        add_column(points(), column).filter(pa.compute.field("room").is_valid()), pattern, key="room", time="at"
    )
    found = []
    for number, batch in enumerate(batches):
        written([batch], tmp_path / "events", first=number)
        events = add_column(streamed(streams, tmp_path / "events").withWatermark("at", "0 seconds"), column)
        rows = detect(events.where("room IS NOT NULL"), pattern, key="room", time="at", shards=2)
        found += [row for rows_of_batch in run(rows, tmp_path / "checkpoint") for row in rows_of_batch]
    assert [row["match_id"] for row in found] == expected["match_id"].to_pylist() != []


def test_a_stream_has_no_values_beforehand(streams: SparkSession, tmp_path: Path) -> None:
    """Values that built-ins alone have are unknown of a stream."""
    written([pa.table({"v": [1.0], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})], tmp_path)
    column = BUILDING.column(BELOW, "room", {"value": "v"})
    with pytest.raises(SchemaError, match=r"depend on values that a stream has not had yet. .* and compare with SQL"):
        add_column(streamed(streams, tmp_path), column)


ON_CONNECT = """
from pyspark.sql import SparkSession
from cepheid import add_column
from knowledge.test_column import BELOW, BUILDING, EXPECTED, OF_POINT, READINGS, ROOM, pairs

spark = SparkSession.builder.remote("local[1]").getOrCreate()
frame = spark.createDataFrame(READINGS)
assert ".connect." in type(frame).__module__
found = add_column(frame, BUILDING.column(ROOM, "room", OF_POINT)).toArrow()
assert sorted(map(str, pairs(found, "n", "room"))) == sorted(map(str, EXPECTED)), found
values = frame.selectExpr("CAST(n * 10 AS DOUBLE) AS v")
assert add_column(values, BUILDING.column(BELOW, "room", {"value": "v"})).count() == 11
spark.stop()
print("the same")
"""


def test_connect() -> None:
    """The client of Connect has only the public interface. A process has sessions of one kind."""
    tests = Path(__file__).parents[1]
    script = f"import sys; sys.path[:0] = [{str(tests)!r}, {str(tests.parent)!r}]\n{ON_CONNECT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert "the same" in done.stdout, done.stderr
