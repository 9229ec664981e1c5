"""Near misses: the starts that match with one change of the pattern, and why they do not match without it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import permutations
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.hosts.near_patterns import SETS, Row, cases_with_faults, events_of, starts_of_partial_matches, without_skip
from tests.searching import cases

from cepheid import ROW_ORDER, Pattern, SchemaError, Skip, detect, why
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.plan.stages.near.changes import changes_of
from cepheid.requests.request_of import request_of

OPTIONS: dict[str, Any] = {"key": "k", "time": "at"}


def starts_of(table: pa.Table, patterns: Mapping[str, Pattern], options: Mapping[str, Any]) -> dict[str, set[int]]:
    """The rows of the first events of the matches of each pattern."""
    matches = detect(table, patterns, **options, rows_per="event", columns=[])
    found = {name: set[int]() for name in patterns}
    firsts = matches.filter(pc.equal(matches["position"], pc.min(matches["position"])))
    for name, row in zip(firsts["pattern"].to_pylist(), firsts["row_number"].to_pylist(), strict=True):
        found[name].add(row)
    return found


NOT_AT_START = (
    Pattern.begin(Pattern.begin("s0").where("kind = 'a'").optional()).not_next("s1").where("kind = 'a'"),
    [[("x", 1, "a", None), ("x", 1, "a", None)]],
)
"""The NOT may come before the first event, and forbids it: without the NOT there would be other starts."""

NOT_BEFORE_LOOP = (
    Pattern.begin("s0")
    .where("kind = 'a'")
    .not_followed_by("s1")
    .where("kind = 'a'")
    .next("s2")
    .where("kind = 'a'")
    .one_or_more()
    .longest()
    .max_gap("1 microsecond"),
    [[("x", 1, "a", None)] * 3],
)
"""An event both forbids and begins the loop: a match without `longest`, but none with it."""

_TURN = (
    Pattern.begin("s0")
    .where("kind = 'a'")
    .one_or_more(window="2 microseconds")
    .optional()
    .followed_by("s1")
    .where("kind <> 'c' AND v = 2")
    .times(1, 3)
    .optional()
    .greedy()
    .within_previous("2 microseconds")
)
GREEDY_BEFORE_LOOP = (
    Pattern.begin(_TURN)
    .times(2, 4)
    .allow_combinations()
    .optional()
    .within_previous("4 microseconds")
    .followed_by_any("s4")
    .where("v >= 0 AND (kind = 'c' OR v = 2)")
    .times(2)
    .optional()
    .longest()
    .within_previous("4 microseconds")
    .max_gap("1 microsecond")
    .skip(Skip.to_first("s1", error_on_miss=False)),
    [[("x", 2, "a", 3), ("x", 2, "d", 2), ("x", 1, "a", 3)]],
)
"""A greedy loop without an event after it is a match only because of the `longest` one."""

BELOW_MINIMUM = (
    Pattern.begin("s0")
    .where("kind = 'a'")
    .next("s1")
    .where("kind = 'b'")
    .times_or_more(2)
    .optional()
    .consecutive()
    .longest(),
    [[("x", 1, "a", None), ("x", 1, "b", None)]],
)
"""The first event alone would be a match if the loop had not begun."""

_PART = (
    Pattern.begin("s2")
    .one_or_more()
    .followed_by("s3")
    .where("kind = 'b'")
    .optional()
    .followed_by("s4")
    .where("kind IN ('a', 'b')")
    .one_or_more()
)
TOO_MANY_OPEN = (
    Pattern.begin("s0")
    .optional()
    .next(Pattern.begin("s1").optional())
    .times(2, 4)
    .allow_combinations()
    .followed_by_any(_PART)
    .one_or_more()
    .consecutive()
    .longest()
    .max_gap("4 microseconds"),
    [[("x", gap, kind, 0) for gap, kind in zip((1, 2, 2, 1, 1, 1, 1, 1), "bdabddab", strict=True)]],
)
"""A `longest` loop waits for more partial matches than a change may have open."""


@cases(8, long=10_000 // SETS)
@example(case=TOO_MANY_OPEN, end="as_of", tied=True)
@example(case=NOT_AT_START, end="complete", tied=False)
@example(case=NOT_BEFORE_LOOP, end="complete", tied=False)
@example(case=GREEDY_BEFORE_LOOP, end="complete", tied=False)
@example(case=BELOW_MINIMUM, end="complete", tied=False)
@given(cases_with_faults(), st.sampled_from(["complete", "as_of"]), st.booleans())
def test_every_suggestion_is_true(case: tuple[Pattern, list[list[Row]]], end: str, tied: bool) -> None:  # noqa: FBT001
    """With its change, and without skipping, each near miss is the start of a match; without the change it is none. All
    such starts are found, except events that start no partial match without the change. Those that the skip strategy
    then drops are marked. Tied events are in the order of the rows.
    """
    pattern, sets = case
    table = events_of(sets, tied=tied)
    last = sorted(table["at"].to_pylist())[-3 * len(sets) :][0]
    options = {**OPTIONS, "as_of": last if end == "as_of" else None}
    if tied:
        options["sequence"] = ROW_ORDER
    changes = {str(n): change for n, change in enumerate(changes_of(pattern))}
    assert len({change.text for change in changes.values()}) == len(changes)
    off = {name: without_skip(change.pattern) for name, change in changes.items()}
    off["unchanged"] = without_skip(pattern)
    skipping = starts_of(table, {name: change.pattern for name, change in changes.items()} or {"x": pattern}, options)
    expected = starts_of(table, off, options)
    found = near_misses_in_process(table, request_of(pattern, **options))
    assert all("10,000 partial matches" in reason for reason in found.failed.values()), found.failed
    rows_ = found.table.to_pylist()
    started = starts_of_partial_matches(table, pattern, options)
    for name, change in changes.items():
        if change.text in found.failed:
            continue
        own = {row["row_number"]: row["lost"] for row in rows_ if row["change"] == change.text}
        assert set(own) == (expected[name] - expected["unchanged"]) & started, change
        assert {start for start, lost in own.items() if lost} == set(own) - skipping[name], change
    assert found.starts == len({row["row_number"] for row in rows_})


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
        (
            NEXT,
            shop("axyb"),
            ("a", "b: followed_by in place of next", "2 events between, the first at 2026-01-01 00:01:00", 2.0),
        ),
        (
            A.times(2).consecutive().next("b").where("kind = 'b'"),
            shop("axab"),
            ("a", "a: not consecutive", "1 event between, at 2026-01-01 00:01:00", 1.0),
        ),
        (
            A.not_followed_by("n").where("kind = 'n' AND v > a.v").followed_by("b").where("kind = 'b'"),
            shop("annb", v=[3, 2, 5, 0]),
            ("a", "without not_followed_by n", "n at 2026-01-01 00:02:00, kind = 'n', v = 5, a.v = 3", None),
        ),
        (
            A.not_followed_by("n").where("kind = 'n'").within("1 hour"),
            shop("an"),
            ("a", "without not_followed_by n", "n at 2026-01-01 00:01:00, kind = 'n'", None),
        ),
        (
            A.not_next("n").where("kind = 'n'").followed_by("b").where("kind = 'b'"),
            shop("anb"),
            ("a", "without not_next n", "n at 2026-01-01 00:01:00, kind = 'n'", None),
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


def test_a_function_that_fails_without_another_condition_is_named_alone() -> None:
    """The reason has the function and the row, and no name that the changed pattern has inside."""

    def below(event: Mapping[str, Any]) -> bool:
        if event["v"] == 0:
            raise TypeError("no value")
        return bool(event["v"] > 5)

    pattern = A.next("b").where("v <> 0").where(below, name="below")
    (reason,) = why(shop("abab", v=[0, 0, 0, 5]), pattern, **OPTIONS).changes.failed.values()
    assert reason.startswith("function below raised TypeError: no value in the condition of stage 'b' (below), at the")
    assert reason.endswith("row_number = 1")


def test_of_many_events_before_a_start() -> None:
    """Where the event that forbids a start is not among the last twenty that may, the start has still not begun."""
    table = shop("w" + "n" * 25 + "ab", v=[9] + [1] * 25 + [5, 0])
    pattern = A.begin_without("w", within="1 hour", where="kind IN ('n', 'w') AND v > a.v")
    found = why(table, pattern.followed_by("b").where("kind = 'b'"), **OPTIONS).near_misses
    (row,) = [row for row in found.to_pylist() if "begin_without" in row["change"]]
    assert (row["reached"], row["reason"], row["at"]) == (None, "the match needs it", AT + timedelta(minutes=26))


def test_too_many_open_partial_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are tried with a bound on open partial matches; the text says what it has dropped."""
    monkeypatch.setattr("cepheid.matchers.stages.near_runs.MOST_OPEN", 2)
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


def test_the_order_of_the_rows_decides_near_misses_too() -> None:
    """Of tied events the first row comes first: here a is directly followed by b, so no start is unmatched."""
    tied = shop("abyz", minutes=[0, 0, 0, 0])
    for order in permutations(range(2, 4)):
        found = why(tied.take([0, 1, *order]), NEXT, **OPTIONS, sequence=ROW_ORDER)
        assert found.near_misses.num_rows == 0
    found = why(tied.take([0, 3, 1, 2]), NEXT, **OPTIONS, sequence=ROW_ORDER).near_misses
    assert found["change"].to_pylist() == ["b: followed_by in place of next", "b: without kind = 'b'"]


@pytest.mark.parametrize(
    ("condition", "zone", "minutes"),
    [
        ("due > at", "UTC", 600.0),
        ("due > at", "America/New_York", 300.0),
        ("due > at", "Asia/Kolkata", 930.0),
        ("at BETWEEN due AND due", "America/New_York", 300.0),
        ("due > local", "America/New_York", 600.0),
        ("local > at", "America/New_York", 0.0),
        ("at > local", "America/New_York", 300.0),
    ],
)
def test_dates_and_local_times_beside_instants(condition: str, zone: str, minutes: float) -> None:
    """A date begins at midnight of `time_zone`, and a time without a zone is in it. What holds is no near miss."""
    table = shop("ab", minutes=[0, 600]).append_column("due", pa.array([date(2026, 1, 1)] * 2))
    table = table.append_column("local", pc.local_timestamp(pa.array([AT, AT + timedelta(hours=10)])))
    found = why(table, A.followed_by("b").where(condition), **OPTIONS, time_zone=zone).near_misses
    assert found["off_by"].to_pylist() == ([minutes] if minutes else [])


FORBIDDEN = A.not_followed_by("n").where("kind = 'n'").followed_by("b").where("kind = 'b'").within("30 days")


def test_reasons_give_times_as_the_events_do() -> None:
    """Times are those of the column `at`, with the date, not those in UTC."""
    table = shop("anb", minutes=[0, 2000, 3000])
    local = table.set_column(1, "at", pc.cast(table["at"], pa.timestamp("us", "UTC")).cast(pa.timestamp("us")))
    zoned = table.set_column(1, "at", pc.cast(table["at"], pa.timestamp("us", "Asia/Tokyo")))
    for events, clock in ((local, "2026-01-02 09:20:00"), (zoned, "2026-01-02 18:20:00")):
        found = why(events, FORBIDDEN, **OPTIONS, time_zone="America/New_York").near_misses.to_pylist()
        (row,) = (one for one in found if one["change"] == "without not_followed_by n")
        assert row["reason"] == f"n at {clock}, kind = 'n'"
        assert row["at"].strftime("%Y-%m-%d %H:%M:%S") == clock


def test_reasons_have_no_time_in_processing_order() -> None:
    """Where no time passes, reasons name the events without one."""
    found = why(shop("axb"), NEXT, time=None).near_misses
    assert found["reason"].to_pylist()[0] == "1 event between"
    negated = A.not_followed_by("n").where("kind = 'n'").followed_by("b").where("kind = 'b'")
    assert why(shop("anb"), negated, time=None).near_misses["reason"].to_pylist()[0] == "n, kind = 'n'"


def test_windows_of_the_calendar_are_named() -> None:
    """A window of the calendar is not changed, and `failed` says so, unless a NOT at the end waits for it."""
    pattern = A.followed_by("b").where("kind = 'b'").within("1 month")
    changes = why(shop("ab", minutes=[0, 100_000]), pattern, **OPTIONS).changes
    assert changes.failed == {"within longer than 1 month": "as windows of the calendar are not changed"}
    assert "within longer than 1 month: could not be tried, as windows of the calendar" in str(changes)
    negated = A.not_followed_by("b").where("kind = 'b'").within("1 month")
    assert not why(shop("ab"), negated, **OPTIONS).changes.failed


def test_changes_with_the_same_text_are_told_apart() -> None:
    """Where two conditions of a stage have the same text, the change says which one is left out."""
    pattern = A.next("b").where("v <> 0").where("10 / v > 20").where("v <> 0 AND kind = 'b'")
    found = why(shop("abab", v=[0, 0, 0, 5]), pattern, **OPTIONS).changes
    tried = [one.change for one in found.changes]
    assert "b: without v <> 0 (condition 3)" in tried
    assert [*found.failed] == ["b: without v <> 0 (condition 1)"]


def test_a_not_before_many_events_is_quick() -> None:
    """The events that a NOT may forbid are found without a walk through all that follow the start."""
    took = []
    for count in (100, 2_000, 8_000):  # the first one warms up
        table = shop("a" * count + "n" + "b", minutes=[*range(count + 2)])
        started = time.process_time()
        assert why(table, FORBIDDEN, **OPTIONS).near_misses.num_rows > count // 2
        took.append(time.process_time() - started)
    assert took[2] < 8 * took[1]


def test_changes_of_groups_alone_in_groups_are_told_apart() -> None:
    """They are numbered from outside."""
    inner = Pattern.begin("a").where("x = 1").next("b").where("x = 2")
    group = Pattern.begin(Pattern.begin(inner).within_previous("1 second")).within_previous("1 second")
    texts = [change.text for change in changes_of(Pattern.begin("s").next(group))]
    assert len({*texts}) == len(texts)
