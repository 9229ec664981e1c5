"""Lazy frames of polars, and relations of DuckDB's connections."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl
import pytest

from cepheid import CepheidWarning, EventError, OccurrencePattern, Pattern, Report, SchemaError, detect, explain
from cepheid.intervals import interval_pattern

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FRAME = pl.DataFrame(
    {
        "door": pl.Series([1, 1, 2, 1], dtype=pl.UInt8),
        "at": [NOON.replace(minute=minute) for minute in range(4)],
        "what": pl.Series(["open", "knock", "open", "close"], dtype=pl.Categorical),
        "n": [1, 2, 3, None],
    }
)
VISIT = Pattern.begin("open").where("what = 'open'").followed_by("close").where("what = 'close'")
OPTIONS: dict[str, Any] = {"key": "door", "time": "at"}
ASKED: list[tuple[Any, dict[str, Any]]] = [
    (VISIT, OPTIONS),
    (VISIT, {**OPTIONS, "rows_per": "event", "measures": {"sum": "sum(open.n)"}}),
    (VISIT, {**OPTIONS, "measures": {"n": "count(open)", "w": "open.what"}, "outputs": "matches"}),
    ({"visit": VISIT, "other": VISIT}, {**OPTIONS, "rows_per": "event"}),
    (VISIT, {"key": "door", "time": None}),
    (OccurrencePattern.of("?p:open ; close").taxonomy("what"), OPTIONS),
    (interval_pattern("EVENT PAL(open a before close b)").taxonomy("what"), {**OPTIONS, "time": ("at", "at")}),
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_lazy_frame_gives_a_lazy_frame(asked: tuple[Any, dict[str, Any]]) -> None:
    """Collected, it has the rows of the frame itself; its schema is known before."""
    pattern, options = asked
    expected = detect(FRAME, pattern, **options)
    lazy = detect(FRAME.lazy(), pattern, **options)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == expected.schema
    assert len(expected)
    assert lazy.collect().equals(expected)


def test_what_follows_does_not_change_the_events() -> None:
    """A selection of columns or rows of the result is made after the matches are found."""
    lazy = detect(FRAME.lazy(), VISIT, rows_per="event", **OPTIONS)
    assert lazy.filter(pl.col("what") == "close").select("n", "stage").collect().rows() == [(None, "close")]
    assert len(lazy.head(1).collect()) == 1


def test_when_faults_are_found() -> None:
    """Names and types are checked by detect, without reading an event; events when the result is collected."""

    def unread(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError

    lazy = FRAME.lazy().map_batches(unread, schema=FRAME.schema)
    with pytest.raises(SchemaError, match="key: no column named 'dor'"):
        detect(lazy, VISIT, key="dor", time="at")
    assert "lifted: bit 0, what = 'open'" in str(explain(VISIT, events=lazy, **OPTIONS))
    without_time = detect(FRAME.lazy().with_columns(at=pl.when(pl.col("n") > 1).then("at")), VISIT, **OPTIONS)
    with pytest.raises(EventError, match=r"events that cannot be ordered: 2 without a time .at., the first in row 0"):
        without_time.collect()
    fine = FRAME.lazy().with_columns(seen=pl.lit(1).cast(pl.Datetime("ns")))
    with pytest.raises(EventError, match="a value in column 'seen' does not fit"):
        detect(fine, VISIT, **OPTIONS).collect()


def test_warnings_and_reports_come_when_it_is_collected() -> None:
    """The report has the counts of the latest collection, and none before."""
    report = Report()
    tied = FRAME.lazy().with_columns(at=pl.lit(NOON))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lazy = detect(tied, VISIT, report=report, **OPTIONS)
    with pytest.raises(RuntimeError, match="collect the lazy result first"):
        report.counts  # noqa: B018
    assert repr(report) == "Report(the lazy result is not collected yet)"
    for _ in range(2):
        with pytest.warns(CepheidWarning, match="2 events agree in key and time"):
            lazy.collect()
        assert (report.counts.events, report.counts.ties) == (4, 2)
    fails = detect(tied.with_columns(at=pl.lit(None).cast(pl.Datetime("us"))), VISIT, report=report, **OPTIONS)
    with pytest.raises(EventError):
        fails.collect()
    with pytest.raises(RuntimeError, match="collect the lazy result first"):
        report.counts  # noqa: B018


def test_matches_are_on_the_connection_of_the_events() -> None:
    """A relation of the caller's own connection can be joined with its tables, and leaves nothing there."""
    with duckdb.connect() as connection:
        connection.register("doors", FRAME.to_arrow())
        matches = detect(connection.table("doors"), VISIT, measures={"seen": "close.at"}, **OPTIONS)
        joined = connection.sql("SELECT what FROM matches JOIN doors ON doors.at = seen AND doors.door = matches.door")
        assert joined.fetchall() == [("close",)]
        matches.create("found")
        assert connection.table("found").fetchall() == matches.fetchall()
        assert [name for (name,) in connection.sql("SHOW TABLES").fetchall()] == ["doors", "found"]
        connection.execute("SET python_enable_replacements = false")
        again = detect(connection.table("doors"), VISIT, measures={"seen": "close.at"}, **OPTIONS)
        assert again.fetchall() == matches.fetchall()
