"""Times and dates in conditions across events: next to texts, and moved by intervals.

`tests/plan/test_lift_against_spark.py` compares such conditions with Spark.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid import ConditionError, IntervalPattern, OccurrencePattern, Pattern, PatternError, detect, why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        ("n < 2 AND text - a.d = INTERVAL 0 DAY", [(0, 1)]),
        ("greatest(n, a.n) > '2'", [(0, 3), (1, 3), (2, 3)]),
        ("'2026-01-03 12:00' - a.d >= INTERVAL 36 HOURS AND n = 3", [(0, 3), (1, 3)]),
        ("n < 2 AND datediff(text, a.text) = 0", [(0, 1)]),
        ("n < 2 AND timestampdiff(HOUR, a.text, text) = 14", [(0, 1)]),
        ("sqrt(coalesce('' || a.n, '9')) > 1", [(2, 3)]),
        ("nvl2(text, a.n, n) = 3 AND ('no' OR n > a.n)", [(0, 3), (1, 3), (2, 3)]),
        ("month(concat('2026-0', a.n + 1)) = n", [(0, 1), (1, 2), (2, 3)]),
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


@pytest.mark.parametrize(
    ("condition", "end"),
    [
        ("at > a.text", r": text of the event with n = 2, .*text = 'x'$"),
        ("a.text < at", r": text of the event with n = 2, .*text = 'x'$"),
        ("a.text + INTERVAL 1 DAY > text", r": text of the event with n = 2, .*text = 'x'$"),
        ("d - a.text > INTERVAL 1 DAY", r": text of the event with n = 2, .*text = 'x'$"),
        ("month(a.text) > n", r": text of the event with n = 2, .*text = 'x'$"),
        ("hour(CAST(a.text AS TIMESTAMP)) > n + 100", r": text of the event with n = 2, .*text = 'x'$"),
        ("a.at < text", r"at the event with n = 2, .*text = 'x': text$"),
        ("at > concat(a.kind, a.text)", "at the event with n = 1, .*: kind, text of an event in the match$"),
        ("at > a.text AND at > a.kind", r"at the event with n = 1, [^()]*text = '2026-01-01 14:00:00'$"),
    ],
)
def test_a_text_of_the_data_that_is_no_time_fails(condition: str, end: str) -> None:
    """Only where it is read. The message names its column and event, as far as these are certain."""
    with pytest.raises(ConditionError, match="a value cannot be cast in the condition of stage 'b'") as caught:
        pairs(condition)
    assert re.search(end, str(caught.value))


@pytest.mark.parametrize(
    "read",
    [
        *("text < a.text + INTERVAL 1 DAY", "d - a.text > INTERVAL 1 DAY", "a.d - a.text > a.length", "a.text + 1 > n"),
        *("month(a.text) > n", "hour(a.text) > n", "second(a.text) > n", "last_day(a.text) > d"),
        *("weekday(CAST(a.text AS DATE)) = n", "day(a.text + INTERVAL 1 DAY) > n"),
    ],
)
def test_a_text_that_no_condition_reads_fails_nowhere(read: str) -> None:
    """It is cast for all events, and fails only where the condition comes to it."""
    assert pairs(f"n > a.n + 100 AND {read}") == []


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
        ("at >= a.d + a.length", ALL),
        ("d = a.d + 1", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("d - a.d >= INTERVAL 1 DAY", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("at - a.d > INTERVAL 30 HOURS", [(0, 3), (1, 3)]),
        ("d > a.at", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("at < a.at + INTERVAL 1 MONTH", ALL),
        ("at < a.at - INTERVAL '1-2' YEAR TO MONTH", []),
        ("at < a.d + INTERVAL 1 DAY", [(0, 1), (2, 3)]),
        ("at < add_months(a.d, 1)", ALL),
        ("at < max(a.d) + INTERVAL 1 DAY", [(0, 1), (2, 3)]),
        ("at >= max(a.d) + INTERVAL 30 HOURS", [(0, 3), (1, 3)]),
        ("d > min(a.d) - INTERVAL 1 MONTH", ALL),
        ("d > greatest(d, a.d) - 1", ALL),
        ("d > greatest(d, a.d) + length", []),
        ("at + INTERVAL 1 DAY > greatest(at, a.at)", ALL),
        ("at > greatest(at, a.at) + INTERVAL 1 MONTH", []),
        ("at < CASE WHEN a.n = 0 THEN d ELSE a.d END + INTERVAL 1 DAY", [(0, 1), (0, 2), (0, 3), (2, 3)]),
    ],
)
def test_dates_and_months(condition: str, expected: list[tuple[int, int]]) -> None:
    """A date or a time is moved by any interval; the host computes it for single events."""
    assert pairs(condition) == expected


SUMMER = [datetime(2024, 3, 9, 17, tzinfo=UTC) + timedelta(hours=hours) for hours in (0, 23.5, 24)]
"""The clocks of New York are moved forward in the second night."""
NEW_YORK = "America/New_York"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("at < a.at + INTERVAL 1 DAY", [(1, 2)]),
        ("at - a.at < INTERVAL 1 DAY", [(1, 2)]),
        ("at - INTERVAL 1 DAY < a.at", [(1, 2)]),
        ("at < greatest(at, a.at) - INTERVAL '1 00:00:01' DAY TO SECOND OR at <= a.at + INTERVAL 24 HOURS", [(1, 2)]),
        ("at < max(a.at) + INTERVAL 1435 MINUTES", [(0, 1), (1, 2)]),
        ("at < a.d + INTERVAL '1 11:00:01' DAY TO SECOND", [(1, 2)]),
        ("at < max(a.d) + INTERVAL 1 DAY + INTERVAL 16 HOURS", [(0, 1), (0, 2), (1, 2)]),
        ("a.at < '2024-03-10 03:00' AND a.at + INTERVAL 1 DAY > '2024-03-10 12'", []),
    ],
)
def test_days_of_the_sessions_clock(condition: str, expected: list[tuple[int, int]], spark: SparkSession) -> None:
    """A day, and a difference of times, is one of the clock, on every host."""
    table = pa.table(
        {"n": pa.array(range(3), pa.int32()), "at": SUMMER, "d": [at.date() for at in SUMMER], "k": [1] * 3}
    )
    pattern, measures = Pattern.begin("a").followed_by_any("b").where(condition), {"a": "a.n", "b": "b.n"}
    found = [detect(table, pattern, key="k", time="at", measures=measures, time_zone=NEW_YORK).to_pylist()]
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    try:
        found.append(
            detect(spark.createDataFrame(table), pattern, key="k", time="at", measures=measures).toArrow().to_pylist()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [sorted((pair["a"], pair["b"]) for pair in pairs) for pairs in found] == [expected, expected]


def test_starts_and_ends_of_occurrences_are_instants() -> None:
    """The time between them elapses, also where the clock changes; they are not times of one event."""
    table = pa.table({"kind": ["A", "B", "C"], "at": SUMMER})
    for condition, count in (
        ("start(?b) - end(?a) < INTERVAL 1 DAY", 1),
        ("start(?b) < end(?a) + INTERVAL 1 DAY", 1),
        ("b.at - a.at < INTERVAL 1 DAY", 0),
    ):
        pattern = OccurrencePattern.of(f"(?a:A ; ?b:B)[{condition}]").taxonomy("kind")
        assert len(detect(table, pattern, time="at", time_zone=NEW_YORK)) == count


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("at < max(a.at) + INTERVAL 1 DAY", "'+' of TIMESTAMP and INTERVAL DAY TO SECOND is not known across events"),
        ("at - max(a.at) < INTERVAL 1 HOUR", "'-' of TIMESTAMP and TIMESTAMP is not known across events"),
        ("max(a.at) - d < INTERVAL 1 HOUR", "'-' of TIMESTAMP and DATE is not known across events"),
        ("text < max(a.text) + INTERVAL 1 DAY", "'+' of STRING and INTERVAL DAY TO SECOND is not known across events"),
        ("datediff(max(a.at), at) < 1", "'datediff' of TIMESTAMP and TIMESTAMP is not known across events"),
    ],
)
def test_days_after_the_latest_time(condition: str, message: str) -> None:
    """Where the clock changes, the latest time is not the latest on the clock. The message says what to write."""
    with pytest.raises(PatternError) as caught:
        detect(EVENTS, Pattern.begin("a").next("b").where(condition), time="at", time_zone=NEW_YORK)
    (problem,) = caught.value.problems
    assert problem.message == message
    assert problem.hint.startswith("Take the value of a single event: last(stage.time) in place of max(stage.time).")


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("CASE WHEN n > 1 THEN a.d ELSE at END + INTERVAL 1 DAY > at", "Cast the values that are chosen between"),
        ("at > a.at + (at - a.at)", "Compare a difference of two times, as in time - stage.time > INTERVAL 1 HOUR."),
        ("at - a.at > length * 2", "Lengths of time are added, x + x, and compared with a constant"),
        ("(at - a.at) * 2 > length", "Lengths of time are added, x + x, and compared with a constant"),
        ("CAST(length AS STRING) > CAST(a.length AS STRING)", "Lengths of time are added, x + x, and compared"),
        ("CAST(at - a.at AS STRING) > '1'", "Compare the value without this cast"),
        (
            "at > last(a.at) AND to_date('2026-45-01', 'yyyy-MM-dd') < d",
            "'2026-45-01' is no time of the form yyyy-MM-dd",
        ),
        ("at > a.at AND to_date('2026-02-29', 'yyyy-MM-dd') < d", "'2026-02-29' is no time of the form yyyy-MM-dd"),
    ],
)
def test_what_to_write_instead(condition: str, hint: str) -> None:
    """Where the clock changes."""
    with pytest.raises(PatternError, match=re.escape(hint)):
        detect(EVENTS, Pattern.begin("a").next("b").where(condition), time="at", time_zone=NEW_YORK)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("at > max(a.at) + INTERVAL 1 MONTH", "'+' of TIMESTAMP and INTERVAL YEAR TO MONTH is not known across events"),
        ("d > max(a.d) + n", "'+' of DATE and INT is not known across events"),
        ("at < a.d + a.length * 1", "'*' of INTERVAL DAY TO SECOND and INT: not available in process"),
    ],
)
def test_what_only_one_event_may_do(condition: str, message: str) -> None:
    """The types are named as in SQL."""
    with pytest.raises(PatternError, match=re.escape(message)):
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


@pytest.mark.parametrize("key", ["u", {"a": 1}, {"a": None}, math.nan])
def test_the_event_of_a_failed_cast_has_the_key(key: object) -> None:
    """Whatever the type of the key: structs and NaN cannot be compared with =."""
    events = pa.table({"k": [key] * 3, "at": [1, 2, 3], "x": [0, 1, 1], "text": ["5", "oops", "6"], "n": [5, 5, 5]})
    pattern = Pattern.begin("a").where("x = 0").next("b").where("a.n < CAST(text AS INT) + a.n").within("1 minute")
    times = events.set_column(1, "at", events["at"].cast(pa.timestamp("us", "UTC")))
    with pytest.raises(ConditionError, match=r"a value cannot be cast .*'oops', n = 5: text$"):
        detect(times, pattern, key="k", time="at")
