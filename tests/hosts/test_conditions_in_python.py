"""Conditions in Python give what the same conditions in SQL give; their problems are reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conditions.stage_conditions import CURRENT
from tests.hosts.patterns_and_events import SCHEMA, Case, Row, cases, events
from tests.searching import share

from cepheid import ConditionError, LimitExceeded, Limits, Matcher, Pattern, Skip, SkipError, SnapshotError, detect
from cepheid.compile.stages.compiled import compile_plan, relevance_text
from cepheid.detect import plan_of
from cepheid.lang.function import Function
from cepheid.plan.stages.explain import explain_pattern, explain_plan
from cepheid.requests.request_of import request_of

T = datetime(2026, 1, 1, tzinfo=UTC)
HOW: dict[str, Any] = {"key": "device", "time": "at", "sequence": "id"}


def dearer(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
    return bool(event["price"] > matched["a"][-1]["price"] * 1.1)


def is_a(event: Mapping[str, Any]) -> bool:
    return bool(event["kind"] == "a")


def prices(*values: float, kinds: str = "") -> pa.Table:
    """Events i, kind, price, a minute apart."""
    at = pa.array([T + timedelta(minutes=i) for i in range(len(values))], pa.timestamp("us", "UTC"))
    kind = list(kinds or "ab" * len(values))[: len(values)]
    return pa.table({"i": range(len(values)), "kind": kind, "price": pa.array(values, pa.float64()), "at": at})


def taken(matches: pa.Table) -> list[tuple[Any, ...]]:
    """The numbers of the events of each stage."""
    rows = matches.drop_columns(["match_id", "match_start", "match_end", "detected_at"]).to_pylist()
    return [tuple([e["i"] for e in v] if isinstance(v, list) else v and v["i"] for v in row.values()) for row in rows]


def text(table: pa.Table) -> str:
    """The types and rows as text, in which NaN equals itself."""
    return f"{table.schema}\n{table.to_pylist()}"


@st.composite
def cases_twice(draw: st.DrawFn) -> tuple[Pattern, Pattern]:
    """A pattern with conditions in SQL, and the same with some of them in Python."""
    case: Case = draw(cases())
    stages = []
    for number, stage in enumerate(case.pattern.stages):
        conditions = []
        for i, (condition, check) in enumerate(zip(stage.conditions, case.checks[number], strict=True)):
            alternative = i > 0 and draw(st.booleans())
            function = _function(condition.text, f"f{number}.{i}", *check) if draw(st.booleans()) else None
            conditions.append((replace(condition, alternative=alternative), function))
        stages.append((stage, conditions))
    both = []
    for python in (False, True):
        made = tuple(
            replace(stage, conditions=tuple(replace(c, function=f) if python and f else c for c, f in conditions))
            for stage, conditions in stages
        )
        both.append(replace(case.pattern, stages=made))
    return both[0], both[1]


def _function(sql: str, name: str, check: Any, stage: int) -> Function:
    if sql in CURRENT:
        return Function(lambda event: check(event, ()), name, iterative=False)
    return Function(lambda event, matched: check(event, matched[f"s{stage}"]), name, iterative=True)


@share(30)
@given(cases_twice(), events(ties=True), st.booleans())
def test_the_same_as_sql(both: tuple[Pattern, Pattern], rows: list[Row], as_outputs: bool) -> None:  # noqa: FBT001
    """Rows, ids and their order are the same, with AND and OR of both kinds of conditions, and with timeouts."""
    outputs = ("matches", "timeouts") if as_outputs else None
    sql, python = (text(detect(pa.Table.from_pylist(rows, SCHEMA), p, outputs=outputs, **HOW)) for p in both)
    assert python == sql


@share(15)
@given(cases_twice(), events(ties=True), st.integers(1, 9))
def test_a_matcher_goes_on_from_a_snapshot(both: tuple[Pattern, Pattern], rows: list[Row], piece: int) -> None:
    """The input is cut anywhere and a new matcher is restored at each cut: the rows are those of SQL in one matcher."""
    options: dict[str, Any] = {**HOW, "lateness": "0 seconds", "outputs": ("matches", "timeouts")}
    rows = sorted(rows, key=lambda row: (row["at"], row["id"]))
    table = pa.Table.from_pylist(rows, SCHEMA)
    whole = Matcher(both[0], SCHEMA, **options)
    expected = pa.concat_tables([whole.process(table), whole.finish()])
    matcher, parts = Matcher(both[1], SCHEMA, **options), []
    for start in range(0, len(rows), piece):
        parts.append(matcher.process(table.slice(start, piece)))
        fresh = Matcher(both[1], SCHEMA, **options)
        fresh.restore(matcher.snapshot())
        assert fresh.counts == matcher.counts
        matcher = fresh
    parts.append(matcher.finish())
    found = pa.concat_tables(parts)
    assert found.schema == expected.schema
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_what_functions_see() -> None:
    """A function receives all columns of the event, whichever the output has, as Python values, and the matched events
    by stage.
    """
    seen: list[Any] = []

    def look(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
        seen.append((dict(event), {stage: [e["id"] for e in found] for stage, found in matched.items()}))
        return True

    columns = {
        "id": [1, 2, 3],
        "at": pa.array([T, T + timedelta(hours=1), T + timedelta(hours=2)], pa.timestamp("ms", "UTC")),
        "local": pa.array([T.replace(tzinfo=None)] * 3, pa.timestamp("ns")),
        "day": pa.array([date(2026, 1, 1)] * 3),
        "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(6, 2)),
        "word": pa.array(["x"] * 3).dictionary_encode(),
        "tags": [["a", "b"]] * 3,
        "place": [{"city": "Bern", "since": T}] * 3,
    }
    pattern = Pattern.begin("a").next("b").where(look).times(2).followed_by("c").optional()
    detect(pa.table(columns), pattern, time="at", columns=[], time_zone="Asia/Tokyo")
    tokyo = ZoneInfo("Asia/Tokyo")
    first = {
        "id": 2,
        "at": datetime(2026, 1, 1, 10, tzinfo=tokyo),
        "local": T.replace(tzinfo=None),
        "day": date(2026, 1, 1),
        "price": None,
        "word": "x",
        "tags": ["a", "b"],
        "place": {"city": "Bern", "since": datetime(2026, 1, 1, 9, tzinfo=tokyo)},
    }
    assert seen[0] == (first, {"a": [1], "b": [], "c": []})
    assert seen[0][0]["at"].tzinfo == tokyo
    assert seen[1][1] == {"a": [1], "b": [2], "c": []}


def test_events_cannot_be_changed() -> None:
    """The arguments of a function are read-only."""

    def change(event: Any, matched: Any) -> bool:
        with pytest.raises(TypeError, match="does not support item assignment"):
            event["price"] = 0
        with pytest.raises(TypeError, match="does not support item assignment"):
            matched["a"] = ()
        assert isinstance(matched["a"], tuple)
        return True

    assert taken(detect(prices(1, 2), Pattern.begin("a").next("b").where(change), time="at")) == [(0, 1)]


def test_a_function_of_one_argument_is_called_once_an_event() -> None:
    """It is called once, however many partial matches, stages and edges need the result; for an event that none needs
    it is not called.
    """
    calls: list[int] = []

    def recorded(event: Mapping[str, Any]) -> bool:
        calls.append(event["i"])
        return bool(event["price"] > 1)

    pattern = Pattern.begin("a").where("kind = 'a'").followed_by_any("b").where(recorded).one_or_more().greedy()
    detect(prices(1, 2, 3, 4, 5), pattern.followed_by("c").where(recorded).within("1 hour"), time="at")
    assert calls == [1, 2, 3, 4]
    calls.clear()
    detect(prices(1, 2, 3, 4), Pattern.begin("a").where("kind = 'b'").where(recorded), time="at")
    assert calls == [1, 3]


def test_a_function_of_two_arguments_is_called_once_a_partial_match() -> None:
    """It is called only for events for which the SQL that is ANDed with it, before or after it, is true."""
    calls: list[tuple[int, int]] = []

    def recorded(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
        calls.append((matched["a"][0]["i"], event["i"]))
        return False

    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b")
    detect(prices(1, 2, 3, 4), pattern.where(recorded).where("kind = 'b'").optional().next("c"), time="at")
    assert calls == [(0, 1), (0, 3), (2, 3)]
    calls.clear()
    across = "price > a.price + 1 OR CAST(NULL AS BOOLEAN)"
    detect(prices(1, 2, 3, 4), pattern.where(across).where(recorded), time="at")
    assert calls == [(0, 2), (0, 3)]


def test_nothing_is_dropped_that_a_function_may_need() -> None:
    """SQL that is ANDed with a function drops events before the matching; SQL that is ORed with it does not."""
    request = partial(request_of, time="at")
    guarded = Pattern.begin("a").where("kind = 'a'").followed_by("b").where(dearer).where("kind = 'b'")
    plan = plan_of(prices(1), request(guarded))
    assert relevance_text(compile_plan(plan)) == (
        "Dropped early: events for which none of these is true: kind = 'a'; kind = 'b'"
    )
    for free in (guarded.or_where("price > 9"), guarded.followed_by("c").where(is_a)):
        assert compile_plan(plan_of(prices(1), request(free))).relevant is None


def test_until_and_groups() -> None:
    """A function may end a loop, and may be a condition of a stage in a group."""

    def falls(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
        return bool(matched["b"]) and bool(event["price"] < matched["b"][-1]["price"])

    loop = Pattern.begin("a").where("price = 1").next("b").one_or_more().until(falls)
    assert taken(detect(prices(1, 2, 3, 2, 4), loop, time="at")) == [(0, [1]), (0, [1, 2])]
    pair = Pattern.begin("a").where(is_a).next("b").where(dearer)
    pairs = Pattern.begin(pair).times(2)
    assert taken(detect(prices(1, 2, 3, 4), pairs, time="at")) == [([0, 2], [1, 3])]
    assert taken(detect(prices(1, 2, 3, 2), pairs, time="at")) == []


def test_numpy_s_truth_is_truth_and_none_is_not() -> None:
    """NumPy's booleans count as Python's; None, like NULL in SQL, is not true."""
    pattern = Pattern.begin("a").where(lambda event: np.float64(event["price"]) > 1, name="numpy")
    assert taken(detect(prices(1, 2), pattern, time="at")) == [(1,)]
    pattern = Pattern.begin("a").where(lambda _: None, name="none")
    assert taken(detect(prices(1, 2), pattern, time="at")) == []
    either = pattern.or_where("price > 1")
    assert taken(detect(prices(1, 2), either, time="at")) == [(1,)]


@pytest.mark.parametrize(
    ("function", "message", "cause"),
    [
        (
            lambda event, _: event["price"] / (event["i"] - 1) > 0,
            "function f raised ZeroDivisionError: float division by zero",
            ZeroDivisionError,
        ),
        (
            lambda event, _: event["prise"] > 0,
            "function f raised UnknownName: no column named 'prise'. Did you mean 'price'?",
            KeyError,
        ),
        (
            lambda _, matched: matched["d"],
            "function f raised UnknownName: no stage named 'd'. Known here: a, b",
            KeyError,
        ),
        (lambda _, _matched: 1, "function f returned 1, not True, False or None", type(None)),
        (lambda _, matched: matched["a"], "function f returned (mappingproxy(...", type(None)),
    ],
)
def test_errors_of_functions_are_reported(function: Any, message: str, cause: type) -> None:
    """The error names the pattern, stage, function and event, and has the function's exception as its cause."""
    pattern = Pattern.begin("a", name="rise").next("b").where("price > a.price").where(function, name="f")
    with pytest.raises(ConditionError) as caught:
        detect(prices(1, 2), pattern, time="at", columns=["i", "price"])
    error = str(caught.value)
    assert error.startswith(f"pattern 'rise': {message}"), error
    assert error.endswith(
        " in the condition of stage 'b' (price > a.price / f), "
        "at the event with at = 2026-01-01 00:01:00 UTC, i = 1, price = 2.0"
    ), error
    assert message.startswith("function f returned") or isinstance(caught.value.__cause__, cause)


def test_sql_beside_a_function_fails_as_sql_does() -> None:
    """The message is that of the compiled kernel."""
    pattern = Pattern.begin("a").next("b").where("1 / (price - a.price - 1) > 0").where(dearer)
    with pytest.raises(
        ConditionError, match=r"^division by zero in the condition of stage 'b' \(1 / .* / dearer\), at"
    ):
        detect(prices(1, 2), pattern, time="at")


def test_limits_and_misses_are_reported() -> None:
    """Limits and misses of a skip strategy give the same errors as for other patterns."""
    pattern = Pattern.begin("a").where(is_a).followed_by("b").where("kind = 'c'")
    with pytest.raises(LimitExceeded, match=r"more than 1 partial matches are open .* that of the event with i = 2,"):
        detect(prices(1, 2, 3), pattern, time="at", limits=Limits(max_partial_matches=1))
    miss = Pattern.begin("a").where(is_a).optional().next("b").skip(Skip.to_first("a", error_on_miss=True))
    with pytest.raises(SkipError, match="a match has no event of the stage to skip to"):
        detect(prices(1, 2, kinds="bb"), miss, time="at")


def test_a_snapshot_is_of_functions_by_name() -> None:
    """A snapshot can be restored with another function of the same name, and is refused with one of another name."""
    events_ = prices(1, 2)

    def matcher(name: str) -> Matcher:
        pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where(dearer, name=name)
        return Matcher(pattern, events_, time="at", sequence="i", lateness="0 seconds")

    first = matcher("dearer")
    first.process(events_.slice(0, 1))
    second = matcher("dearer")
    second.restore(first.snapshot())
    assert taken(second.process(events_.slice(1))) == [(0, 1)]
    with pytest.raises(SnapshotError, match='was "dearer" and is "cheaper"'):
        matcher("cheaper").restore(first.snapshot())


def test_explain_says_what_runs_in_python() -> None:
    """The text names the conditions in Python, and says that the whole pattern then runs in Python."""
    pattern = Pattern.begin("a").where(is_a).followed_by("b").where("price > a.price").or_where(dearer)
    explained = explain_pattern(pattern)
    assert "  1. a: begins with\n     where Python is_a(event)\n" in explained
    assert "     where price > a.price\n     or Python dearer(event, matched)\n" in explained
    speed = "at tens of thousands of events a second"
    assert f"Runs in Python, {speed}, as these cannot be compiled: is_a, dearer\n" in explained
    planned = explain_plan(plan_of(prices(1), request_of(pattern, time="at")))
    assert "script: (a.price < price) OR Python dearer(event, matched)" in planned
    assert "Runs in Python" in planned
    assert "Runs in Python" not in explain_pattern(Pattern.begin("a").where("price > 1"))


def test_numbers_of_keys_are_reused() -> None:
    """If few of many keys stay open, the memory of the others is released; the open ones continue."""
    count = 20_000
    at = pa.array([T] * count + [T + timedelta(seconds=1)], pa.timestamp("us", "UTC"))
    table = pa.table({"k": [*range(count), 7], "i": range(count + 1), "at": at})
    opens = Pattern.begin("a").where(lambda event: event["k"] == 7, name="is 7").next("b").where("i > 0")
    matcher = Matcher(opens, table, key="k", time="at", sequence="i", lateness="0 seconds", columns="i")
    parts = [matcher.process(table.slice(start, 5_000)) for start in range(0, count + 1, 5_000)]
    assert taken(pa.concat_tables(parts).drop_columns(["k"])) == [(7, count)]
