"""match_events unnests the stage columns of matches, as rows_per="event" gives them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.hosts.patterns_and_events import SCHEMA, Case, Row, cases, events
from tests.searching import share

from cepheid import CepheidWarning, OccurrencePattern, Pattern, SchemaError, detect, match_events
from cepheid.intervals import interval_pattern

OPTIONS: dict[str, Any] = {"key": "device", "time": "at"}


def found(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        return detect(*arguments, **options)


def rows_of(table: pa.Table) -> list[str]:
    names = [name for name in table.column_names if name not in ("pattern", "kind", "row_number")]
    return sorted(repr({name: row[name] for name in sorted(names)}) for row in table.to_pylist())


@share(20)
@given(case=cases(), rows=events())
def test_the_rows_are_those_of_events(case: Case, rows: list[Row]) -> None:
    """From columns of stages and from the map of all stages; with the time, in the order of the events."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    options = {**OPTIONS, "columns": [name for name in table.column_names if name != "kind"]}  # outputs have a kind
    expected = rows_of(found(table, case.pattern, rows_per="event", **options))
    for outputs in (None, "matches"):
        matches = found(table, case.pattern, outputs=outputs, **options)
        assert rows_of(match_events(matches, time="at")) == expected
        assert match_events(pl.DataFrame(matches), time="at").height == len(expected)


@st.composite
def loops_of_groups(draw: st.DrawFn) -> Pattern:
    """A group of two or three stages, one of them perhaps optional or a loop, that loops, before or after a stage."""
    first = Pattern.begin("a").where("kind = 'a'")
    group = draw(st.sampled_from([first, first.optional(), first.times(1, 2), first.one_or_more().consecutive()]))
    follow = draw(st.sampled_from([group.next, group.followed_by]))
    group = follow("b").where("n IS NOT NULL")
    group = draw(st.sampled_from([group, group.followed_by("c").where("x IS NOT NULL")]))
    loop = Pattern.begin(group).times(draw(st.integers(1, 2)), 3)
    return draw(st.sampled_from([loop, loop.followed_by("last").where("kind = 'b'")]))


@share(25)
@given(pattern=loops_of_groups(), rows=events(ties=True), order=st.sampled_from([None, "id"]))
def test_events_of_equal_time_in_loops_of_groups(pattern: Pattern, rows: list[Row], order: str | None) -> None:
    """They are in the order of the match: by content as in `detect`, or by the sequence that `detect` had."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    options = {**OPTIONS, "columns": [name for name in table.column_names if name != "kind"], "sequence": order}
    expected = rows_of(found(table, pattern, rows_per="event", **options))
    for outputs in (None, "matches"):
        matches = found(table, pattern, outputs=outputs, **options)
        assert rows_of(match_events(matches, time="at", sequence=order)) == expected


@share(15)
@given(case=cases(), rows=events(ties=True))
def test_events_of_equal_time_by_stage(case: Case, rows: list[Row]) -> None:
    """Without loops of groups, the order is that of the stages, also where `detect` had a sequence."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    options = {**OPTIONS, "columns": [name for name in table.column_names if name != "kind"], "sequence": "id"}
    expected = found(table, case.pattern, rows_per="event", **options)
    matches = found(table, case.pattern, **options)
    assert rows_of(match_events(matches)) == rows_of(expected)


DOORS = pa.table({"device": [1, 1, 1], "at": pa.array([1, 2, 3], pa.timestamp("us")), "x": ["a", "b", "b"]})
RUN = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'").times(2).consecutive()
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.DataFrame,
    "lazy": lambda table: pl.DataFrame(table).lazy(),
    "duckdb": duckdb.from_arrow,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_kinds_of_tables(frame: str) -> None:
    """The result is a table of the same kind, whose columns of matches have their types."""
    matches = detect(FRAMES[frame](DOORS), RUN, **OPTIONS)
    rows = match_events(matches)
    assert type(rows) is type(matches)
    table = pa.table(rows.collect() if frame == "lazy" else rows)
    assert [(row["stage"], row["position"], row["stage_position"], row["x"]) for row in table.to_pylist()] == [
        ("a", 1, 1, "a"),
        ("b", 2, 1, "b"),
        ("b", 3, 2, "b"),
    ]
    if isinstance(rows, pd.DataFrame):
        assert rows["match_start"].dtype == matches["match_start"].dtype


@pytest.mark.parametrize("frame", [*FRAMES, "arrow"])
@pytest.mark.parametrize("pattern", [RUN, {"one": RUN, "two": RUN}], ids=["one", "several"])
def test_no_matches(frame: str, pattern: Any) -> None:
    """Matches without rows give no rows, with the columns that are known."""
    rows = match_events(found(FRAMES.get(frame, lambda table: table)(DOORS.slice(0, 1)), pattern, **OPTIONS))
    table = pa.table(rows.collect() if frame == "lazy" else rows)
    assert table.num_rows == 0
    assert {"match_id", "device", "stage", "position", "stage_position"} <= {*table.column_names}
    assert ("x" in table.column_names) == (frame != "pandas")


@pytest.mark.parametrize("frame", FRAMES)
def test_several_patterns(frame: str) -> None:
    """The map of all stages has events in tables of each kind."""
    rows = match_events(detect(FRAMES[frame](DOORS), {"one": RUN, "two": RUN.next("c").optional()}, **OPTIONS))
    table = pa.table(rows.collect() if frame == "lazy" else rows)
    columns = table.select(["pattern", "stage", "position", "x"]).to_pylist()
    assert [tuple(row.values()) for row in columns] == [
        (name, *event) for name in ("one", "two") for event in (("a", 1, "a"), ("b", 2, "b"), ("b", 3, "b"))
    ]


def test_a_stage_that_no_match_has() -> None:
    """In pandas such a column has no type: it is no column of the result."""
    rows = match_events(detect(DOORS.to_pandas(), RUN.next("c").optional(), **OPTIONS))
    assert "c" not in rows.columns
    assert len(rows) == 3


def test_a_sequence_needs_a_time() -> None:
    """Both are columns of the events."""
    with pytest.raises(SchemaError, match="sequence: it orders events of equal time; name the column of the times"):
        match_events(detect(DOORS, RUN, **OPTIONS), sequence="x")
    with pytest.raises(SchemaError, match="sequence: no column named 'y' in the events"):
        match_events(detect(DOORS, RUN, **OPTIONS), time="at", sequence=["x", "y"])


@pytest.mark.spark
def test_matches_on_spark(spark: SparkSession) -> None:
    """A data frame of matches gives the rows that a table gives, when an action asks for them."""
    instants = DOORS.column("at").cast(pa.timestamp("us", "UTC"))
    table = DOORS.set_column(1, "at", instants).append_column("tags", pa.array([["p"], None, []]))
    events_there = spark.createDataFrame(table)
    loop = Pattern.begin(Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'")).times(1).next("c")
    for pattern in (RUN, {"one": RUN, "two": loop}):
        rows = match_events(detect(events_there, pattern, **OPTIONS), time="at")
        here = match_events(detect(table, pattern, **OPTIONS), time="at")
        assert rows_of(rows.toArrow()) == rows_of(here)
        assert here.num_rows
    with pytest.raises(SchemaError, match="matches of occurrences have no stages"):
        match_events(detect(events_there, OccurrencePattern.of("a ; b").taxonomy("x"), **OPTIONS))


def test_intervals_and_late_events() -> None:
    """A variable of intervals is a stage; a late event is in no match, and has no row."""
    pattern = interval_pattern("EVENT PAL(a one before b two)").taxonomy("x")
    matches = found(DOORS, pattern, key="device", time=("at", "at"), outputs=("matches", "late"))
    rows = match_events(matches, time="at").to_pylist()
    assert [(row["stage"], row["position"], row["x"]) for row in rows] == [("one", 1, "a"), ("two", 2, "b")] * 2


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "events": (lambda: DOORS, "match_events takes what detect returns: there is no column match_id or no detected_at"),
    "rows of events": (
        lambda: detect(DOORS, RUN, rows_per="event", **OPTIONS),
        "match_events: these rows are about one event each already",
    ),
    "measures": (
        lambda: detect(DOORS, RUN, measures={"n": "count(b)"}, **OPTIONS),
        "these matches have no columns of stages. Find matches without measures, or with rows_per='event'",
    ),
    "occurrences": (
        lambda: detect(DOORS, OccurrencePattern.of("a ; b").taxonomy("x"), **OPTIONS),
        "matches of occurrences have no stages. Find matches without measures, or with rows_per='event'",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_stages(what: str) -> None:
    """The message says how to get rows of events instead."""
    matches, message = REFUSED[what]
    with pytest.raises(SchemaError) as caught:
        match_events(matches())
    assert message in str(caught.value)


def test_an_unknown_time() -> None:
    """The time is a column of the events."""
    with pytest.raises(SchemaError, match="time: no column named 'att' in the events"):
        match_events(detect(DOORS, RUN, **OPTIONS), time="att")


PLACES = DOORS.append_column("place", pa.array([{"room": 1}, {"room": 2}, {"room": 3}]))


def test_two_columns_are_no_map() -> None:
    """A stage that loops, of events with two columns, the second of structs, has the events of that stage."""
    rows = match_events(detect(PLACES, RUN, columns=["x", "place"], **OPTIONS)).to_pylist()
    assert [(row["stage"], row["x"], row["place"]["room"]) for row in rows] == [
        ("a", "a", 1),
        ("b", "b", 2),
        ("b", "b", 3),
    ]


def test_a_stage_named_events() -> None:
    """A stage may have the name of the column that occurrences have."""
    run = Pattern.begin("a").where("x = 'a'").next("events").where("x = 'b'").times(2).consecutive()
    assert [row["stage"] for row in match_events(detect(DOORS, run, **OPTIONS)).to_pylist()] == [
        "a",
        "events",
        "events",
    ]


def test_an_event_column_of_a_name_in_the_result() -> None:
    """It is refused with the message of rows_per="event", in place of being left out."""
    table = DOORS.rename_columns(["device", "at", "stage"])
    run = Pattern.begin("a").where("stage = 'a'").next("b").where("stage = 'b'")
    matches = detect(table, run, **OPTIONS)
    with pytest.raises(SchemaError, match="columns: 'stage' is the name of a column that rows of events have") as own:
        match_events(matches)
    with pytest.raises(SchemaError) as given:
        detect(table, run, rows_per="event", **OPTIONS)
    assert str(own.value) == str(given.value)
