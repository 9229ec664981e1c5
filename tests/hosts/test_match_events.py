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
