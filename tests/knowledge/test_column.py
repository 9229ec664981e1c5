"""Columns of the answers to filters, in process."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import KnowledgeError, OccurrencePattern, Report, SchemaError, add_column, detect
from cepheid.knowledge import EventMapping, Knowledge, constant, individual
from cepheid.plan.semantics import answers

PREFIXES = {"": "http://b.example/", "b": "http://b.example/point/"}
BUILDING = Knowledge.read(
    """
@prefix : <http://b.example/> .
@prefix b: <http://b.example/point/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:hasPoint a owl:ObjectProperty . :isIn a owl:ObjectProperty . :area a owl:DatatypeProperty .
:vav1 :hasPoint b:1, b:2 ; :isIn :room1 .
:vav2 :hasPoint <http://b.example/point/a%20b>, b:9 ; :isIn :room2, :room3 .
:attic :hasPoint b:8 .
:room1 a :Room ; :area 12.5 ; :number 1 ; :since "2020-01-01"^^xsd:date ; rdfs:label "One"@en .
:room2 a :Room ; :area 20.0 ; :number 2.0 ; :since "2021-06-30"^^xsd:date ; rdfs:label "Two"@en .
:room3 a :Room ; owl:sameAs :hall . b:9 owl:sameAs b:nine . :room1 :opens "PT8H"^^xsd:dayTimeDuration .
:room1 :checked "2026-01-01T08:00:00Z"^^xsd:dateTime ; :clock "2026-01-01T08:00:00"^^xsd:dateTime .
:room1 :height "2.5"^^xsd:double ; :heated true ; :code "r-1" .
""",
    prefixes=PREFIXES,
)
ROOM = "hasPoint(?equipment, ?point) ∧ isIn(?equipment, ?room) ∧ Room(?room)"
OF_POINT = {"point": individual("b:{point}")}
READINGS = pa.table({"n": [0, 1, 2, 3, 4, 5, 6], "point": ["1", "a b", None, "nothing", "nine", "2", "8"]})
HALL, ROOM_1, ROOM_2 = (f"http://b.example/{name}" for name in ("hall", "room1", "room2"))
EXPECTED = [
    (0, ROOM_1),
    (1, HALL),
    (1, ROOM_2),
    (2, None),
    (3, None),
    (4, HALL),
    (4, ROOM_2),
    (5, ROOM_1),
    (6, None),
]
"""Several answers are several rows; none, an unknown name and NULL are NULL. Of two names of a room there is the least,
and each name of a point has its answers.
"""


def pairs(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("make", "as_arrow"),
    [
        (lambda table: table, lambda found: found),
        (lambda table: table.to_pandas(), pa.Table.from_pandas),
        (pl.from_arrow, lambda found: found.to_arrow()),
        (lambda table: pl.from_arrow(table).lazy(), lambda found: found.collect().to_arrow()),
        (duckdb.from_arrow, lambda found: found.to_arrow_table()),
    ],
    ids=["pyarrow", "pandas", "polars", "lazy", "duckdb"],
)
def test_each_kind_of_table(make: Any, as_arrow: Any) -> None:
    """The result is a table of the same kind, with the rows in their order."""
    events = make(READINGS)
    found = add_column(events, BUILDING.column(ROOM, "room", OF_POINT))
    assert type(found) is type(events)
    assert pairs(as_arrow(found), "n", "room") == EXPECTED


def test_types_of_events_remain() -> None:
    """Columns keep their types, dictionaries and views among them."""
    events = READINGS.set_column(1, "point", READINGS["point"].dictionary_encode())
    events = events.append_column("more", pa.array([[n] for n in range(7)], pa.list_(pa.int8())))
    events = events.append_column("view", pa.array(["x"] * 7, pa.string_view()))
    found = add_column(events, BUILDING.column(ROOM, "room", OF_POINT), name="place")
    assert found.schema.remove(4) == events.schema
    assert pairs(found, "n", "place") == EXPECTED


def test_a_column_may_be_a_key() -> None:
    """Events of a sensor and of a damper have the key of their room."""
    events = pa.table(
        {
            "at": [datetime(2026, 1, 1, minute=m, tzinfo=UTC) for m in range(3)],
            "point": ["1", "8", "2"],
            "type": ["A", "B", "B"],
        }
    )
    keyed = add_column(events, BUILDING.column(ROOM, "room", OF_POINT))
    pattern = OccurrencePattern.of("?a: A ; ?b: B").taxonomy("type")
    found = detect(keyed, pattern, key="room", time="at", nulls="drop", columns=["point"], report=Report())
    assert pairs(found, "room") == [(ROOM_1,)]


NAMES = {
    "http://b.example/point/1": [ROOM_1],
    "<http://b.example/point/1>": [ROOM_1],
    "b:1": [ROOM_1],
    "point/1": [ROOM_1],
    "b:nine": [HALL, ROOM_2],
    "no name": [None],
    "unknown:1": [None],
}


def test_columns_with_names() -> None:
    """A column may have whole names and such with prefixes."""
    events = pa.table({"name": [*NAMES]})
    found = add_column(events, BUILDING.column(ROOM, "room", {"point": individual("name")}))
    assert pairs(found, "name", "room") == [(name, room) for name, rooms in NAMES.items() for room in rooms]


@pytest.mark.parametrize("type_", [pa.int64(), pa.int8(), pa.uint16(), pa.decimal128(19, 0)])
def test_numbers_in_templates(type_: pa.DataType) -> None:
    """Numbers make names in their canonical form."""
    events = pa.table({"point": pa.array([1, 2, 8, 9, None, 77], pa.int64()).cast(type_)})
    found = add_column(events, BUILDING.column(ROOM, "?room", {"?point": individual("b:{point}")}))
    # The decimal 1 has the canonical form 1.0.
    answers = [ROOM_1, ROOM_1, None, HALL, ROOM_2, None, None] if not pa.types.is_decimal(type_) else [None] * 6
    assert [row["room"] for row in found.to_pylist()] == answers


def test_templates_of_several_columns() -> None:
    """A name may be made of several columns. Where it can be divided in several ways, each is found."""
    knowledge = Knowledge.read(
        "<http://x/a-b-c> <http://x/in> <http://x/here> . <http://x/a-b%2Dc> <http://x/in> <http://x/no> ."
        "<http://x/1-1> <http://x/in> <http://x/same> .",
        prefixes={"": "http://x/"},
    )
    place = knowledge.column("in(?x, ?place)", "place", {"x": individual("http://x/{one}-{other}")})
    events = pa.table({"one": ["a", "a-b", "b", "a", None, "1"], "other": ["b-c", "c", "c", "b", "c", "1"]})
    found = [row["place"] for row in add_column(events, place).to_pylist()]
    assert found == ["http://x/here", "http://x/here", None, None, None, "http://x/same"]
    twice = knowledge.column("in(?x, ?place)", "place", {"x": individual("http://x/{one}-{one}")})
    found = [row["place"] for row in add_column(events.select(["one"]), twice).to_pylist()]
    assert found == [None] * 5 + ["http://x/same"]


def test_two_variables_of_an_event() -> None:
    """All that an event names must have the answer together."""
    asked = "hasPoint(?equipment, ?point) ∧ isIn(?equipment, ?room) ∧ area(?room, ?area)"
    area = BUILDING.column(asked, "area", {**OF_POINT, "room": individual("room")})
    events = pa.table({"point": ["1", "a b", "nine", "1"], "room": ["room1", "room2", "hall", "room2"]})
    found = add_column(events, area)
    assert found.schema.field("area").type == pa.decimal128(3, 1)
    assert [row["area"] for row in found.to_pylist()] == [Decimal("12.5"), Decimal("20.0"), None, None]


@pytest.mark.parametrize(
    ("property_", "type_", "value"),
    [
        ("area", pa.decimal128(4, 1), Decimal("12.5")),
        ("area", pa.float64(), 12.5),
        ("number", pa.int32(), 1),
        ("number", pa.float32(), 1.0),
        ("number", pa.decimal128(4, 2), Decimal(1)),
        ("since", pa.date32(), date(2020, 1, 1)),
        ("opens", pa.duration("s"), timedelta(hours=8)),
        ("checked", pa.timestamp("ms", "Europe/Vienna"), datetime(2026, 1, 1, 8, tzinfo=UTC)),
        ("clock", pa.timestamp("us"), datetime(2026, 1, 1, 8)),  # noqa: DTZ001 - without a zone
        ("height", pa.float64(), 2.5),
        ("height", pa.decimal128(2, 1), Decimal("2.5")),
        ("heated", pa.bool_(), True),
        ("code", pa.large_string(), "r-1"),
    ],
)
def test_columns_of_values(property_: str, type_: pa.DataType, value: object) -> None:
    """A plain column is a value, which is compared by value."""
    events = pa.table({"v": pa.array([None, value], type_)})
    found = add_column(events, BUILDING.column(f"{property_}(?room, ?value)", "room", {"value": "v"}))
    assert [row["room"] for row in found.to_pylist()] == [None, ROOM_1]


@pytest.mark.parametrize(
    ("property_", "type_", "answer"),
    [
        ("area", pa.decimal128(3, 1), Decimal("12.5")),
        ("since", pa.date32(), date(2020, 1, 1)),
        ("rdfs:label", pa.string(), "One"),
        ("opens", pa.duration("us"), timedelta(hours=8)),
        ("checked", pa.timestamp("us", "UTC"), datetime(2026, 1, 1, 8, tzinfo=UTC)),
        ("clock", pa.timestamp("us"), datetime(2026, 1, 1, 8)),  # noqa: DTZ001
        ("height", pa.float64(), 2.5),
        ("heated", pa.bool_(), True),
        ("code", pa.string(), "r-1"),
    ],
)
def test_answers_of_values(property_: str, type_: pa.DataType, answer: object) -> None:
    """Literals are values of one type."""
    found = add_column(
        pa.table({"room": ["room1", "nowhere"]}),
        BUILDING.column(f"{property_}(?room, ?value)", "value", {"room": individual("room")}),
    )
    assert found.schema.field("value").type == type_
    assert [row["value"] for row in found.to_pylist()] == [answer, None]


def test_values_in_several_atoms() -> None:
    """A value of an event is equal by value in each atom, whatever the literals are there."""
    knowledge = Knowledge.read(
        "@prefix : <http://x/> . :a :p 34 ; :q 34.0 . :b :p 35 ; :q 36 .",
        prefixes={"": "http://x/"},
    )
    column = knowledge.column("p(?x, ?n) ∧ q(?x, ?n)", "x", {"n": "n"})
    assert pairs(add_column(pa.table({"n": [34, 35, 36]}), column), "n", "x") == [
        (34, "http://x/a"),
        (35, None),
        (36, None),
    ]


BELOW = "area(?room, ?area) ∧ greaterThan(?value, ?area)"


def test_values_that_are_compared() -> None:
    """A value that built-ins alone have is tried: each one that the events have."""
    events = pa.table({"v": [1.0, 13.0, None, 30.0, 13.0, float("nan")]})
    found = add_column(events, BUILDING.column(BELOW, "room", {"value": "v"}))
    rooms = [row["room"] for row in found.to_pylist()]
    assert rooms == [None, ROOM_1, None, ROOM_1, ROOM_2, ROOM_1, None]


def test_computed_answers() -> None:
    """An answer may be computed."""
    events = pa.table({"v": [1, None]})
    column = BUILDING.column("number(room1, ?n) ∧ add(?sum, ?n, ?value)", "sum", {"value": "v"})
    found = add_column(events, column)
    assert found.schema.field("sum").type == pa.int64()
    assert pairs(found, "v", "sum") == [(1, 2), (None, None)]


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit on the values that are tried."""
    monkeypatch.setattr("cepheid.hosts.in_process.answers.MOST_VALUES", 2)
    events = pa.table({"v": [1.0, 2.0, 3.0, None]})
    with pytest.raises(SchemaError, match=r"more than 100,000 values in 'v', for each of which .* compare with SQL"):
        add_column(events, BUILDING.column(BELOW, "room", {"value": "v"}))
    assert len(add_column(events.slice(1), BUILDING.column(BELOW, "room", {"value": "v"}))) == 3
    assert answers.MOST_VALUES == 100_000


def test_no_events_and_no_answers() -> None:
    """Without events, or without answers, there is the column nonetheless."""
    column = BUILDING.column(ROOM, "room", OF_POINT)
    assert add_column(READINGS.slice(0, 0), column).schema.field("room").type == pa.string()
    nothing = BUILDING.column("hasPoint(?point, ?room)", "room", OF_POINT)
    assert [row["room"] for row in add_column(READINGS, nothing).to_pylist()] == [None] * 7


FAULTS = [
    ("Room(?room", "room", OF_POINT, "'end'|is expected"),
    (ROOM, "floor", OF_POINT, "variable: the filter has no variable 'floor'"),
    (ROOM, "roon", OF_POINT, "Did you mean 'room'"),
    (ROOM, "room", {}, "bindings: what variables are for an event is expected"),
    (ROOM, "room", {"pont": individual("p")}, "the filter has no variable 'pont'\nDid you mean 'point'"),
    (ROOM, "room", {"equipment": "p"}, r"needs an individual, and a column is a value. Write individual\('p'\)"),
    (ROOM, "room", {"point": "b:{p}"}, r"names an individual: write individual\('b:{p}'\)"),
    (ROOM, "room", {"point": constant("b:1")}, r"a column or individual\(…\) is expected"),
    (ROOM, "room", {"point": individual("c:{p}")}, "the prefix 'c:' is unknown"),
    ("Rom(?room) ∧ hasPoint(?room, ?point)", "room", OF_POINT, "no class or property <http://b.example/Rom>"),
    ("Rom(?room) ∧ hasPoint(?room, ?point)", "room", OF_POINT, "Names like it: http://b.example/Room"),
    (BELOW, "room", {"value": individual("v")}, "built-ins take values, and this is an individual"),
    ("Room(?room) ∧ greaterThan(?v, ?w)", "room", {"v": "v"}, r"nothing binds \?w: it stands in built-ins only"),
]


@pytest.mark.parametrize(("text", "variable", "bindings", "message"), FAULTS)
def test_faults_of_the_question(text: str, variable: str, bindings: Any, message: str) -> None:
    """A column is checked where it is made."""
    with pytest.raises(KnowledgeError, match=message):
        BUILDING.column(text, variable, bindings)


def test_all_faults_together() -> None:
    """The message has all faults."""
    with pytest.raises(KnowledgeError) as caught:
        BUILDING.column("Rom(?room)", "roon", {"point": "p"})
    assert [line for line in str(caught.value).splitlines() if not line.startswith(("Names", "Did", "Known"))] == [
        "the knowledge has no class or property <http://b.example/Rom> (the filter 'Rom(?room)')",
        "variable: the filter has no variable 'roon'",
        "bindings: the filter has no variable 'point'",
    ]


def test_faults_of_the_events() -> None:
    """Columns that are missing, of unfit types, or have the new name are reported together."""
    asked = "hasPoint(?equipment, ?point) ∧ isIn(?equipment, ?room) ∧ number(?room, ?number)"
    column = BUILDING.column(asked, "room", {**OF_POINT, "equipment": individual("unit"), "number": "no"})
    with pytest.raises(SchemaError) as caught:
        add_column(pa.table({"unit": [1], "Room": [""], "no": [[1]]}), column)
    assert str(caught.value).splitlines() == [
        "name: the events have a column 'Room'. Give the new one another name, with name=",
        "bindings: the events have no column 'point'",
        "Known here: unit, Room, no",
        "bindings: the column 'unit' must be STRING; it is BIGINT",
        "bindings: the column 'no' must be a number, a text, a time, a duration or a boolean; it is ARRAY<BIGINT>",
    ]
    with pytest.raises(
        SchemaError, match=r"column: a column that knowledge.column\(…\) makes is expected, got str: 'room'"
    ):
        add_column(READINGS, "room")  # type: ignore[arg-type]


def test_answers_of_several_types() -> None:
    """Mixed answers are an error that has an example of each."""
    column = BUILDING.column("number(?room, ?n)", "n", {"room": individual("room")})
    with pytest.raises(KnowledgeError, match=r"\?n are of several types: integers such as .*, decimals such as "):
        add_column(pa.table({"room": ["room1"]}), column)


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        ('"P1Y"^^xsd:yearMonthDuration', "literals of the type http://www.w3.org/2001/XMLSchema#yearMonthDuration"),
        ('"x"^^xsd:integer', "literals that are not of their type"),
        ("9223372036854775808", "do not fit a column of integers"),
        ("0.1, 12345678901234567890123456789012345678.0", "more than 38 digits"),
    ],
)
def test_answers_that_no_column_has(literal: str, message: str) -> None:
    """Literals that are values of no type of a column are an error."""
    text = f"@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . <http://x/a> <http://x/p> {literal} ."
    column = Knowledge.read(text, prefixes={"": "http://x/"}).column("p(?x, ?v)", "v", {"x": individual("x")})
    with pytest.raises(KnowledgeError, match=message):
        add_column(pa.table({"x": ["a"]}), column)


NODES = st.sampled_from(["a", "b", "c", "d e", "f"])
EDGES = st.lists(st.tuples(NODES, st.sampled_from(["p", "q"]), NODES), max_size=8)
FILTERS = ["p(?x, ?y)", "p(?x, ?z) ∧ q(?z, ?y)", "q(?y, ?x) ∧ differentFrom(?x, ?y)", "sameAs(?x, ?y) ∧ p(?y, ?z)"]


@given(EDGES, st.lists(st.tuples(NODES, NODES), max_size=2), st.sampled_from(FILTERS), st.lists(NODES | st.none()))
def test_equal_to_the_solutions_for_each_event(
    edges: list[tuple[str, str, str]], same: list[tuple[str, str]], text: str, values: list[str | None]
) -> None:
    """The answers of an event are the solutions of the filter with its individual."""
    stated = [(one, f"http://x/{property_}", other) for one, property_, other in edges]
    stated += [(one, "http://www.w3.org/2002/07/owl#sameAs", other) for one, other in same]
    stated += [("p", "http://x/p", "p"), ("q", "http://x/q", "q")]  # so that both properties are known
    lines = (f"<http://x/{quote(one)}> <{property_}> <http://x/{quote(other)}> ." for one, property_, other in stated)
    knowledge = Knowledge.read("\n".join(lines), prefixes={"": "http://x/"})
    found = add_column(
        pa.table({"v": pa.array(values, pa.string())}), knowledge.column(text, "y", {"x": individual("{v}")})
    )
    expected = []
    for value in values:
        name = None if value is None else f"http://x/{quote(value)}"
        answers_of = [] if name is None else knowledge.solutions(text, ["y"], {"x": name})
        expected += [(value, answer) for (answer,) in answers_of or [(None,)]]
    assert pairs(found, "v", "y") == expected


def test_a_mapped_event_reads_the_column() -> None:
    """Names of answers can be mapped as individuals."""
    mapping = EventMapping("http://b.example/event/{n}", type="type", properties={"isIn": individual("room")})
    events = add_column(READINGS, BUILDING.column(ROOM, "room", OF_POINT)).append_column(
        "type", pa.array(["Room"] * len(EXPECTED))
    )
    events = events.append_column("at", pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * len(EXPECTED)))
    pattern = OccurrencePattern.of("?e: Room [ isIn(?e, ?x) ^ area(?x, 20.0) ]", knowledge=BUILDING, mapping=mapping)
    found = detect(events, pattern, time="at", columns=["n"], sequence="n")
    assert len(found) == 2
