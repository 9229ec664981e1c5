"""sequence=ROW_ORDER: events of equal time are in the order of the table's rows."""

from __future__ import annotations

import itertools
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import ROW_ORDER, CepheidWarning, Matcher, OccurrencePattern, Pattern, Report, SchemaError, detect, why
from cepheid.intervals import interval_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIES = pytest.mark.filterwarnings("ignore:.*agree in key and time")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAIR = Pattern.begin("a").next("b")
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), max_size=12)
"""(key, second, content)"""


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    keys, seconds, contents = ([row[place] for row in rows] for place in range(3))
    at = [NOON.replace(second=second) for second in seconds]
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "n": pa.array(contents, pa.int64()),
        }
    )


@share(25)
@given(rows=ROWS)
def test_ties_are_as_they_stand_in_the_table(rows: list[tuple[int, int, int]]) -> None:
    """Events of equal key and time follow one another as their rows do, without a warning of ties."""
    events, report = table(rows), Report()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = detect(
            events, PAIR, key="k", time="at", sequence=ROW_ORDER, rows_per="event", columns="n", report=report
        )
    numbers = found.column("row_number").to_pylist()
    expected = []
    for key in {row[0] for row in rows}:
        mine = sorted((row[1], number) for number, row in enumerate(rows) if row[0] == key)
        expected += [(one[1], other[1]) for one, other in itertools.pairwise(mine)]
    assert sorted(zip(numbers[::2], numbers[1::2], strict=True)) == sorted(expected)
    assert len(set(found.column("match_id").to_pylist())) == len(expected)
    assert report.counts.ties == 0


@TIES
def test_ids_are_those_of_content() -> None:
    """An event is identified by its content, and its number among equal ones, not by its row. So rows before it change
    no id.
    """
    events = table([(0, 0, 1), (0, 0, 0), (0, 1, 1), (0, 1, 1)])
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": ROW_ORDER}
    ids = detect(events, Pattern.begin("a"), **options).column("match_id").to_pylist()
    more = pa.concat_tables([table([(1, 0, 0)]), events])
    assert set(ids) < set(detect(more, Pattern.begin("a"), **options).column("match_id").to_pylist())
    by_content = detect(events, Pattern.begin("a"), key="k", time="at", report=Report())
    assert sorted(ids) == sorted(by_content.column("match_id").to_pylist())


def test_events_that_agree_in_the_sequence_are_numbered() -> None:
    """Events of equal key, time and sequence have different ids, although their content is not in them."""
    events = table([(0, 0, 1), (0, 0, 0), (0, 0, 0)]).append_column("s", pa.array([1, 1, 1]))
    found = detect(events, Pattern.begin("a"), key="k", time="at", sequence="s")
    assert len(set(found.column("match_id").to_pylist())) == 3


def test_the_warning_of_ties_names_it() -> None:
    """Who has ties is told of both remedies."""
    with pytest.warns(CepheidWarning, match=r"column, or give sequence=cepheid\.ROW_ORDER if the rows are in"):
        detect(table([(0, 0, 1), (0, 0, 0)]), PAIR, key="k", time="at")


def test_workers_and_why() -> None:
    """Workers and `why` take the order of rows, too; without time it is the order anyway."""
    rows = [(key, 0, n) for key in range(20) for n in (1, 0, 1)]
    events = pl.DataFrame(table(rows))
    rising = Pattern.begin("a").where("n = 0").next("b").where("n = 1")
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": ROW_ORDER}
    found = detect(events, rising, **options)
    assert len(found) == 20
    assert detect(events, rising, workers=2, **options).equals(found)
    assert why(events, rising, **options).funnel.matched == 20
    assert len(detect(events, rising, **options | {"time": None})) == 20


def test_contexts_of_occurrences_take_the_order_of_rows() -> None:
    """A context uses up simultaneous events one after the other: the first is that of the first row."""
    oldest = OccurrencePattern.of("A ; B").taxonomy("type").policy("chronicle")
    for first, second in ((0, 1), (1, 0)):
        events = table([(0, 0, first), (0, 0, second), (0, 1, 2)]).append_column("type", pa.array(["A", "A", "B"]))
        (row,) = detect(events, oldest, time="at", sequence=ROW_ORDER).to_pylist()
        assert [event["n"] for event in row["events"]] == [first, 2]
        both = detect(events, {"one": oldest, "other": oldest}, time="at", sequence=ROW_ORDER).to_pylist()
        assert [row["events"][0]["n"] for row in both] == [first] * 2


def test_where_there_is_no_order_of_rows() -> None:
    """A matcher gets events in calls, and the order of rows does not identify intervals."""
    events = table([(0, 0, 1)])
    with pytest.raises(SchemaError, match="sequence: ROW_ORDER is for whole tables; a matcher gets events in calls"):
        Matcher(PAIR, events, time="at", sequence=ROW_ORDER)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="sequence: the order of rows does not identify intervals"):
        detect(events, interval_pattern("EVENT PAL(A a)").taxonomy("k"), time=("at", "at"), sequence=ROW_ORDER)


@pytest.mark.spark
def test_a_dataframe_has_no_order_of_rows(spark: SparkSession) -> None:
    """The message says what to name instead."""
    with pytest.raises(SchemaError, match=r"ROW_ORDER is the order of a table, and a DataFrame has none\. Name a"):
        detect(spark.createDataFrame(table([(0, 0, 1)])), PAIR, time="at", sequence=ROW_ORDER)
