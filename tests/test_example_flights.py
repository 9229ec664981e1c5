"""The example of flights as intervals: its patterns find in a month what SQL finds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from examples.flights_as_intervals import BANKS, HELD, NOT_BACK, TIMES, WEATHER, intervals

from cepheid import IntervalMatcher, detect
from cepheid.demo.flights import read_flights_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_sql(query: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            database.register(name, table)
        return sorted(database.sql(query).fetchall())


def test_aircraft_that_are_not_back() -> None:
    """For each flight: the next planned flight of its aircraft, if it leaves before the aircraft can be back."""
    matches = detect(intervals("away", "planned"), NOT_BACK, key="tailnum", columns=["leg", "begin"], **TIMES)
    expected = by_sql(
        """
        SELECT a.tailnum, a.departed_at, min(p.scheduled_at) FROM flights a JOIN flights p USING (tailnum)
        WHERE a.month = 3 AND p.month = 3
        AND (p.carrier, p.flight, p.scheduled_at) <> (a.carrier, a.flight, a.scheduled_at)
        AND p.scheduled_at > a.departed_at
        AND p.scheduled_at < a.arrived_at + to_minutes(30) + to_minutes(CAST(a.distance // 10 AS INT))
        GROUP BY a.tailnum, a.departed_at
        """,
        flights=read_flights_arrow(),
    )
    assert sorted((m["tailnum"], m["a"]["begin"], m["p"]["begin"]) for m in matches.to_pylist()) == expected
    assert len(expected) == 217


IN_WEATHER = """
    SELECT b.origin, b.begin, b."end", w.begin FROM events w JOIN events b USING (origin)
    WHERE w.kind IN ('fog', 'rain', 'gusts') AND b.kind = 'bank' AND w.begin <= b.begin AND b."end" <= w."end"
"""


def in_weather(matches: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((m["origin"], m["b"]["begin"], m["b"]["end"], m["w"]["begin"]) for m in matches.to_pylist())


def test_banks_in_bad_weather() -> None:
    """A bank is found once for each period of bad weather that contains it."""
    events = intervals("bank", *WEATHER)
    found = detect(events, BANKS, key="origin", **TIMES)
    assert in_weather(found) == by_sql(IN_WEATHER, events=events)
    assert found.num_rows == 43


@pytest.mark.spark
def test_banks_on_spark(spark: SparkSession) -> None:
    """Spark finds the same matches, with the same ids."""
    events = intervals("bank", *WEATHER)
    here = detect(events, BANKS, key="origin", columns="kind", **TIMES)
    there = detect(spark.createDataFrame(events), BANKS, key="origin", columns="kind", **TIMES)
    assert sorted(row.match_id for row in there.collect()) == sorted(here["match_id"].to_pylist())


def matches_with(consistency: str) -> pa.Table:
    events = intervals("held", *WEATHER)
    pattern = HELD.emitting(consistency)
    live = IntervalMatcher(pattern, events, key="origin", columns=["begin"], lateness="1 day", **TIMES)
    rows = pa.concat_tables([live.process(events), live.finish()])
    assert live.counts.late == 0
    return rows


def test_flights_held_in_fair_weather() -> None:
    """The insertions of a real-time run minus its retractions are the matches of a conservative run, and those
    of SQL.
    """
    expected = by_sql(
        """
        SELECT origin, begin, "end" FROM events h WHERE kind = 'held' AND NOT EXISTS (FROM events w
        WHERE w.kind IN ('fog', 'rain', 'gusts') AND w.origin = h.origin AND w.begin <= h.begin AND h.begin < w."end")
        """,
        events=intervals("held", *WEATHER),
    )
    rows = matches_with("realtime").to_pylist()
    signs = {"insertion": 1, "retraction": -1}
    net: Counter[str] = Counter()
    for row in rows:
        net[row["match_id"]] += signs[row["kind"]]
    left = [row for row in rows if row["kind"] == "insertion" and net[row["match_id"]]]
    assert sorted((row["origin"], row["match_start"], row["match_end"]) for row in left) == expected
    assert {row["match_id"] for row in left} == {*matches_with("conservative")["match_id"].to_pylist()}
    assert Counter(row["kind"] for row in rows) == {"insertion": 2181, "retraction": 146}
