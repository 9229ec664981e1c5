"""The building of docs/how_to/building.md: Brick 1.4, 5,000 points and ten million readings of a week.

PYTHONPATH=. python benchmarks/building.py [--days 7] [--no-spark]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph
from examples import building as example
from examples.building_by_hand import overheating_by_hand, overheating_in_sql, rooms_of_points
from examples.building_model import PREFIXES, Building, turtle
from examples.building_readings import Recording, readings
from measuring import machine, print_table, timed

from cepheid import detect
from cepheid.knowledge import Knowledge
from cepheid.knowledge.reading import triples

AIR_HANDLER = "ahu-3"
OPTIONS: dict[str, Any] = {"key": "room", "time": "at", "measures": {"degrees": example.RISE}}
_SPARQL = """
PREFIX : <http://building.example/> PREFIX brick: <https://brickschema.org/schema/Brick#>
PREFIX rec: <https://w3id.org/rec#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
SELECT DISTINCT ?point ?room WHERE {{
  {{ SELECT ?room WHERE {{ ?place {below} rec:Room . ?room a ?place }} }}
  {{ SELECT ?kind WHERE {{ ?kind {below} brick:{kind} }} }}
  ?point a ?kind .
  {{ ?point brick:isPointOf ?owner }} UNION {{ ?owner brick:hasPoint ?point }}
  {path}
}}"""
_PATH = """
  {{ ?owner brick:isPartOf ?box }} UNION {{ ?box brick:hasPart ?owner }}
  {{ ?box brick:feeds ?zone }} UNION {{ ?zone brick:isFedBy ?box }}
  {{ ?zone brick:hasPart ?room }} UNION {{ ?room brick:isPartOf ?zone }}"""
_BELOW = "(rdfs:subClassOf|owl:equivalentClass|^owl:equivalentClass)*"
QUERIES = (
    _SPARQL.format(below=_BELOW, kind="Air_Temperature_Sensor", path="FILTER (?owner = ?room)"),
    _SPARQL.format(below=_BELOW, kind="Damper_Position_Command", path=_PATH.format()),
)
"""The rooms of sensors and of dampers by SPARQL. As one pattern with longer paths, it does not end in ten
minutes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args()
    ontology = example.brick()
    print(f"{machine()}; {ontology.name}")
    recording = Recording(Building(), given.days)
    table = readings(recording)
    known = closing(recording.building, ontology)
    events = rooms(table, known, recording.building, given.rounds)
    detection(events, known, recording.building, given.rounds)
    whole(table, known, recording.building)
    print(f"\nThe most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
    if not given.no_spark:
        on_spark(table, known, recording.building)


def closing(building: Building, ontology: Path) -> Knowledge:
    """What it costs to know what follows, the first time on a machine and later; and to ask for the rooms of points."""
    lines: list[tuple[str, float, int]] = []
    seconds, stated = timed(lambda: triples(ontology.read_bytes(), "turtle"), clock=process_time)
    lines.append(("parse Brick", seconds, len(stated)))
    with TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for when in ("the first time", "later"):
            seconds, brick = timed(partial(Knowledge.read, ontology, prefixes=PREFIXES), clock=process_time)
            lines.append((f"Brick, {when}", seconds, len(brick.closure.facts)))
        for when in ("the first time", "later"):
            seconds, known = timed(partial(example.knowledge_of, building, ontology), clock=process_time)
            lines.append((f"Brick and the building, {when}", seconds, len(known.closure.facts)))
    known = example.knowledge_of(building, ontology)
    seconds, answers = timed(lambda: known.solutions(example.ROOM, ["point", "room"]), clock=process_time)
    lines.append(("the rooms of points", seconds, len(answers)))
    store = pyoxigraph.Store()
    texts = (ontology.read_bytes(), turtle(building).encode())
    turtle_format = pyoxigraph.RdfFormat.TURTLE
    loading = sum(timed(partial(store.load, text, turtle_format), clock=process_time)[0] for text in texts)
    asking, found = timed(lambda: [row for query in QUERIES for row in _rows(store, query)], clock=process_time)
    assert len(found) == len(answers), (len(found), len(answers))
    lines += [("pyoxigraph: load", loading, len(store)), ("pyoxigraph: the rooms by SPARQL", asking, len(found))]
    print_table("Knowledge, processor time", ("step", "seconds", "facts or answers"), lines)
    return known


def _rows(store: pyoxigraph.Store, query: str) -> pyoxigraph.QuerySolutions:
    return cast("pyoxigraph.QuerySolutions", store.query(query))


def rooms(table: pa.Table, known: Knowledge, building: Building, rounds: int) -> pa.Table:
    """The readings that have rooms, with these: by `add_column`, and by a join with a list."""
    works = {
        "add_column": partial(example.with_rooms, table, known),
        "a join by hand in DuckDB": partial(_joined, table, rooms_of_points(building)),
    }
    medians, results = _alternating(works, rounds)
    assert {len(result) for result in results.values()} == {len(results["add_column"])}
    lines = [(name, len(table), len(table) / seconds / 1e6) for name, seconds in medians.items()]
    print_table("The rooms of readings, processor time", ("by", "readings", "M readings/s"), lines)
    return results["add_column"]


def _joined(table: pa.Table, points: pa.Table) -> pa.Table:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("readings", table)
        database.register("rooms", points)
        return database.sql("SELECT readings.*, room FROM readings JOIN rooms USING (point)").to_arrow_table()


def detection(events: pa.Table, known: Knowledge, building: Building, rounds: int) -> None:
    """The pattern with semantic filters, and the same with lists of points."""
    patterns = {
        "semantic": example.overheating(known, AIR_HANDLER),
        "by hand": overheating_by_hand(building, AIR_HANDLER),
    }
    works = {name: partial(detect, events, pattern, **OPTIONS) for name, pattern in patterns.items()}
    medians, results = _alternating(works, rounds)
    assert results["semantic"] == results["by hand"]
    lines = [(name, len(results[name]), len(events) / seconds / 1e6) for name, seconds in medians.items()]
    title = f"Detection in {len(events):,} events, processor time; semantic ÷ by hand"
    print_table(
        f"{title} {medians['by hand'] / medians['semantic']:.2f}", ("conditions", "matches", "M events/s"), lines
    )


def whole(table: pa.Table, known: Knowledge, building: Building) -> None:
    """Everything that follows the knowledge, beside the same in SQL."""
    own, found = timed(lambda: example.overheated(table, known, AIR_HANDLER), clock=process_time)
    sql, rows = timed(lambda: overheating_in_sql(table, building, AIR_HANDLER), clock=process_time)
    assert len(rows) == len(found)
    lines = [("rooms and detection", len(found), own), ("SQL with windows in DuckDB", len(rows), sql)]
    print_table(f"The question, of {len(table):,} readings, processor time", ("by", "found", "seconds"), lines)


def on_spark(table: pa.Table, known: Knowledge, building: Building) -> None:
    """The question on Spark, with two cores, from a Parquet file: by knowledge and by hand."""
    from cepheid.hosts.spark.session import local_session

    spark = local_session("building", time_zone="UTC")
    by_hand = overheating_by_hand(building, AIR_HANDLER)
    with TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/readings.parquet", row_group_size=500_000)
        frame = spark.read.parquet(f"{folder}/readings.parquet")
        points = spark.createDataFrame(rooms_of_points(building).select(["point", "room"]))
        asked: Mapping[str, Callable[[], Any]] = {
            "knowledge": partial(example.overheated, frame, known, AIR_HANDLER),
            "a join and lists by hand": partial(detect, frame.join(points, "point"), by_hand, **OPTIONS),
        }
        seconds: dict[str, list[float]] = {name: [] for name in asked}
        counts = {}
        for _ in range(3):
            for name, ask in asked.items():
                began = perf_counter()
                counts[name] = ask().count()
                seconds[name].append(perf_counter() - began)
    lines = [(name, counts[name], statistics.median(times[1:])) for name, times in seconds.items()]
    print_table(f"On Spark, local[2], of {len(table):,} readings", ("by", "found", "seconds"), lines)
    spark.stop()


def _alternating(works: Mapping[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The median processor time of each work, and its result. They take turns; the first round compiles."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    results = {}
    for number in range(rounds + 1):
        for name, work in works.items():
            taken, results[name] = timed(work, clock=process_time)
            if number:
                seconds[name].append(taken)
    return {name: statistics.median(times) for name, times in seconds.items()}, results


if __name__ == "__main__":
    main()
