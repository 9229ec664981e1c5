"""The flights that left New York in 2013 as intervals, beside the weather at its airports.

Prints which aircraft could not be back for their next planned flight (in process), banks of departures within bad
weather (on Spark), and flights held in fair weather, emitted in real time and retracted. It needs the extra `demo`, and
docs/how_to/flights_as_intervals.md explains it. In the folder of a clone:

    python examples/flights_as_intervals.py
"""

from __future__ import annotations

from collections import Counter
from statistics import mean
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from cepheid import IntervalMatcher, IntervalPattern, detect
from cepheid.demo.flights import data_folder, read_flights_arrow
from cepheid.hosts.spark.session import local_session
from cepheid.intervals import interval_pattern

MONTH = 3
TIMES: dict[str, Any] = {"time": ("begin", "end")}
WEATHER = ("fog", "rain", "gusts")
KINDS = {**dict.fromkeys(WEATHER, "weather"), "bank": [], "held": []}

NOT_BACK = (
    IntervalPattern.pal(a="away", p="planned")
    .relate("a", ["overlap", "contain", "finished_by"], "p")
    .where("a.leg <> p.leg")
    .without("q", "planned", between=("a", "p"), where="q.leg <> a.leg")
    .within("3 days")
    .taxonomy("kind")
    .named("not_back")
)
BANKS = (
    interval_pattern("EVENT PAL(weather w, bank b) RELATE w contain | started_by | finished_by b")
    .taxonomy("kind", KINDS)
    .named("banks")
)
HELD = (
    interval_pattern(
        "EVENT PAL(held h) WITHOUT (weather w ORDER start(w) <= start(h), start(h) < end(w)) WITHIN 1 day REALTIME 1"
    )
    .taxonomy("kind", KINDS)
    .named("held")
)

_PARTS = """
CREATE TABLE legs AS SELECT *, row_number() OVER (ORDER BY scheduled_at, carrier, flight) AS leg FROM flights;

-- Half an hour on the ground and a minute for ten miles: no jet is back sooner.
CREATE TABLE away AS SELECT 'away' AS kind, departed_at AS begin,
    arrived_at + to_minutes(30) + to_minutes(CAST(distance // 10 AS INT)) AS "end", * FROM legs
    WHERE arrived_at IS NOT NULL;
CREATE TABLE planned AS SELECT 'planned' AS kind, scheduled_at AS begin, due_at AS "end", * FROM legs
    WHERE tailnum IS NOT NULL;
CREATE TABLE held AS SELECT 'held' AS kind, scheduled_at AS begin, departed_at AS "end", * FROM legs
    WHERE dep_delay >= 60;

-- At least five departures of a carrier, none more than ten minutes behind the one before.
CREATE TABLE bank AS SELECT 'bank' AS kind, min(departed_at) AS begin, max(departed_at) AS "end", origin, carrier,
    avg(dep_delay) AS dep_delay, count(*) AS flights
    FROM (SELECT *, count(*) FILTER (apart) OVER by_carrier AS number FROM (
        SELECT *, departed_at - lag(departed_at) OVER by_carrier > INTERVAL 10 MINUTE AS apart FROM legs
        WHERE departed_at IS NOT NULL WINDOW by_carrier AS (PARTITION BY origin, carrier ORDER BY departed_at, leg))
        WINDOW by_carrier AS (PARTITION BY origin, carrier ORDER BY departed_at, leg))
    GROUP BY origin, carrier, number HAVING count(*) >= 5;

-- Hours one after the other, each of the first kind that fits. A row with gusts of 1,200 miles an hour is a mistake.
CREATE TABLE weather AS SELECT kind, min(time_hour) AS begin, max(time_hour) + INTERVAL 1 HOUR AS "end", origin
    FROM (SELECT *, epoch(time_hour) // 3600 - row_number() OVER (PARTITION BY origin, kind ORDER BY time_hour) AS spell
        FROM (SELECT *, CASE WHEN visib < 2 THEN 'fog' WHEN precip >= 0.1 THEN 'rain'
            WHEN wind_gust BETWEEN 35 AND 200 THEN 'gusts' END AS kind FROM hours)
        WHERE kind IS NOT NULL)
    GROUP BY origin, kind, spell;
"""
_ALL = """
SELECT kind, begin, "end", origin, tailnum, leg, dest, dep_delay, carrier FROM away
UNION ALL BY NAME SELECT kind, begin, "end", origin, tailnum, leg, dest, dep_delay, carrier FROM planned
UNION ALL BY NAME SELECT kind, begin, "end", origin, tailnum, leg, dest, dep_delay, carrier FROM held
UNION ALL BY NAME FROM bank UNION ALL BY NAME FROM weather
ORDER BY "end", begin, kind, origin, carrier, leg
"""


def intervals(*kinds: str) -> pa.Table:
    """The intervals of these kinds in the month, in the order of their ends."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("all_flights", read_flights_arrow())
        database.execute(f"CREATE VIEW flights AS FROM all_flights WHERE month = {MONTH}")
        weather = f"read_csv('{data_folder() / 'weather.csv'}', nullstr = 'NA')"
        database.execute(f"CREATE VIEW hours AS FROM {weather} WHERE month = {MONTH}")
        database.execute(_PARTS)
        everything = database.sql(_ALL).to_arrow_table()
    return everything.filter(pc.is_in(everything["kind"], pa.array(kinds)))


def print_not_back(matches: pa.Table) -> None:
    """What became of the planned flights."""
    delays = [match["p"]["dep_delay"] for match in matches.to_pylist()]
    flown = [delay for delay in delays if delay is not None]
    print(f"{len(delays)} aircraft not back for their next planned flight. Of these flights")
    print(f"  {len(delays) - len(flown):>4} were cancelled")
    print(f"  {sum(delay > 15 for delay in flown):>4} left more than 15 minutes late, {mean(flown):.0f} on average")
    print(f"  {sum(delay <= 15 for delay in flown):>4} left at most 15 minutes late")


def print_banks(matches: list[dict[str, Any]], banks: pa.Table) -> None:
    """How many banks there are, and how late their flights are, by kind of weather."""
    print(f"  {'weather':<8} {'banks':>6} {'minutes late':>13}")
    for kind in WEATHER:
        late = [match["b"]["dep_delay"] for match in matches if match["w"]["kind"] == kind]
        print(f"  {kind:<8} {len(late):>6} {mean(late):>13.0f}")
    print(f"  {'any':<8} {len(banks):>6} {pc.mean(banks['dep_delay']).as_py():>13.0f}")


def print_changes(changes: pa.Table) -> None:
    """The matches emitted and retracted for each airport."""
    for airport in ("EWR", "JFK", "LGA"):
        kinds = Counter(changes.filter(pc.field("origin") == airport)["kind"].to_pylist())
        print(f"  {airport}  {kinds['insertion']:>5} emitted  {kinds['retraction']:>4} retracted")


def main() -> None:
    """The three questions, about a month."""
    events = intervals("away", "planned")
    print_not_back(detect(events, NOT_BACK, key="tailnum", columns=["leg", "dep_delay"], **TIMES))

    print("\nBanks of departures in bad weather")
    events = intervals("bank", *WEATHER)
    spark = local_session("flights as intervals", time_zone="UTC")
    on_spark = spark.createDataFrame(events)
    found = detect(on_spark, BANKS, key="origin", columns=["kind", "dep_delay"], **TIMES)
    print_banks(found.toArrow().to_pylist(), events.filter(pc.field("kind") == "bank"))
    spark.stop()

    print("\nHeld for an hour or more, in fair weather")
    events = intervals("held", *WEATHER)
    live = IntervalMatcher(HELD, events, key="origin", columns="dest", lateness="1 day", **TIMES)
    print_changes(pa.concat_tables([live.process(events), live.finish()]))


if __name__ == "__main__":
    main()
