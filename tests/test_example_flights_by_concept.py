"""The example of flights asked by concept: its knowledge, and chains as SQL by hand finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from examples import flights_by_concept as example

from cepheid import Pattern, Skip, detect
from cepheid.demo.flights import data_folder, read_flights, unpack_flights

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

AIRLINES = {
    "oneworld": "'AA', 'MQ'",
    "SkyTeam": "'DL', '9E', 'EV', 'OO'",
    "StarAlliance": "'UA', 'US', 'YV', 'EV', 'OO'",
}
HUBS = {
    "oneworld": "'DFW', 'JFK', 'LAX', 'MIA', 'ORD'",
    "SkyTeam": "'ATL', 'CVG', 'DTW', 'JFK', 'LGA', 'MSP', 'SLC'",
    "StarAlliance": (
        "'CLE', 'DEN', 'EWR', 'IAD', 'IAH', 'LAX', 'ORD', 'SFO', 'CLT', 'DCA', 'PHL', 'PHX'"  # United's, US Airways'
    ),
}
HOURS = {"East": "-5", "Central": "-6", "West": "-7, -8"}
"""The offsets of the regions' time zones, as the table of airports has them."""
COLUMNS = ["tailnum", "departed_at", "carrier", "dest", "arr_delay", "dep_delay"]


@pytest.fixture(scope="module")
def flown() -> pa.Table:
    return example.departures().select(COLUMNS)


def test_each_destination_is_in_one_region() -> None:
    """Every airport of a flight has a region; the west is part of the mainland, and Hawaii is of neither."""
    known, flown = example.knowledge(), example.departures()
    for dest in pc.unique(flown["dest"]).to_pylist():
        within = known.solutions(f"inRegion(airport:{dest}, ?r)", ["r"])
        regions = {name.removeprefix(example.FLIGHTS) for (name,) in within} - {"Mainland", "West"}
        assert len(regions) == (0 if dest in ("HNL", "ANC") else 1), dest
    assert known.holds("inRegion(airport:SFO, Pacific) ^ inRegion(airport:SFO, West) ^ inRegion(airport:SFO, Mainland)")
    assert not known.holds("inRegion(airport:SJU, Mainland)")


def test_regional_airlines_are_in_the_alliances_for_which_they_fly() -> None:
    """ExpressJet flies for Delta and for United, and so in two alliances; JetBlue is in none."""
    known = example.knowledge()
    for alliance, airlines in AIRLINES.items():
        found = known.solutions(f"Airline(?a) ∧ inAlliance(?a, {alliance})", ["a"])
        assert sorted(name[-2:] for (name,) in found) == sorted(codes(airlines))
        found = known.solutions(f"Airport(?a) ∧ hubIn(?a, {alliance})", ["a"])
        assert sorted(name[-3:] for (name,) in found) == sorted(codes(HUBS[alliance]))
    assert not known.holds("inAlliance(airline:B6, ?alliance)")


@pytest.mark.parametrize("alliance", example.ALLIANCES)
@pytest.mark.parametrize("region", HOURS)
def test_chains_are_those_that_sql_finds(flown: pa.Table, alliance: str, region: str) -> None:
    """The aircraft and the times of all flights in the chains are those of SQL with lists by hand."""
    pattern = example.late_hub_chains(example.knowledge(), alliance, region)
    times = {"flights": "count(legs)", "last": "last(legs.departed_at)"}
    found = detect(flown, pattern, key="tailnum", time="departed_at", measures=times).to_pylist()
    rows = sorted((row["tailnum"], row["match_start"], row["last"], row["flights"]) for row in found)
    assert rows == chains_in_sql(flown, alliance, region)
    assert rows


def test_lists_by_hand_give_the_same_matches(flown: pa.Table) -> None:
    """With lists of codes in place of filters the pattern finds the same, with the same ids."""
    pattern = example.late_hub_chains(example.knowledge(), "SkyTeam", "Mainland")
    by_hand = lists_by_hand("SkyTeam", "-5, -6, -7, -8")
    found = (detect(flown, one, key="tailnum", time="departed_at") for one in (pattern, by_hand))
    assert next(found) == next(found)


@pytest.mark.long
@pytest.mark.spark
def test_spark_finds_the_same(flown: pa.Table, spark: SparkSession, tmp_path: Path) -> None:
    pattern = example.late_hub_chains(example.knowledge(), "StarAlliance", "West")
    on_spark = read_flights(spark, unpack_flights(tmp_path)).where("departed_at IS NOT NULL")
    found = detect(on_spark, pattern, key="tailnum", time="departed_at", measures={"flights": "count(legs)"}).toArrow()
    rows = [row[:2] for row in chains_in_sql(flown, "StarAlliance", "West")]
    assert sorted((row["tailnum"], row["match_start"]) for row in found.to_pylist()) == rows


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The script prints a line of counts for each alliance."""
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["East", *example.ALLIANCES]


def codes(text: str) -> list[str]:
    return [one.strip(" '") for one in text.split(",")]


def lists_by_hand(alliance: str, hours: str) -> Pattern:
    in_region = ", ".join(repr(code) for (code,) in destinations(hours))
    return (
        Pattern.begin("late", name=f"late_at_{alliance}")
        .where(f"carrier IN ({AIRLINES[alliance]}) AND dest IN ({HUBS[alliance]}) AND arr_delay > 45")
        .next("legs")
        .where(f"carrier IN ({AIRLINES[alliance]}) AND dest IN ({in_region}) AND dep_delay > 30")
        .one_or_more()
        .consecutive()
        .longest()
        .within("12 hours")
        .skip(Skip.past_last_event())
    )


def destinations(hours: str) -> list[tuple[str]]:
    file = data_folder() / "airports.csv"
    return duckdb.sql(f"SELECT faa FROM read_csv('{file}', nullstr = 'NA') WHERE tz IN ({hours})").fetchall()


def chains_in_sql(flown: pa.Table, alliance: str, region: str) -> list[tuple[object, ...]]:
    """Each aircraft with the first and last departure of a chain, and how many follow the first one.

    A chain takes late flights to the region as long as they follow directly and within 12 hours. A flight that is in a
    chain begins no other one: of the chains that overlap, the recursion takes the earliest, then the next one after it.
    """
    file = data_folder() / "airports.csv"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("flown", flown)
        return database.sql(f"""
            WITH RECURSIVE flights AS (
                SELECT tailnum, departed_at, row_number() OVER (PARTITION BY tailnum ORDER BY departed_at) AS n,
                    carrier IN ({AIRLINES[alliance]}) AND dest IN ({HUBS[alliance]}) AND arr_delay > 45 AS is_first,
                    carrier IN ({AIRLINES[alliance]}) AND tz IN ({HOURS[region]}) AND dep_delay > 30 AS follows
                FROM flown LEFT JOIN read_csv('{file}', nullstr = 'NA') airports ON faa = dest),
            chains AS (
                SELECT tailnum, n AS first, n AS last, departed_at AS begin, departed_at AS "end" FROM flights
                WHERE is_first
                UNION ALL
                SELECT tailnum, first, n, begin, departed_at FROM chains JOIN flights USING (tailnum)
                WHERE n = last + 1 AND follows AND departed_at < begin + INTERVAL 12 HOUR),
            longest AS (
                SELECT tailnum, first, max(last) AS last, begin, max("end") AS "end" FROM chains
                GROUP BY tailnum, first, begin HAVING max(last) > first),
            taken AS (
                SELECT tailnum, min(first) AS first FROM longest GROUP BY tailnum
                UNION ALL
                SELECT tailnum, (SELECT min(first) FROM longest later
                    WHERE later.tailnum = taken.tailnum AND later.first > longest.last)
                FROM taken JOIN longest USING (tailnum, first))
            SELECT tailnum, begin, "end", last - first FROM taken JOIN longest USING (tailnum, first) ORDER BY ALL
        """).fetchall()
