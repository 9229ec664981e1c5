"""Event times of all types: dates are the starts of days, and nanoseconds are not lost unnoticed."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import EventError, IntervalMatcher, Matcher, Pattern, SchemaError, Skip, detect
from cepheid.intervals import interval_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIES = pytest.mark.filterwarnings("ignore:.*agree in key and time")
PAIR = Pattern.begin("a").next("b").skip(Skip.no_skip())
ALONE = Pattern.begin("a").not_followed_by("b").where("n = 0").within("3 hours")
MIDNIGHTS = {"America/Sao_Paulo": (date(2018, 11, 4), 4), "America/Havana": (date(2026, 11, 1), 2)}
"""Days that start at one o'clock, or with the first of two midnights → what clocks show three hours later."""


@pytest.mark.parametrize("zone", MIDNIGHTS)
def test_a_date_is_the_start_of_the_day(zone: str) -> None:
    """Where clocks change at midnight, the day starts with the change, or with the first of two midnights."""
    day, hour = MIDNIGHTS[zone]
    (row,) = detect(pa.table({"at": [day], "n": [1]}), ALONE, time="at", time_zone=zone).to_pylist()
    assert (row["match_start"], row["detected_at"]) == (day, datetime(day.year, day.month, day.day, hour))  # noqa: DTZ001


@pytest.mark.spark
def test_a_date_is_the_start_of_the_day_on_spark(spark: SparkSession) -> None:
    """Spark finds the same matches of dates, with the same ids."""
    events = pa.table({"zone": [*MIDNIGHTS], "at": [day for day, _ in MIDNIGHTS.values()], "n": [1, 1]})
    for zone in MIDNIGHTS:
        options: dict[str, Any] = {"key": "zone", "time": "at", "time_zone": zone}
        found = detect(spark.createDataFrame(events), ALONE, **options).toArrow()
        assert found.sort_by("zone").to_pylist() == detect(events, ALONE, **options).sort_by("zone").to_pylist()


def test_dates_of_intervals_and_matchers() -> None:
    """A DATE is the start of the day for events with two times, and from a matcher, too."""
    day = MIDNIGHTS["America/Sao_Paulo"][0]
    events = pa.table({"from": [day], "to": [day], "n": [1], "t": ["A"]})
    options: dict[str, Any] = {"time": ("from", "to"), "time_zone": "America/Sao_Paulo"}
    pattern = interval_pattern("EVENT PAL(A a)").taxonomy("t")
    (row,) = detect(events, pattern, **options).to_pylist()
    matcher = IntervalMatcher(pattern, events, lateness=None, **options)
    rows = pa.concat_tables([matcher.process(events), matcher.finish()]).to_pylist()
    assert [(one["match_start"], one["match_id"]) for one in rows] == [(day, row["match_id"])]
    assert row["detected_at"] == datetime(2018, 11, 4, 1)  # noqa: DTZ001
    live = Matcher(ALONE, events, time="from", time_zone="America/Sao_Paulo", lateness="0 seconds")
    rows = pa.concat_tables([live.process(events), live.finish()]).to_pylist()
    assert [one["detected_at"] for one in rows] == [datetime(2018, 11, 4, 4)]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("hours", "zone", "fault"),
    [
        (
            ["2026-03-29 01:30", None, "2026-03-29 02:30"],
            "Europe/Berlin",
            (
                "2026-03-29 02:30:00 in column 'at' (row 2, counted from 0) does not exist in Europe/Berlin, where "
                "clocks were set forward. Convert"
            ),
        ),
        (
            ["2026-11-01 03:00", "2026-11-01 01:10", "2026-11-01 01:20"],
            "America/New_York",
            (
                "2026-11-01 01:10:00 in column 'at' (row 1, counted from 0) is ambiguous in America/New_York, where "
                "clocks were set back. It is the first of 2 such times. Convert"
            ),
        ),
    ],
)
def test_uncertain_local_times_are_named(hours: list[str | None], zone: str, fault: str) -> None:
    """A local time that is ambiguous or does not exist is named with its row, by detect and by a matcher."""
    events = pd.DataFrame({"at": pd.to_datetime(pd.Series(hours))})
    matcher = Matcher(PAIR, events, time="at", time_zone=zone, lateness="0 seconds")
    for call in (lambda: detect(events, PAIR, time="at", time_zone=zone), lambda: matcher.process(events)):
        with pytest.raises(EventError) as caught:
            call()
        assert str(caught.value).startswith(f"the local time {fault}")


def test_events_without_a_time_are_named() -> None:
    """The first row without a time is named, among those that `as_of` lets count."""
    hours = pd.to_datetime(pd.Series(["2026-03-29 05:00", "2026-03-29 01:00", None, None]))
    with pytest.raises(EventError, match=r"2 without a time \(at\), the first in row 2, counted from 0\. Drop them"):
        detect(pd.DataFrame({"at": hours}), PAIR, time="at", as_of="2026-03-29 02:00")


def in_nanoseconds(*times: int, **columns: Any) -> pa.Table:
    return pa.table({"at": pa.array(times, pa.timestamp("ns", "UTC")), "n": [*range(len(times))], **columns})


def pairs(rows: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["a"]["n"], row["b"]["n"]) for row in rows.to_pylist())


def test_nanoseconds_are_refused() -> None:
    """A time that is no whole number of microseconds is an error, which says how it can be used."""
    events = in_nanoseconds(1_500, 1_200)
    matcher = Matcher(PAIR, events, time="at", lateness="0 seconds")
    calls = [lambda: detect(events, PAIR, time="at"), lambda: matcher.process(events)]
    for call in calls:
        with pytest.raises(EventError) as caught:
            call()
        assert str(caught.value).startswith(
            "a time in 'at' does not fit microseconds: it is 1970-01-01 00:00:00.000001500Z (row 0, counted from 0). "
        )
        assert str(caught.value).endswith(
            "Round the column to microseconds first, or give time_resolution='us', which cuts times and orders by the "
            "rest"
        )
    with pytest.raises(SchemaError, match=r"time_resolution: 'us' cuts times to microseconds; .* got 'ms'"):
        detect(events, PAIR, time="at", time_resolution="ms")  # type: ignore[type-var]
    with pytest.raises(SchemaError, match="the column name '_finer' is reserved where times are cut: rename"):
        detect(in_nanoseconds(1, _finer=[1]), PAIR, time="at", time_resolution="us")


@share(25)
@given(times=st.lists(st.integers(-3_000, 3_000), min_size=2, max_size=8, unique=True))
def test_cut_times_order_by_the_rest(times: list[int]) -> None:
    """Events within a microsecond are in the order of their nanoseconds, before 1970, too; also from a matcher, however
    they are cut into calls.
    """
    events = in_nanoseconds(*times)
    order = sorted(range(len(times)), key=times.__getitem__)
    expected = sorted(itertools.pairwise(order))
    assert pairs(detect(events, PAIR, time="at", time_resolution="us")) == expected
    matcher = Matcher(PAIR, events, time="at", lateness="1 second", time_resolution="us")
    rows = [matcher.process(events.slice(row, 1)) for row in range(len(times))]
    assert pairs(pa.concat_tables([*rows, matcher.finish()])) == expected


@TIES
def test_what_cut_times_are_in_rows() -> None:
    """Times in rows of matches are cut; rows of events have those of the table. Events that only nanoseconds
    distinguish have different ids, and need no sequence.
    """
    events = in_nanoseconds(1_001, 1_002, 1_002, n=[0, 0, 0])
    options: dict[str, Any] = {"time": "at", "time_resolution": "us"}
    found = detect(events, Pattern.begin("a"), **options)
    assert found.column("match_start").cast(pa.int64()).to_pylist() == [1_000] * 3
    assert len(set(found.column("match_id").to_pylist())) == 3
    rows = detect(events, Pattern.begin("a"), rows_per="event", **options)
    assert rows.select(["at", "n"]).equals(events)


def test_other_columns_keep_nanoseconds() -> None:
    """A column that no condition reads is returned with its nanoseconds, in structs, lists and rows of events."""
    received = pa.array([1_001, None, 3_003], pa.timestamp("ns"))
    took = received.cast(pa.int64()).cast(pa.duration("ns"))
    events = in_nanoseconds(1_000, 2_000, 3_000, received=received, took=took)
    pattern = Pattern.begin("a").times(2).consecutive().next("b")
    (row,) = detect(events, pattern, time="at").to_pylist()
    assert [one["received"] for one in (*row["a"], row["b"])] == received.to_pylist()
    assert [one["took"] for one in (*row["a"], row["b"])] == events.column("took").to_pylist()
    (pandas,) = detect(events.to_pandas(), pattern, time="at").to_dict("records")
    assert pandas["b"]["received"] == pd.Timestamp(3_003)
    assert pandas["a"][0]["took"] == pd.Timedelta(1_001)
    rows = detect(events, pattern, time="at", rows_per="event")
    assert rows.column("received").to_pylist() == received.to_pylist()
    with pytest.raises(EventError, match="a value in column 'received' does not fit"):
        detect(events, Pattern.begin("a").where("received IS NULL"), time="at")


@TIES
def test_ids_of_columns_in_nanoseconds() -> None:
    """Events of one time that differ only in the nanoseconds of a column are different events, in any order of rows."""
    received = [1_001, 1_002, 1_002, None]
    tables = [
        in_nanoseconds(*[1_000] * 4, n=[0] * 4, received=pa.array(some, pa.timestamp("ns")))
        for some in (received, received[::-1])
    ]
    first, second = (
        {row["match_id"]: row["a"]["received"] for row in detect(one, Pattern.begin("a"), time="at").to_pylist()}
        for one in tables
    )
    assert first == second
    assert len(first) == 4


@TIES
def test_whole_microseconds_have_the_ids_of_spark() -> None:
    """Nanoseconds that divide into microseconds change no id."""
    at = datetime(2026, 3, 2, 8, tzinfo=UTC)
    events = pa.table({"at": [at, at], "seen": [at, at], "n": [1, 2]})
    nanoseconds = pa.timestamp("ns", "UTC")
    fine = events.cast(pa.schema([("at", nanoseconds), ("seen", nanoseconds), ("n", pa.int64())]))
    ids = [detect(one, Pattern.begin("a"), time="at").column("match_id").to_pylist() for one in (events, fine)]
    assert ids[0] == ids[1]
