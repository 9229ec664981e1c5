"""The demo's chains equal those of an independent method: SQL window functions and a plain loop, without an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from cepheid import detect
from cepheid.demo.flights import departures
from cepheid.demo.pattern import LATE_CHAIN, SAME_AIRPORT_CHAIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Leg: TypeAlias = tuple[datetime, str, int]
"""departed_at, carrier, flight."""
ChainLegs: TypeAlias = tuple[str, tuple[Leg, ...]]
"""tailnum, and the late flight followed by its legs."""


class Departure(NamedTuple):
    tailnum: str
    position: int
    """The number of the departure among those of its aircraft, from 1."""
    departed_at: datetime
    carrier: str
    flight: int
    arrives_late: bool
    run_end: int | None
    """The position of the last of the consecutive late departures after this one; None if the next departure is not
    late.
    """


COLUMNS = ["departed_at", "carrier", "flight"]

# A departure ends the run before it if it is not late or, in the second example, departs from another airport.
RUNS = """
WITH events AS (
    SELECT tailnum, departed_at, carrier, flight, origin,
           coalesce(arr_delay > 45, false) AS arrives_late, dep_delay > 30 AS leaves_late,
           row_number() OVER aircraft AS position, lag(origin) OVER aircraft AS origin_before
    FROM {departures}
    WINDOW aircraft AS (PARTITION BY tailnum ORDER BY departed_at)
), numbered AS (
    SELECT *, count_if(NOT leaves_late OR (:same_origin AND origin <> origin_before))
              OVER (PARTITION BY tailnum ORDER BY position) AS run
    FROM events
), ended AS (
    SELECT *, max(position) OVER (PARTITION BY tailnum, run) AS last_of_run FROM numbered
), ahead AS (
    SELECT *, lead(leaves_late) OVER aircraft AS next_late, lead(origin) OVER aircraft AS next_origin,
              lead(last_of_run) OVER aircraft AS next_last
    FROM ended
    WINDOW aircraft AS (PARTITION BY tailnum ORDER BY position)
), may_count AS (
    SELECT tailnum, position, departed_at, carrier, flight, arrives_late, leaves_late,
           CASE WHEN next_late AND NOT (:same_origin AND next_origin <> origin) THEN next_last END AS run_end
    FROM ahead
)
SELECT * EXCEPT (leaves_late) FROM may_count
WHERE leaves_late OR (arrives_late AND run_end IS NOT NULL) ORDER BY tailnum, position
"""


def chains_by_sql(spark: SparkSession, flights: DataFrame, *, same_origin: bool) -> list[ChainLegs]:
    rows = spark.sql(RUNS, args={"same_origin": same_origin}, departures=departures(flights)).toArrow().to_pylist()
    found = (Departure(**row) for row in rows)
    return [
        chain
        for _, of_aircraft in groupby(found, key=lambda departure: departure.tailnum)
        for chain in chains_of(list(of_aircraft))
    ]


def chains_of(aircraft: list[Departure]) -> Iterator[ChainLegs]:
    """The chains of one aircraft: each start takes the longest run within twelve hours; then the next start follows.
    Departures that are neither late nor a start are left out.
    """
    by_position = {departure.position: departure for departure in aircraft}
    free_from = 1
    for start in aircraft:
        if start.position < free_from or not start.arrives_late or start.run_end is None:
            continue
        run = [by_position[position] for position in range(start.position + 1, start.run_end + 1)]
        legs = [leg for leg in run if leg.departed_at - start.departed_at < timedelta(hours=12)]
        if legs:
            free_from = legs[-1].position + 1
            yield start.tailnum, tuple((d.departed_at.astimezone(UTC), d.carrier, d.flight) for d in (start, *legs))


def chains_by_cepheid(matches: DataFrame) -> list[ChainLegs]:
    rows = matches.orderBy("tailnum", "match_start").toArrow().to_pylist()
    return [
        (
            row["tailnum"],
            tuple((f["departed_at"].astimezone(UTC), f["carrier"], f["flight"]) for f in (row["late"], *row["legs"])),
        )
        for row in rows
    ]


@pytest.mark.long
def test_late_chains(spark: SparkSession, flights: DataFrame) -> None:
    """The main job finds exactly the chains that the independent method finds."""
    matches = detect(departures(flights), LATE_CHAIN, key="tailnum", time="departed_at", columns=COLUMNS)
    expected = chains_by_sql(spark, flights, same_origin=False)
    assert Counter(len(legs) for _, legs in expected) == {2: 3_547, 3: 276}
    assert chains_by_cepheid(matches) == expected


@pytest.mark.long
def test_same_airport_chains(spark: SparkSession, flights: DataFrame) -> None:
    """The second example: each leg departs from the airport of the late flight."""
    matches = detect(departures(flights), SAME_AIRPORT_CHAIN, key="tailnum", time="departed_at", columns=COLUMNS)
    expected = chains_by_sql(spark, flights, same_origin=True)
    assert Counter(len(legs) for _, legs in expected) == {2: 3_324, 3: 274}
    assert chains_by_cepheid(matches) == expected
