"""Finds the rooms of an air handler in which it gets warmer for half an hour while the damper is closed.

The ontology is Brick 1.4; the building and a week of readings are generated. docs/how_to/building.md explains it.
`make brick` installs Brick. Then, in the folder of a clone:

    python -m examples.building          # 5,000 points, ten million readings
    python -m examples.building 2 4 3    # two air handlers with four boxes each, three days
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from examples.building_model import PREFIXES, Building, turtle
from examples.building_readings import Recording, readings

from cepheid import Pattern, Skip, add_column, detect, semantic
from cepheid.knowledge import EventMapping, Knowledge, individual

EXCERPT = Path(__file__).with_name("brick_excerpt.ttl")
"""The part of Brick that the question needs, for where Brick is not installed."""
WORDS = """
@prefix : <http://building.example/> .
@prefix brick: <https://brickschema.org/schema/Brick#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

:readingOf a owl:ObjectProperty .
brick:Air_Temperature_Sensor rdfs:subClassOf :Watched .
brick:Damper_Position_Command rdfs:subClassOf :Watched .
brick:isPointOf rdfs:subPropertyOf :concerns .
:concerns owl:propertyChainAxiom ( brick:isPointOf brick:isPartOf brick:feeds brick:hasPart ) .
"""
"""What the question adds to Brick: a sensor concerns its room, and a damper's command the rooms of the damper's box."""
ROOM = "Watched(?point) ∧ concerns(?point, ?room) ∧ rec:Room(?room)"
SENSOR = "readingOf(?{0}, ?s) ∧ brick:Air_Temperature_Sensor(?s) ∧ brick:isPointOf(?s, ?room)"
FED_BY = "brick:hasPart(?zone, ?room) ∧ brick:feeds(?box, ?zone) ∧ brick:VAV(?box) ∧ brick:feeds({0}, ?box)"
COMMAND = "readingOf(?{0}, ?d) ∧ brick:Damper_Position_Command(?d)"
RISE = "last(warmer.value) - start.value"
MAPPING = EventMapping("reading/{point}/{at}", properties={"readingOf": individual("{point}")})


def brick() -> Path:
    """The file of Brick 1.4 that `make brick` has installed, or else the excerpt."""
    spec = find_spec("brickschema")
    folders = [*(spec.submodule_search_locations or [])] if spec else [f"{sys.prefix}/brick/brickschema"]
    file = Path(folders[0]) / "ontologies" / "1.4" / "Brick.ttl"
    return file if file.exists() else EXCERPT


def knowledge_of(building: Building, ontology: Path) -> Knowledge:
    """Brick, the building, and the words of the question."""
    return Knowledge.read([ontology, turtle(building), WORDS], prefixes=PREFIXES)


def with_rooms(table: Any, known: Knowledge) -> Any:
    """The readings of temperatures in rooms and of commands of dampers, once for each room that they concern."""
    found = add_column(table, known.column(ROOM, "room", {"point": individual("{point}")}))
    return found.filter(pc.field("room").is_valid()) if isinstance(found, pa.Table) else found.where("room IS NOT NULL")


def overheating(known: Knowledge, air_handler: str) -> Pattern:
    """A temperature, then at least six times in five minutes a closed damper and a higher temperature."""
    start = Pattern.begin("start", name="overheating", knowledge=known, mapping=MAPPING)
    start = start.where(semantic(f"{SENSOR.format('start')} ∧ {FED_BY.format(air_handler)}"))
    closed = Pattern.begin("closed").where(semantic(COMMAND.format("closed"))).where("value = 0")
    closed = closed.one_or_more().consecutive()
    warmer = closed.next("warmer").where(semantic(SENSOR.format("warmer")))
    warmer = warmer.where("value > coalesce(last(warmer.value), start.value)")
    return start.next(warmer).times_or_more(6).consecutive().longest().skip(Skip.past_last_event())


def overheated(table: Any, known: Knowledge, air_handler: str) -> Any:
    """The rows of what is found in readings, in process or on Spark."""
    events = with_rooms(table, known)
    pattern = overheating(known, air_handler)
    return detect(events, pattern, key="room", time="at", measures={"degrees": RISE})


def main(air_handlers: int = 10, boxes: int = 40, days: int = 7) -> None:
    """What is found in a generated building."""
    recording = Recording(Building(air_handlers, boxes), days)
    table = readings(recording)
    print(f"{len(recording.building.points):,} points, {len(table):,} readings")
    began = perf_counter()
    known = knowledge_of(recording.building, brick())
    print(f"{perf_counter() - began:>6.1f} s  {known}")
    for number in range(1, air_handlers + 1):
        began = perf_counter()
        found = overheated(table, known, f"ahu-{number}").to_pylist()
        longest = max((row["match_end"] - row["match_start"] for row in found), default=None)
        print(f"{perf_counter() - began:>6.1f} s  ahu-{number}: {len(found)} times too warm, the longest for {longest}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
