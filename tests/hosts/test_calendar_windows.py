"""Windows that follow the calendar: their deadlines, on every host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import Matcher, Pattern, PatternError, detect
from cepheid.host import open_host
from cepheid.lang.calendar import parse_calendar
from cepheid.plan.calendar import NO_DEADLINE, Deadlines, deadline_after, deadlines_after

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "America/New_York"
ZONES = ["UTC", "Europe/Berlin", ZONE, "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "-03:30"]
LENGTHS = ["1 month", "3 months", "1 quarter", "2 years 1 month"]
PERIODS = ["same day", "same week", "same month", "same quarter", "same year"]
HOUR = 3_600_000_000
PAYMENTS = pa.schema([("id", pa.int64()), ("k", pa.string()), ("at", pa.timestamp("us", "UTC")), ("x", pa.string())])
PAIR = Pattern.begin("a").where("x = 'a'").followed_by_any("b").where("x = 'b'")
WITH_FUNCTION = (
    Pattern.begin("a").where("x = 'a'").followed_by_any("b").where(lambda event: event["x"] == "b", name="is b")
)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE))


EVENTS = pa.Table.from_pylist(
    [
        {"id": number, "k": "p", "at": local(at), "x": x}
        for number, (at, x) in enumerate(
            [
                ("2026-01-30 10:00", "a"),
                ("2026-01-31 09:00", "a"),
                ("2026-01-31 23:59:59.999999", "b"),
                ("2026-02-01 00:00", "b"),
                ("2026-02-28 08:59", "b"),
                ("2026-02-28 09:30", "b"),
                ("2026-03-07 20:00", "a"),
                ("2026-03-08 23:30", "b"),
                ("2026-04-07 19:59", "b"),
            ]
        )
    ],
    PAYMENTS,
)
FOUND = {
    "1 month": {(0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3), (1, 4), (6, 7), (6, 8)},
    "same day": {(1, 2)},
    "same week": {(0, 2), (0, 3), (1, 2), (1, 3), (6, 7)},
    "same month": {(0, 2), (1, 2), (6, 7)},
}
"""The ids of the events of each match: the first event of the 30th and that of the 31st of January both end on the 28th
of February, each at its own time of day.
"""
MEASURES = {"a": "a.id", "b": "b.id"}


def pairs(rows: pa.Table) -> set[tuple[int, int]]:
    return {(row["a"], row["b"]) for row in rows.to_pylist()}


times = st.integers(-60 * 365 * 24, 140 * 365 * 24).map(lambda hours: hours * HOUR + 1_234_567)


@given(st.lists(times, min_size=1, max_size=50), st.sampled_from(ZONES), st.sampled_from(LENGTHS + PERIODS))
def test_all_deadlines_at_once(starts: list[int], zone: str, length: str) -> None:
    """Those of many times equal those of each time, also where clocks change, in any year."""
    window = parse_calendar(length)
    assert window is not None
    deadlines = Deadlines.of(window, zone)
    known = [*starts, -(10**18), 10**18]
    found = deadlines_after(np.array(known), deadlines).tolist()
    each = [deadline_after(start, deadlines) for start in known]
    assert found == [NO_DEADLINE if one is None else one for one in each]


@pytest.mark.parametrize("pattern", [PAIR, WITH_FUNCTION], ids=["SQL", "Python"])
@pytest.mark.parametrize("length", FOUND)
def test_in_process(pattern: Pattern, length: str) -> None:
    """The deadline is exclusive, in the local time of the zone; the same with a condition in Python."""
    found = detect(EVENTS, pattern.within(length), key="k", time="at", time_zone=ZONE, measures=MEASURES)
    assert pairs(found) == FOUND[length]
    naive = pa.array([at.astimezone(ZoneInfo(ZONE)).replace(tzinfo=None) for at in EVENTS["at"].to_pylist()])
    local_times = EVENTS.set_column(2, "at", naive)
    given = pattern.within("$w").with_parameters(w=length)
    assert pairs(detect(local_times, given, key="k", time="at", time_zone=ZONE, measures=MEASURES)) == FOUND[length]


@pytest.mark.parametrize("length", FOUND)
def test_a_live_matcher_and_its_snapshots(length: str) -> None:
    """Deadlines pass at the right time, also after a restart at any event."""
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "lateness": "0 seconds", "time_zone": ZONE}
    options |= {"outputs": ("matches", "timeouts"), "measures": MEASURES}

    def new() -> Matcher:
        return Matcher(PAIR.within(length), PAYMENTS, **options)

    matcher, rows = new(), []
    for number in range(len(EVENTS)):
        rows += matcher.process(EVENTS.slice(number, 1)).to_pylist()
        state, matcher = matcher.snapshot(), new()
        matcher.restore(state)
    rows += matcher.advance_time(local("2027-01-01")).to_pylist()
    assert {(row["a"], row["b"]) for row in rows if row["kind"] == "match"} == FOUND[length]
    ends = {row["a"]: row["detected_at"].astimezone(ZoneInfo(ZONE)) for row in rows if row["kind"] == "timeout"}
    expected = {"1 month": "2026-02-28 09:00", "same day": "2026-02-01", "same week": "2026-02-02"}
    assert ends[1] == local(expected.get(length, "2026-02-01"))


def test_a_durable_host(tmp_path: Path) -> None:
    """The open partial matches have their deadlines, and absence is certain when they pass."""
    host = open_host(f"sqlite:///{tmp_path / 'alerts.db'}")
    host.input("payments", PAYMENTS, time="at", sequence="id", time_zone=ZONE, keep="1 day")
    unpaid = Pattern.begin("a").where("x = 'a'").not_followed_by("b").where("x = 'b'").within("1 month").named("unpaid")
    host.deploy(unpaid, input="payments", key="k", measures={"a": "a.id"})
    host.feed(EVENTS.slice(0, 2), input="payments")
    rows = host.sql("SELECT wakeup FROM open_unpaid ORDER BY wakeup").to_pylist()
    assert [row["wakeup"] for row in rows] == ["2026-02-28T14:00:00.000000Z", "2026-02-28T15:00:00.000000Z"]
    host.feed(EVENTS.slice(6, 1), input="payments")
    assert [row["a"] for row in host.sql("SELECT a FROM matches_unpaid ORDER BY a").to_pylist()] == [0, 1]
    host.close()


@pytest.mark.spark
def test_on_spark(spark: SparkSession) -> None:
    """The same matches as in process, and deadlines as Spark adds months; the session's zone is the default."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    frame = session.createDataFrame(EVENTS)
    for length in ("1 month", "same day"):
        found = detect(frame, PAIR.within(length), key="k", time="at", measures=MEASURES)
        assert pairs(found.toArrow()) == FOUND[length]
    first = datetime(2026, 1, 1, tzinfo=UTC)
    starts = [first + timedelta(minutes=17 * number) for number in range(0, 40_000, 7)]
    frame = session.createDataFrame(pa.table({"i": [*range(len(starts))], "at": starts}))
    texts = {
        "1 month": "at + INTERVAL 1 MONTH",
        "2 years 1 month": "at + INTERVAL '2-1' YEAR TO MONTH",
        "same day": "CAST(date_add(CAST(at AS DATE), 1) AS TIMESTAMP)",
        "same month": "CAST(date_add(last_day(at), 1) AS TIMESTAMP)",
    }
    rows = frame.selectExpr("i", *(f"unix_micros({text}) AS `{length}`" for length, text in texts.items()))
    expected = rows.orderBy("i").toArrow()
    micros = pa.array(starts, pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    for length in texts:
        window = parse_calendar(length)
        assert window is not None
        assert deadlines_after(micros, Deadlines.of(window, ZONE)).tolist() == expected[length].to_pylist(), length


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ("1 month 2 days", "not a length of time: '1 month 2 days'; months, quarters and years have no fixed number"),
        ("same fortnight", "not a window: 'same fortnight'. Write 'same' and one of day, week, month, quarter, year"),
        ("0 months", "a window by the calendar has 1 to 11,988 months"),
        ("1000 years", "a window by the calendar has 1 to 11,988 months"),
    ],
)
def test_refused(length: str, message: str) -> None:
    """What is not a window says what to write."""
    with pytest.raises(PatternError) as error:
        Pattern.begin("a").within(length)
    assert str(error.value).startswith(message)


def test_two_windows() -> None:
    """Which of a length and a window by the calendar is shorter depends on the calendar."""
    for first, second in (("1 day", "same day"), ("1 month", "31 days"), ("1 month", "same month")):
        with pytest.raises(PatternError) as error:
            Pattern.begin("a").within(first).within(second)
        assert str(error.value).startswith(f"within: two lengths are given, {first} and {second} (within)\n")


def test_the_longest_window() -> None:
    """It ends within the years that Python has, wherever it starts."""
    for year in (2024, 8999):
        start = datetime(year, 12, 31, tzinfo=UTC)
        events = pa.table({"at": pa.array([start, start + timedelta(days=1)], pa.timestamp("us", "UTC"))})
        found = detect(events, Pattern.begin("a").next("b").within("999 years"), time="at")
        assert len(found) == 1
