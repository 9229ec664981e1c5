"""Conditions that compute texts of several events; `tests/plan/test_lift_against_spark.py` compares them with Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid import ConditionError, Matcher, Pattern, PatternError, detect
from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import representation_text
from cepheid.detect import plan_of
from cepheid.intervals import interval_pattern
from cepheid.requests.request_of import request_of

START = datetime(2026, 3, 2, 22, 30, tzinfo=UTC)


def events(*texts: str | None) -> pa.Table:
    """Events n and text, an hour apart."""
    at = [START + timedelta(hours=number) for number in range(len(texts))]
    return pa.table({"n": range(len(texts)), "at": at, "text": pa.array(texts, pa.string())})


def pairs(condition: str, table: pa.Table) -> list[tuple[int, int]]:
    pattern = Pattern.begin("a").followed_by_any("b").where(condition)
    found = detect(table, pattern, time="at", measures={"a": "a.n", "b": "b.n"})
    return [(pair["a"], pair["b"]) for pair in found.to_pylist()]


def test_a_text_contains_that_of_an_earlier_event() -> None:
    """LIKE's pattern may come from the data; NULL is like nothing."""
    table = events("ann", "login of ann", None, "ANN left", "bob")
    assert pairs("text LIKE '%' || a.text || '%'", table) == [(0, 1)]
    assert pairs("text ILIKE concat('%', a.text, '%')", table) == [(0, 1), (0, 3)]


def test_a_condition_continues_in_a_later_batch() -> None:
    """A live matcher keeps the texts, also in its snapshot."""
    table = events("x", "q", "y")
    pattern = Pattern.begin("a").where("text = 'x'").followed_by("b").where("concat(a.text, text) = 'xy'")
    matcher = Matcher(pattern, table.schema, time="at")
    assert len(matcher.process(table.slice(0, 2))) == 0
    restored = Matcher(pattern, table.schema, time="at")
    restored.restore(matcher.snapshot())
    assert len(restored.process(table.slice(2))) + len(restored.finish()) == 1


def test_a_wrong_pattern_of_like_is_named() -> None:
    """As on Spark, a backslash before an ordinary character is an error of the event."""
    with pytest.raises(ConditionError, match=r"LIKE has 'x' after a backslash"):
        pairs("text LIKE a.text", events("\\x", "x"))


def test_explain_says_that_python_computes_texts() -> None:
    """And an ordinary pattern is compiled."""
    table = events("x", "y")
    for condition, expected in (("text || a.text = 'yx'", True), ("upper(text) = upper(a.text)", False)):
        request = request_of(Pattern.begin("a").followed_by("b").where(condition), time="at")
        text = representation_text(compile_plan(plan_of(table, request)))
        assert ("a condition computes texts of several events, in Python" in text) is expected


def test_functions_of_a_choice_are_compiled() -> None:
    """A function of a CASE, coalesce, greatest or least between events is lifted for each event."""
    table = events("x", None, "xyz", "ab")
    assert pairs("hour(CASE WHEN text = 'ab' THEN a.at ELSE at END) = 0", table) == [(0, 2), (1, 2), (2, 3)]
    assert pairs("length(coalesce(text, a.text)) = 1", table) == [(0, 1)]
    assert pairs("hour(greatest(at, a.at)) = 0", table) == [(0, 2), (1, 2)]
    assert pairs("date_trunc('day', least(a.at, at)) = '2026-03-03'", table) == [(2, 3)]
    assert pairs("ascii(greatest(text, a.text)) = 97", table) == [(1, 3)]
    request = request_of(Pattern.begin("a").followed_by("b").where("length(nvl(text, a.text)) = 1"), time="at")
    assert not plan_of(table, request).runs_in_python


def test_arguments_are_checked() -> None:
    """The type and number of arguments, with what to write."""
    with pytest.raises(PatternError, match=r"(?s)substring takes INT, this is BIGINT.*CAST\(… AS INT\)"):
        pairs("substring(text || a.text, n) = 'x'", events("x"))
    with pytest.raises(PatternError, match=r"across events left takes 2 arguments, got 1"):
        pairs("left(text || a.text) = 'x'", events("x"))
    with pytest.raises(PatternError, match=r"(?s)a STRING is needed here.*CAST\(… AS STRING\)"):
        pairs("concat(n - a.n, 'x') = '1x'", events("x"))


def test_intervals_know_no_texts_of_several_events() -> None:
    """They are refused with the list of what is known."""
    table = events("x").append_column("end", [[START + timedelta(days=1)]])
    query = "EVENT SEQ(x a, x b) WHERE concat(a.text, b.text) = 'x'"
    pattern = interval_pattern(query).taxonomy("text")
    with pytest.raises(PatternError, match="concat cannot be applied across events"):
        detect(table, pattern, time=("at", "end"))
