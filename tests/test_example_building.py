"""The example of a building: Brick is read, points get their rooms, and the pattern finds what SQL finds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from examples import building
from examples.building_by_hand import overheating_by_hand, overheating_in_sql, rooms_of_points, with_rooms_by_hand
from examples.building_model import BUILDING, PREFIXES, Building, turtle
from examples.building_readings import BEGIN, STEP, Recording, readings

from cepheid import detect
from cepheid.knowledge import Knowledge
from cepheid.knowledge.reading import triples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDING = Recording(Building(3, 4), days=3, seed=5)
INSTALLED = building.brick()
BRICK = pytest.param(
    INSTALLED,
    id="Brick",
    marks=pytest.mark.skipif(INSTALLED == building.EXCERPT, reason="Brick is not installed: make brick"),
)
ONTOLOGIES = [pytest.param(building.EXCERPT, id="excerpt"), BRICK]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return readings(RECORDING)


@pytest.fixture(scope="module", params=ONTOLOGIES)
def known(request: pytest.FixtureRequest) -> Knowledge:
    return building.knowledge_of(RECORDING.building, request.param)


# The ontology


@pytest.mark.parametrize("ontology", [BRICK])
def test_brick_is_read_and_what_is_ignored_is_listed(ontology: Path) -> None:
    """Of the 60,604 facts of Brick only shapes, imports and two restrictions on values have no meaning."""
    brick = Knowledge.read(ontology, prefixes=PREFIXES)
    assert len(brick.facts) == 60_604
    assert len(brick.closure.facts) == 77_400
    reasons = Counter(re.sub(r"[:.].*", "", one.reason) for one in brick.ignored)
    assert reasons == {
        "a SHACL shape": 1837,
        "an import": 7,
        "a datatype of its own, or a cardinality of values of a datatype": 1,
    }


@pytest.mark.parametrize("ontology", [BRICK])
def test_the_excerpt_is_part_of_brick(ontology: Path) -> None:
    assert {*triples(building.EXCERPT.read_text(), "turtle")} <= {*triples(ontology.read_bytes(), "turtle")}


@pytest.mark.parametrize("ontology", ONTOLOGIES)
def test_the_building_uses_words_of_the_ontology(ontology: Path) -> None:
    """Each class and property of the building and of the question is in Brick, and in the excerpt."""
    names = Knowledge.read(ontology, prefixes=PREFIXES).names
    question = (building.ROOM, building.SENSOR, building.FED_BY, building.COMMAND)
    used = re.findall(r"\b(brick|rec):(\w+)", "".join([turtle(RECORDING.building), building.WORDS, *question]))
    assert len({*used}) > 40
    assert {f"{PREFIXES[prefix]}{name}" for prefix, name in used} <= {name.value for name in names}


# The building


def test_the_building_of_the_figures_has_five_thousand_points() -> None:
    assert len(Building().points) == 5_000
    assert len({name for name, _ in Building().points}) == 5_000


def test_every_point_of_the_building_is_in_its_turtle() -> None:
    facts = triples(turtle(RECORDING.building), "turtle")
    named = {term.value.removeprefix(BUILDING) for fact in facts for term in fact if hasattr(term, "value")}
    assert {name for name, _ in RECORDING.building.points} <= named


def test_readings_are_the_same_each_time_and_in_order(table: pa.Table) -> None:
    """The same seed gives the same readings, by time, one in a thousand is lost, and another seed gives others."""
    assert table == readings(RECORDING)
    assert table != readings(Recording(RECORDING.building, RECORDING.days))
    assert pc.all(pc.greater_equal(table["at"][1:], table["at"][:-1])).as_py()
    expected = len(RECORDING.building.points) * RECORDING.steps
    assert 0.998 < len(table) / expected < 1
    assert len(table.group_by(["point", "at"]).aggregate([])) == len(table)


def test_temperatures_are_those_of_an_office(table: pa.Table) -> None:
    """Rooms stay between 17 and 30 degrees, and are warmer in the afternoon than at night."""
    rooms = table.filter(pc.match_substring_regex(table["point"], r"^room.*temperature$"))
    assert pc.min(rooms["value"]).as_py() > 17
    assert pc.max(rooms["value"]).as_py() < 30
    hour = pc.hour(rooms["at"])
    afternoon, night = (pc.mean(rooms.filter(pc.equal(hour, one))["value"]).as_py() for one in (15, 5))
    assert afternoon > night + 1


# The question


def test_sensors_and_dampers_get_their_rooms(table: pa.Table, known: Knowledge) -> None:
    """The rooms are those of the plan. Other points, as the damper for the air outside, are left out."""
    placed = building.with_rooms(table, known)
    placed = placed.set_column(3, "room", pc.replace_substring(placed["room"], BUILDING, ""))
    order = [(name, "ascending") for name in ("at", "point", "room")]
    assert placed.sort_by(order) == with_rooms_by_hand(table, RECORDING.building).sort_by(order)
    watched = rooms_of_points(RECORDING.building)["point"].to_pylist()
    assert {*placed["point"].to_pylist()} == {*watched} < {name for name, _ in RECORDING.building.points}


def test_what_feeds_something_does_not_feed_what_that_feeds(known: Knowledge) -> None:
    """`feeds` is not transitive in Brick: an air handler feeds boxes, and boxes feed zones."""
    assert known.holds("brick:feeds(ahu-1, vav-1-2) ∧ brick:feeds(vav-1-2, zone-1-2)")
    assert not known.holds("brick:feeds(ahu-1, zone-1-2)")
    assert known.holds("brick:isFedBy(zone-1-2, vav-1-2) ∧ brick:hasPoint(vav-1-2, vav-1-2.flow)")


@pytest.mark.parametrize("air_handler", ["ahu-1", "ahu-2", "ahu-3"])
def test_the_pattern_finds_what_sql_finds(table: pa.Table, known: Knowledge, air_handler: str) -> None:
    """The same rooms and times as in SQL, and every fault that the generator has made is among them."""
    found = building.overheated(table, known, air_handler)
    assert rows_of(found) == overheating_in_sql(table, RECORDING.building, air_handler)
    faults = [*faults_of(air_handler)]
    assert faults
    for room, begin, end in faults:
        assert any(row[0] == room and row[1] <= begin and row[2] >= end for row in seconds_of(found)), (room, begin)


def test_the_pattern_by_hand_finds_the_same(table: pa.Table, known: Knowledge) -> None:
    """Lists of points in place of knowledge give the same matches, with the same ids."""
    events = building.with_rooms(table, known)
    by_hand = overheating_by_hand(RECORDING.building, "ahu-2")
    found = detect(events, by_hand, key="room", time="at", measures={"degrees": building.RISE})
    assert found == building.overheated(table, known, "ahu-2")


@pytest.mark.spark
def test_spark_finds_the_same(table: pa.Table, known: Knowledge, spark: SparkSession) -> None:
    found = building.overheated(spark.createDataFrame(table), known, "ahu-2").toArrow()
    assert rows_of(found) == overheating_in_sql(table, RECORDING.building, "ahu-2")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The script prints what was found for each air handler."""
    building.main(2, 4, 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("136 points, ")
    assert [line.split()[2] for line in lines[2:]] == ["ahu-1:", "ahu-2:"]


def rows_of(found: pa.Table) -> list[tuple[object, ...]]:
    rows = ((row["room"].removeprefix(BUILDING), row["match_start"], row["match_end"]) for row in found.to_pylist())
    return sorted(rows)


def seconds_of(found: pa.Table) -> list[tuple[object, int, int]]:
    return [(room, int(begin.timestamp()), int(end.timestamp())) for room, begin, end in rows_of(found)]


def faults_of(air_handler: str) -> list[tuple[str, int, int]]:
    """The rooms with each fault's time: from the last reading before it has an effect, to the first after it."""
    names = RECORDING.building.box_names
    return [
        (room.name, BEGIN + (one.begin + 1) * STEP, BEGIN + (one.end - 1) * STEP)
        for one in RECORDING.disturbances
        for room in RECORDING.building.rooms
        if one.closed and one.heats and room.box == one.box and f"ahu-{names[one.box].partition('-')[0]}" == air_handler
    ]
