"""Times and dates in conditions across events: next to texts, and moved by intervals.

`tests/plan/test_lift_against_spark.py` compares such conditions with Spark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid import ConditionError, IntervalPattern, OccurrencePattern, Pattern, PatternError, detect, why

START = datetime(2026, 1, 1, tzinfo=UTC)
STARTS = [START + timedelta(hours=14 * number) for number in range(4)]
EVENTS = pa.table(
    {
        "n": pa.array(range(4), pa.int32()),
        "kind": ["A", "B"] * 2,
        "at": STARTS,
        "end": [start + timedelta(hours=20) for start in STARTS],
        "d": [start.date() for start in STARTS],
        "length": pa.array([timedelta(hours=3)] * 4, pa.duration("us")),
        "text": ["2026-01-01", "2026-01-01 14:00:00", "x", None],
    }
)
ALL = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def pairs(condition: str, **parameters: object) -> list[tuple[int, int]]:
    pattern = Pattern.begin("a").followed_by_any("b").where(condition).with_parameters(**parameters)
    found = detect(EVENTS, pattern, time="at", measures={"a": "a.n", "b": "b.n"})
    return sorted((pair["a"], pair["b"]) for pair in found.to_pylist())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.at > '2026-01-01'", ALL[3:]),
        ("a.at > '2026-01-01' OR at > a.at", ALL),
        ("a.d = '2026-01-02' OR n > a.n + 2", [(0, 3), (2, 3)]),
        ("greatest(a.at, at) >= '2026-01-02 18:00'", [(0, 3), (1, 3), (2, 3)]),
        ("max(a.at) = '2026-01-01T00:00:00Z'", ALL[:3]),
        ("at BETWEEN a.at AND '2026-1-1 15:00'", [(0, 1)]),
        ("coalesce(a.at, at, '2026-01-01') IN ('2026-01-01', '2025-01-01')", ALL[:3]),
        ("n < 2 AND at > a.text", [(0, 1)]),
        ("greatest(n, a.n) > '2'", [(0, 3), (1, 3), (2, 3)]),
    ],
)
def test_a_text_is_cast_to_the_other_side(condition: str, expected: list[tuple[int, int]]) -> None:
    """As on Spark, a text next to a time or a number is a time or a number."""
    assert pairs(condition) == expected


def test_a_parameter_may_be_such_a_text() -> None:
    """Also in `until`."""
    assert pairs("a.at > $start", start="2026-01-01") == ALL[3:]
    loop = Pattern.begin("a").one_or_more().until("a.at > '2026-01-01'")
    assert len(detect(EVENTS, loop, time="at")) == 5


def test_a_text_of_the_data_that_is_no_time_fails() -> None:
    """Only where it is read."""
    with pytest.raises(ConditionError, match="a value cannot be cast in the condition of stage 'b'"):
        pairs("at > a.text")


def test_a_text_of_two_types_is_refused() -> None:
    """A value that is compared as one type and returned as another."""
    with pytest.raises(PatternError, match=r"(?s)compared with values of type TIMESTAMP.*CAST\(… AS TIMESTAMP\)"):
        pairs("nullif(a.text, at) IS NULL")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d > a.d + INTERVAL 1 DAY", []),
        ("d >= a.d + INTERVAL '1' DAY", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("d - INTERVAL 1 DAY = a.d - INTERVAL 0 DAYS", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("at > a.d + INTERVAL 30 HOURS", [(0, 3), (1, 3)]),
        ("at < a.d + a.length * 1", None),
        ("at >= a.d + a.length", ALL),
        ("d = a.d + 1", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("d - a.d >= INTERVAL 1 DAY", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("at - a.d > INTERVAL 30 HOURS", [(0, 3), (1, 3)]),
        ("d > a.at", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("at < a.at + INTERVAL 1 MONTH", ALL),
        ("at < a.at - INTERVAL '1-2' YEAR TO MONTH", []),
    ],
)
def test_dates_and_months(condition: str, expected: list[tuple[int, int]] | None) -> None:
    """A date or a time of one event is moved by any interval; the host computes it."""
    if expected is None:
        with pytest.raises(PatternError, match=r"'\*' of INTERVAL DAY TO SECOND and INT"):
            pairs(condition)
    else:
        assert pairs(condition) == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "d > greatest(d, a.d) + length",
            r"(?s)cannot be applied to DATE and INTERVAL DAY.*Cast the DATE to TIMESTAMP",
        ),
        ("at > greatest(at, a.at) + INTERVAL 1 MONTH", "cannot be applied to TIMESTAMP and INTERVAL YEAR TO MONTH"),
    ],
)
def test_what_only_one_event_may_do(condition: str, message: str) -> None:
    """Dates of several events with lengths, and months: the types are named as in SQL."""
    with pytest.raises(PatternError, match=message):
        pairs(condition)


@pytest.mark.parametrize(
    "condition",
    ["a.at >= '2026-01-01' OR b.n < a.n", "a.d + INTERVAL 1 DAY >= b.d", "b.at < a.at + INTERVAL 1 MONTH"],
)
def test_intervals_and_occurrences(condition: str) -> None:
    """The other kinds of pattern have the same conditions."""
    interval = IntervalPattern.of(f"EVENT PAL(A a overlap B b) WHERE {condition}").taxonomy("kind")
    assert len(detect(EVENTS, interval, time=("at", "end"))) == 2
    occurrence = OccurrencePattern.of(f"(?a:A ; ?b:B)[{condition}]").taxonomy("kind")
    assert len(detect(EVENTS, occurrence, time="at")) == 3


@pytest.mark.parametrize(
    ("condition", "reason", "off_by"),
    [
        ("at > '2026-01-01 20:00'", "at = 2026-01-01 14:00:00", 6 * 60.0),
        ("d = '2026-01-03'", "d = 2026-01-01", 2 * 1440.0),
        ("at BETWEEN '2026-01-01 15:00' AND '2026-02-01'", "at = 2026-01-01 14:00:00", 60.0),
        ("date(at) IN ('2026-01-03')", "at = 2026-01-01 14:00:00", None),
        (
            "at > a.at + INTERVAL 1 MONTH",
            "at = 2026-01-01 14:00:00, a.at + INTERVAL 1 MONTH = 2026-02-01 00:00:00",
            None,
        ),
    ],
)
def test_near_misses_and_traces(condition: str, reason: str, off_by: float | None) -> None:
    """A near miss says how far a time is from the text, and a trace shows the condition as false."""
    pattern = Pattern.begin("a").where("n = 0").next("b").where(f"{condition} AND n = 1")
    found = why(EVENTS, pattern, time="at")
    (miss,) = found.near_misses.to_pylist()
    assert miss["reason"] == reason
    assert off_by is None or miss["off_by"] == off_by
    assert f"{condition}: false" in str(found.trace())


def test_dates_as_time() -> None:
    """A table whose time is a DATE."""
    days = pa.table({"at": [date(2026, 1, day) for day in (1, 2, 4)]})
    pattern = Pattern.begin("a").followed_by_any("b").where("at <= a.at + INTERVAL 1 DAY AND a.at >= '2026-01-01'")
    assert len(detect(days, pattern, time="at")) == 1
