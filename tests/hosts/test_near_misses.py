"""Near misses: the starts that match with one change of the pattern, and why they do not match without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.near_patterns import events_of, patterns, rows, without_skip
from tests.searching import cases

from cepheid import Pattern, SchemaError, Skip, detect, why
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.plan.stages.near.changes import changes_of
from cepheid.requests.request_of import request_of

OPTIONS: dict[str, Any] = {"key": "k", "time": "at"}


def starts_of(table: pa.Table, patterns: Mapping[str, Pattern], as_of: Any) -> dict[str, set[Any]]:
    """The times of the first events of the matches of each pattern."""
    matches = detect(table, patterns, **OPTIONS, as_of=as_of)
    found = {name: set[Any]() for name in patterns}
    for name, start in zip(matches["pattern"].to_pylist(), matches["match_start"].to_pylist(), strict=True):
        found[name].add(start)
    return found


@cases(10, long=10_000)
@given(patterns(), rows, st.sampled_from(["complete", "as_of"]))
def test_every_suggestion_is_true(pattern: Pattern, given_rows: Any, end: str) -> None:
    """With its change, and without skipping, each near miss is the start of a match; without the change it is none. All
    such starts are found, except events that start no partial match without the change. Those that the skip strategy
    then drops are marked.
    """
    table = events_of(given_rows)
    as_of = table["at"][len(table) // 2].as_py() if end == "as_of" else None
    changes = {str(n): change for n, change in enumerate(changes_of(pattern))}
    off = {name: without_skip(change.pattern) for name, change in changes.items()}
    off["unchanged"] = without_skip(pattern)
    skipping = starts_of(table, {name: change.pattern for name, change in changes.items()} or {"x": pattern}, as_of)
    expected = starts_of(table, off, as_of)
    found = near_misses_in_process(table, request_of(pattern, **OPTIONS, as_of=as_of))
    assert not found.failed
    rows_ = found.table.to_pylist()
    started = starts_of_partial_matches(table, pattern, as_of)
    for name, change in changes.items():
        own = {row["match_start"]: row["lost"] for row in rows_ if row["change"] == change.text}
        assert set(own) == (expected[name] - expected["unchanged"]) & started, change
        assert {start for start, lost in own.items() if lost} == set(own) - skipping[name], change
    assert found.starts == len({row["match_start"] for row in rows_})


def starts_of_partial_matches(table: pa.Table, pattern: Pattern, as_of: Any) -> set[Any]:
    """The times of the events that a partial match of the pattern takes first."""
    found = set[Any]()
    asked = why(table, without_skip(pattern), **OPTIONS, as_of=as_of)
    for key in set(table["k"].to_pylist()):
        steps = asked.trace({"k": key}).steps
        found |= {step.time for step in steps if not step.partial_match and step.outcome.startswith("taken by")}
    return found


# Reasons


A = Pattern.begin("a").where("kind = 'a'")
AT = datetime(2026, 1, 1, tzinfo=UTC)


def shop(kinds: str, *, minutes: list[int] | None = None, v: list[int | None] | None = None) -> pa.Table:
    """Events of one key, by default one a minute; the kind of each is a letter."""
    at = [AT + timedelta(minutes=m) for m in minutes or range(len(kinds))]
    values = pa.array(v or [0] * len(kinds), pa.int64())
    return pa.table({"k": ["x"] * len(kinds), "at": at, "kind": [*kinds], "v": values})


def nearest(table: pa.Table, pattern: Pattern) -> list[tuple[str, str, str, float | None]]:
    """How far each near miss came, its change, the reason and the distance."""
    found = why(table, pattern, **OPTIONS).near_misses
    return [(row["reached"], row["change"], row["reason"], row["off_by"]) for row in found.to_pylist()]


NEXT = A.next("b").where("kind = 'b'")
FOLLOWED = A.followed_by("b").where("kind = 'b' AND v > 10")


@pytest.mark.parametrize(
    ("pattern", "table", "expected"),
    [
        (FOLLOWED, shop("ab", v=[0, 8]), ("a", "b: without v > 10", "v = 8", 2.0)),
        (FOLLOWED, shop("ab", v=[0, None]), ("a", "b: without v > 10", "v is NULL", None)),
        (FOLLOWED, shop("ac", v=[0, 11]), ("a", "b: without kind = 'b'", "kind = 'c'", None)),
        (
            A.followed_by("b").where("v BETWEEN a.v + 1 AND a.v + 2"),
            shop("ab", v=[3, 7]),
            ("a", "b: without v BETWEEN a.v + 1 AND a.v + 2", "v = 7, a.v + 1 = 4, a.v + 2 = 5", 2.0),
        ),
        (
            A.followed_by("b").where("at < a.at + INTERVAL 5 MINUTES"),
            shop("ab", minutes=[0, 8]),
            (
                "a",
                "b: without at < a.at + INTERVAL 5 MINUTES",
                "at = 2026-01-01 00:08:00, a.at + INTERVAL 5 MINUTES = 2026-01-01 00:05:00",
                3.0,
            ),
        ),
        (
            A.followed_by("b").where("kind = 'b'").within("5 minutes"),
            shop("ab", minutes=[0, 7]),
            ("a", "within longer than 5 minutes", "7 minutes, 2 minutes too long", 2.0),
        ),
        (
            A.followed_by("b").where("kind = 'b'").max_gap("5 minutes"),
            shop("ab", minutes=[0, 5]),
            ("a", "max_gap longer than 5 minutes", "5 minutes, which is not less", 0.0),
        ),
        (
            A.times(2, window="2 minutes").followed_by("b").where("kind = 'b'"),
            shop("aab", minutes=[0, 3, 4]),
            ("a", "a: window of the loop longer than 2 minutes", "3 minutes, 1 minute too long", 1.0),
        ),
        (
            A.followed_by("b").where("kind = 'b'").within_previous("2 minutes").within("1 hour"),
            shop("ab", minutes=[0, 3]),
            ("a", "b: within_previous longer than 2 minutes", "3 minutes, 1 minute too long", 1.0),
        ),
        (NEXT, shop("axyb"), ("a", "b: followed_by in place of next", "2 events between, the first at 00:01:00", 2.0)),
        (
            A.times(2).consecutive().next("b").where("kind = 'b'"),
            shop("axab"),
            ("a", "a: not consecutive", "1 event between, at 00:01:00", 1.0),
        ),
        (
            A.not_followed_by("n").where("kind = 'n' AND v > a.v").followed_by("b").where("kind = 'b'"),
            shop("annb", v=[3, 2, 5, 0]),
            ("a", "without not_followed_by n", "n at 00:02:00, kind = 'n', v = 5, a.v = 3", None),
        ),
        (
            A.not_followed_by("n").where("kind = 'n'").within("1 hour"),
            shop("an"),
            ("a", "without not_followed_by n", "n at 00:01:00, kind = 'n'", None),
        ),
        (
            A.not_next("n").where("kind = 'n'").followed_by("b").where("kind = 'b'"),
            shop("anb"),
            ("a", "without not_next n", "n at 00:01:00, kind = 'n'", None),
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_reasons(pattern: Pattern, table: pa.Table, expected: tuple[str, str, str, float | None]) -> None:
    """Each near miss says how far it came, what would have to change, why, and by how much."""
    assert expected in nearest(table, pattern)


def test_the_nearest_come_first() -> None:
    """Near misses that reach more come first, then those that are nearest; NULLs come last."""
    table = pa.concat_tables(
        shop("ab", v=[0, v]).set_column(0, "k", pa.array([k, k])) for k, v in (("p", None), ("q", 1), ("r", 9))
    )
    found = why(table, FOLLOWED.within("1 hour"), **OPTIONS).near_misses
    assert found["k"].to_pylist() == ["r", "q", "p"]
    assert set(found["rank"].to_pylist()) == {1}
    three = A.followed_by("b").where("kind = 'b'").followed_by("c").where("kind = 'c' AND v > 10")
    table = pa.concat_tables([shop("abc", v=[0, 0, 9]), shop("ac", v=[0, 11]).set_column(0, "k", pa.array(["y", "y"]))])
    assert nearest(table, three)[0] == ("b", "c: without v > 10", "v = 9", 1.0)


def test_starts_that_skipping_loses_are_marked() -> None:
    """A start within a match would match with the change, but the skip strategy drops it."""
    pattern = A.followed_by("b").where("v > 1").within("1 day").skip(Skip.past_last_event())
    found = why(shop("aab", v=[0, 0, 1]), pattern, **OPTIONS)
    rows = [row for row in found.near_misses.to_pylist() if row["change"] == "b: without v > 1"]
    assert [(row["match_start"].minute, row["lost"]) for row in rows] == [(1, True), (0, False)]
    assert "starts that would match with one change" in str(found.changes)


def test_a_change_that_fails_is_named() -> None:
    """A change that leaves out what guards another condition is not tried, and the others are."""
    pattern = A.next("b").where("v <> 0 AND 10 / v > 20")
    found = why(shop("abab", v=[0, 0, 0, 5]), pattern, **OPTIONS).changes
    assert [*found.failed] == ["b: without v <> 0"]
    assert "division by zero" in found.failed["b: without v <> 0"].lower()
    assert {row["change"] for row in found.table.to_pylist()} == {"b: without 10 / v > 20"}


def test_too_many_open_partial_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are tried with a bound on open partial matches; the text says what it has dropped."""
    monkeypatch.setattr("cepheid.matchers.stages.near.MOST_OPEN", 2)
    found = why(shop("aaaac", v=[0, 0, 0, 0, 11]), FOLLOWED, **OPTIONS).changes
    assert {one.change: (one.starts, one.dropped) for one in found.changes}["b: without kind = 'b'"] == (2, 2)
    assert "2 partial matches were dropped, as too many were open: starts may be missing" in str(found)


def test_tables_are_of_the_kind_of_the_events() -> None:
    """Pandas in, pandas out, with the index of the start; the key and the times have the types of the events."""
    frame = shop("xab", v=[0, 0, 8]).to_pandas().set_index(pd.Index([10, 11, 12]))
    frame["at"] = frame["at"].dt.tz_localize(None)
    found = why(frame, FOLLOWED, **OPTIONS).near_misses
    assert isinstance(found, pd.DataFrame)
    assert found.index.tolist() == [11]
    assert found["at"].dtype == frame["at"].dtype == found["match_start"].dtype
    assert isinstance(why(pl.from_pandas(frame), FOLLOWED, **OPTIONS).near_misses, pl.DataFrame)


def test_the_text_and_the_table_of_a_notebook() -> None:
    """The text has what each change would do, and the nearest near misses; JSON has all of them."""
    found = why(shop("ab", v=[0, 8]), FOLLOWED, **OPTIONS).changes
    assert [" ".join(line.split()) for line in str(found).splitlines()] == [
        "starts that would match with one change 1",
        "b: without v > 10 1",
        "b: without kind = 'b' 0",
        "nearest",
        "x 2026-01-01 00:00:00 b: without v > 10: v = 8",
    ]
    assert "<td" in found._repr_html_()
    assert json.dumps(found.to_dict())
    assert found.to_dict()["near_misses"][0]["off_by"] == 2.0


def test_columns_of_near_misses_are_reserved() -> None:
    """A key with the name of a column of near misses is refused."""
    table = shop("ab").rename_columns(["rank", "at", "kind", "v"])
    with pytest.raises(SchemaError, match="near misses have a column 'rank' of their own: rename that of the key"):
        assert why(table, NEXT, key="rank", time="at").near_misses


def test_without_time_and_key() -> None:
    """In processing order near misses have no times."""
    found = why(shop("ab", v=[0, 8]), FOLLOWED, time=None).near_misses
    assert found.column_names == ["row_number", "rank", "reached", "change", "reason", "off_by", "lost"]


def test_functions_are_conditions_too() -> None:
    """A condition in Python can be left out; the reason has no values."""
    pattern = A.next("b").where(lambda event, _: event["v"] > 10, name="is_much")
    assert nearest(shop("ab", v=[0, 8]), pattern) == [("a", "b: without is_much", "it is not met", None)]


def test_parameters_keep_their_values() -> None:
    """Lengths and values that parameters give are those of the changed patterns too."""
    pattern = A.followed_by("b").where("v > $least AND kind = $kind").within("$w")
    pattern = pattern.with_parameters(least=10, kind="b", w="5 minutes")
    table = pa.concat_tables([shop("ab", v=[0, 8]), shop("ab", minutes=[20, 28], v=[0, 11])])
    assert nearest(table, pattern)[:2] == [
        ("a", "b: without v > $least", "v = 8, $least = 10", 2.0),
        ("a", "within longer than 5 minutes", "8 minutes, 3 minutes too long", 3.0),
    ]
