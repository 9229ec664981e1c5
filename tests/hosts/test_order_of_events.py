"""Events are ordered by time, several sequence columns, or their order of arrival; the same on every host."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cepheid import Matcher, Pattern, PatternError, SchemaError, detect

T = datetime(2024, 1, 1, tzinfo=UTC)
PAIR = Pattern.begin("a").next("b")
ROWS = [
    {"k": "p", "day": 1, "n": 2, "x": 1},
    {"k": "q", "day": 2, "n": 1, "x": 2},
    {"k": "p", "day": 1, "n": 1, "x": 3},
    {"k": "p", "day": 0, "n": 9, "x": 4},
    {"k": "q", "day": 1, "n": 1, "x": 5},
]
EVENTS = pa.table({**pa.Table.from_pylist(ROWS).to_pydict(), "at": pa.array([T] * 5, pa.timestamp("us", "UTC"))})


def pairs(matches: pa.Table) -> list[tuple[int, int]]:
    return sorted((match["a"]["x"], match["b"]["x"]) for match in matches.to_pylist())


@pytest.mark.parametrize("time", ["at", None])
def test_several_sequence_columns(time: str | None) -> None:
    """Events of equal time, and all events in processing order, are ordered by the first column, then the second."""
    found = detect(EVENTS, PAIR, key="k", time=time, sequence=["day", "n"], columns="x")
    assert pairs(found) == [(3, 1), (4, 3), (5, 2)]
    assert found.column("match_start").null_count == (0 if time else 3)


@pytest.mark.parametrize("sequence", [None, "x"])
@pytest.mark.parametrize("key", [None, "x"])
def test_only_what_matters_is_ordered(key: str | None, sequence: str | None) -> None:
    """Relevant events are matched in order, with and without a key, whether the rows arrive in order or not."""
    kinds = [("a", 0), ("x", 10), ("b", 5), ("a", 20), ("b", 15)]
    rows = [{"x": 1, "kind": kind, "at": T + timedelta(seconds=second)} for kind, second in kinds]
    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where("kind = 'b'")
    found = detect(pa.Table.from_pylist(rows), pattern, key=key, time="at", sequence=sequence)
    assert [(row["match_start"].second, row["match_end"].second) for row in found.to_pylist()] == [(0, 5)]


def test_order_of_arrival() -> None:
    """Without time and sequence, events are ordered as the rows of the table, per key; the times of
    the output are NULL.
    """
    found = detect(EVENTS, PAIR, key="k", time=None, columns="x")
    assert pairs(found) == [(1, 3), (2, 5), (3, 4)]
    assert [found.column(name).null_count for name in ("match_start", "match_end", "detected_at")] == [3, 3, 3]
    assert "_arrival" not in detect(EVENTS, PAIR, time=None).column("a").type.names


def test_order_of_arrival_in_a_matcher() -> None:
    """Events are ordered by their arrival, over all calls."""
    matcher = Matcher(PAIR, EVENTS, key="k", time=None, columns="x")
    found = [matcher.process(EVENTS.slice(i, 1)) for i in range(5)]
    assert [pairs(rows) for rows in found] == [[], [], [(1, 3)], [(3, 4)], [(2, 5)]]


def test_a_window_needs_times() -> None:
    """In processing order there are no times: windows and `as_of` are errors, all windows reported together."""
    pattern = Pattern.begin("a").one_or_more(window="1 second").next("b").within_previous("1 second").within("1 hour")
    with pytest.raises(PatternError) as caught:
        detect(EVENTS, pattern, time=None)
    assert [(problem.message, problem.where) for problem in caught.value.problems] == [
        ("a window needs event times, and none are named", where) for where in ("within", "stage 'a'", "stage 'b'")
    ]
    with pytest.raises(SchemaError, match="as_of needs event times: name the column with time=…"):
        detect(EVENTS, PAIR, time=None, as_of="2024-01-01")


@pytest.mark.spark
@pytest.mark.parametrize("time", ["at", None])
def test_spark_orders_the_same(spark: SparkSession, time: str | None) -> None:
    """Several sequence columns give the same matches, with the same ids, on Spark."""
    options: dict[str, Any] = {"key": "k", "time": time, "sequence": ["day", "n"], "columns": ["x"]}
    on_spark = detect(spark.createDataFrame(EVENTS), PAIR, **options).toArrow()
    here = detect(EVENTS, PAIR, **options)
    assert on_spark.sort_by("match_id").select(["match_id", "a", "b"]).to_pylist() == (
        here.sort_by("match_id").select(["match_id", "a", "b"]).to_pylist()
    )


@pytest.mark.spark
def test_spark_has_no_order_of_arrival(spark: SparkSession) -> None:
    """A DataFrame has no order of its own: without time it needs a sequence."""
    with pytest.raises(SchemaError, match="neither time nor sequence: a DataFrame has no order of its own"):
        detect(spark.createDataFrame(EVENTS), PAIR, time=None)


shuffles: list[Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = [
    lambda rows: rows,
    lambda rows: sorted(rows, key=lambda row: row["at"]),
    lambda rows: sorted(rows, key=lambda row: (row["k"] is None, str(row["k"]), row["at"])),
]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "ä", "", "bb"]), st.integers(-3, 3), st.integers(0, 2)), max_size=30),
    st.sampled_from(shuffles),
    st.sampled_from([["k"], ["s", "k"]]),
)
def test_any_order_of_rows(
    events: list[tuple[str, int, int]], shuffle: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], key: list[str]
) -> None:
    """Rows may be sorted, sorted by time, or unsorted: the matches are those of each key's events in order."""
    rows = [{"k": k, "s": k * 2, "at": T + timedelta(seconds=t), "n": n, "x": x} for x, (k, t, n) in enumerate(events)]
    types = {"k": pa.string(), "s": pa.string(), "at": pa.timestamp("us", "UTC"), "n": pa.int64(), "x": pa.int64()}
    table = pa.Table.from_pylist(shuffle(rows), schema=pa.schema(types))
    found = detect(table, PAIR, key=key, time="at", sequence=["n", "x"], columns="x")
    ordered = sorted(rows, key=lambda row: (row["k"].encode(), row["at"], row["n"], row["x"]))
    expected = [(a["x"], b["x"]) for a, b in pairwise(ordered) if a["k"] == b["k"]]
    assert pairs(found) == sorted(expected)


@pytest.mark.filterwarnings("ignore:key. each event has a key of its own")
@pytest.mark.parametrize("keys", [1, 7, 5_000, 100_000])
@pytest.mark.parametrize("form", ["in turn", "one late"])
def test_many_events(keys: int, form: str) -> None:
    """Each key has an event in turn; or each has all of its events at once, but for the first key's last one."""
    number = np.arange(70_000)
    key = np.append(np.sort(number % keys)[:-1], 0) if form == "one late" else number % keys
    at = pa.array(number * 1_000_000).cast(pa.timestamp("us", "UTC"))
    found = detect(pa.table({"k": key, "x": number, "at": at}), PAIR, key="k", time="at", columns="x")
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    assert pairs(found) == sorted(zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True))
