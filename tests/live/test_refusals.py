"""What a matcher refuses, and the errors after a failure in the middle of a call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.live.events import PAIR, at, events, matcher, summaries

from cepheid import (
    ConditionError,
    LimitExceeded,
    Limits,
    Matcher,
    MatcherFailed,
    Pattern,
    SchemaError,
    Skip,
    SkipError,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lateness": "soon"}, "lateness: not a length of time: 'soon'. Write a whole number and a unit, as in"),
        ({"lateness": timedelta(-1)}, "lateness: a length of time must not be negative, got "),
        ({"lateness": 5}, "lateness: a length of time is text such as '12 hours', or a timedelta; got int: 5"),
        ({"time": None}, "lateness needs event times: name the column with time=…"),
        (
            {"outputs": "all"},
            "outputs: 'all' cannot be requested; allowed are 'matches', 'timeouts', 'no_match', 'inconsistent', 'late'",
        ),
        ({"key": "kk"}, "key: no column named 'kk'"),
        ({"consistency": "soon"}, "consistency is 'conservative' or 'realtime', got 'soon'"),
        (
            {"consistency": "realtime", "time": None, "lateness": None},
            "consistency needs event times: name the column with time=…",
        ),
    ],
)
def test_arguments(options: dict[str, Any], message: str) -> None:
    """The message for a wrong argument names it and says what is expected."""
    pattern = Pattern.begin("a") if "time" in options else PAIR
    with pytest.raises(SchemaError) as caught:
        matcher(pattern, **options)
    assert str(caught.value).startswith(message)


def test_switch_needs_a_consistency() -> None:
    """A matcher that was made without a consistency refuses to switch: its rows could not say what changes."""
    with pytest.raises(SchemaError) as caught:
        matcher().switch("realtime")
    assert str(caught.value) == (
        "switch: this matcher was made without a consistency. Give one to Matcher(consistency=…)"
    )


def test_integers_that_pandas_turned_into_floats() -> None:
    """Integers with missing values become floats in pandas. The matcher refuses these, since large numbers are rounded,
    and accepts those of type Int64.
    """
    columns = pa.schema({"at": pa.timestamp("us", "UTC"), "x": pa.int64()})
    live = Matcher(Pattern.begin("a").where("x IS NULL OR x > 9007199254740992"), columns, time="at", lateness="0s")
    frame = pd.DataFrame({"at": [at(0), at(1)], "x": [9_007_199_254_740_993, None]})
    with pytest.raises(SchemaError) as caught:
        live.process(frame)
    assert str(caught.value) == (
        "column 'x' is of type double; the matcher was made for int64. pandas converts integers to floats where some "
        "are missing, and rounds large ones: give the column the type Int64 where the table is made"
    )
    with pytest.raises(SchemaError, match=r"is of type double; the matcher was made for int64$"):
        live.process(frame.fillna(1))
    values = pd.array([9_007_199_254_740_993, None], "Int64")
    rows = [*live.process(frame.assign(x=values)).to_pylist(), *live.finish().to_pylist()]
    assert [row["a"]["x"] for row in rows] == [9_007_199_254_740_993, None]


def test_wrong_columns() -> None:
    """All missing columns and all columns of another type are named; the matcher is unchanged."""
    live = matcher()
    table = events((1, "p", 0, "a"))
    with pytest.raises(SchemaError) as caught:
        live.process(table.drop_columns(["k", "x"]))
    assert str(caught.value).splitlines() == [
        "events have no column 'k', which the matcher was made with",
        "events have no column 'x', which the matcher was made with",
    ]
    wrong = table.set_column(1, "k", pa.array([1])).set_column(3, "x", pa.array([b"a"]))
    with pytest.raises(SchemaError) as caught:
        live.process(wrong)
    assert str(caught.value).splitlines() == [
        "column 'k' is of type int64; the matcher was made for string",
        "column 'x' is of type binary; the matcher was made for string",
    ]
    with pytest.raises(SchemaError, match="two columns of the events are named 'x'"):
        live.process(table.append_column("x", table.column("x")))
    with pytest.raises(SchemaError, match=r"events are a list"):
        live.process([1, 2])
    with pytest.raises(SchemaError, match="has nanoseconds: round it to microseconds"):
        live.advance_time(pd.Timestamp(1))
    with pytest.raises(SchemaError, match="time: 'soon' is not a time"):
        live.advance_time("soon")
    assert live.counts.events == 0
    assert summaries(live.process(table)) == []


DIVIDES = Pattern.begin("a").where("x = 'a'").followed_by("b").where("100 / (id - a.id) > 1")


@pytest.mark.parametrize(
    ("pattern", "options", "error"),
    [
        (DIVIDES, {"sequence": "x"}, ConditionError),
        (Pattern.begin("a").followed_by_any("b"), {"limits": Limits(max_partial_matches=1)}, LimitExceeded),
        (
            Pattern.begin("a").where("x = 'a'").followed_by("b").skip(Skip.to_first("a", error_on_miss=True)),
            {},
            SkipError,
        ),
        (Pattern.begin("a").next("b").where(lambda event: event["id"] / 0 > 1, name="f"), {}, ConditionError),
        (Pattern.begin("a").next("b"), {"outputs": None, "measures": {"n": "1 / (b.id - 1)"}}, ConditionError),
    ],
)
def test_a_failure_half_way(pattern: Pattern, options: dict[str, Any], error: type[Exception]) -> None:
    """After a failure in the middle of a call, the matcher refuses every call except restoring a snapshot, from which
    it continues.
    """
    live = matcher(pattern, **options)
    live.process(events((1, "p", 0, "a")))
    state, counts = live.snapshot(), live.counts
    with pytest.raises(error) as first:
        live.process(events((1, "p", 1, "z"), (2, "p", 2, "z")))
    for call in (live.finish, live.snapshot, lambda: live.process(events()), lambda: live.advance_time(at(5))):
        with pytest.raises(MatcherFailed) as caught:
            call()
        assert str(caught.value) == (
            f"this matcher failed half-way in an earlier call, with {error.__name__}: {first.value}\n"
            "Restore its last snapshot, or make another one"
        )
    live.restore(state)
    assert live.counts == counts
    live.advance_time(at(0.5))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("1 / (b.id - a.id)", "measure 'n': division by zero in '1 / (b.id - a.id)'"),
        ("sum(b.id + 9223372036854775806)", "measure 'n': a sum over a stage is out of the range of int64"),
    ],
)
def test_a_measure_that_fails(measure: str, message: str) -> None:
    """The error names the measure, with its text as the user wrote it."""
    pattern = Pattern.begin("a").next("b").times(2)
    live = matcher(pattern, outputs=None, measures={"m": "a.id", "n": measure})
    with pytest.raises(ConditionError) as caught:
        live.process(events((1, "p", 0, "x"), (1, "p", 1, "x"), (1, "p", 2, "x"), (1, "p", 9, "x")))
    assert str(caught.value) == message


def test_a_condition_on_one_event_that_fails() -> None:
    """The error occurs before the state changes, so the matcher continues without that batch."""
    live = matcher(Pattern.begin("a").where("10 / id > 1").followed_by("b").where("x = 'b'"))
    live.process(events((1, "p", 0, "a")))
    with pytest.raises(ConditionError, match="division by zero"):
        live.process(events((0, "p", 1, "a")))
    assert summaries(live.process(events((9, "p", 1, "b")))) == [("match", (1, 9), 1)]
