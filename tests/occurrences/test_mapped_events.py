"""Patterns whose events become individuals by a mapping of columns."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cepheid import CepheidWarning, EventError, Matcher, OccurrencePattern, Pattern, PatternError, detect
from cepheid.knowledge.events.mapping import EventMapping, constant, individual, node
from cepheid.knowledge.knowledge import Knowledge

SHOP = "http://shop.example/"
ONTOLOGY = f"""
@prefix : <{SHOP}> . @prefix item: <{SHOP}item/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:Request rdfs:subClassOf :Event . :LogIn rdfs:subClassOf :Event . :Binding a owl:Class .
:Novel rdfs:subClassOf :Book . :Film a owl:Class .
item:dune a :Novel . item:alien a :Film .
:input a owl:ObjectProperty . :toParameter a owl:ObjectProperty . :objectValue a owl:ObjectProperty .
:hasPrice a owl:DatatypeProperty . :tag a owl:DatatypeProperty . :at a owl:DatatypeProperty .
:day a owl:DatatypeProperty . :took a owl:DatatypeProperty . :paid a owl:DatatypeProperty .
:about a owl:ObjectProperty .
"""
KNOWLEDGE = Knowledge.read(ONTOLOGY, prefixes={"": SHOP, "item": f"{SHOP}item/"})
MAPPING = EventMapping(
    f"{SHOP}event/{{id}}",
    type="kind",
    properties={
        "hasPrice": "price",
        "tag": "tags",
        "at": ["at", "local"],
        "day": "day",
        "took": "took",
        "paid": "paid",
        "about": individual("items"),
        "input": node(
            {"a": constant("Binding"), "toParameter": constant("item"), "objectValue": individual("item:{item}")}
        ),
    },
)
VALUE = "a number, a text, a time, a duration or a boolean"
START = datetime(2024, 1, 1, tzinfo=UTC)


def events(**changed: Any) -> pa.Table:
    """Three events of one session: a log in, then requests for a novel and for a film."""
    columns = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "at": pa.array([START + timedelta(seconds=one) for one in range(3)], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2024, 1, 1, 8)] * 3, pa.timestamp("us")),  # noqa: DTZ001 - it has no zone
        "kind": ["LogIn", "Request", "Request"],
        "item": [None, "dune", "alien"],
        "items": pa.array([None, ["item:dune"], ["item:dune", "item:alien"]]),
        "price": pa.array([None, Decimal("9.50"), Decimal("20.00")]),
        "tags": pa.array([None, ["new", "gift"], []]),
        "day": [date(2024, 1, 1)] * 3,
        "took": pa.array([timedelta(seconds=2), timedelta(seconds=90), None], pa.duration("us")),
        "paid": [None, True, False],
    }
    return pa.table({name: values for name, values in (columns | changed).items() if values is not None})


def found(text: str, table: pa.Table | None = None) -> list[list[int]]:
    """The ids of the events of each occurrence."""
    pattern = OccurrencePattern.of(text, knowledge=KNOWLEDGE, mapping=MAPPING).policy("unrestricted")
    rows = detect(events() if table is None else table, pattern, time="at", columns=["id"])
    return [[one["id"] for one in row["events"]] for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Event", [[1], [2], [3]]),
        ("?r: Request [ input(?r, ?b) ^ toParameter(?b, item) ^ objectValue(?b, ?i) ^ Book(?i) ]", [[2]]),
        ("?r: Request [ Binding(?b) ^ input(?r, ?b) ^ objectValue(?b, item:alien) ]", [[3]]),
        ("?r: Event [ hasPrice(?r, ?p) ^ greaterThan(?p, 9) ]", [[2], [3]]),
        ("?r: Event [ hasPrice(?r, 20) ]", [[3]]),
        ('?r: Event [ tag(?r, "gift") ]', [[2]]),
        ("?r: Event [ about(?r, ?i) ^ Film(?i) ]", [[3]]),
        ('?r: Event [ took(?r, ?d) ^ greaterThan(?d, "PT1M"^^xsd:dayTimeDuration) ]', [[2]]),
        ("?r: Event [ paid(?r, true) ]", [[2]]),
        ('?r: Event [ day(?r, "2024-01-01"^^xsd:date) ]', [[1], [2], [3]]),
        ('?r: Event [ at(?r, "2024-01-01T00:00:01Z"^^xsd:dateTime) ]', [[2]]),
        ('?r: Event [ at(?r, "2024-01-01T08:00:00"^^xsd:dateTime) ]', [[1], [2], [3]]),
        ("?l: LogIn; ?r: Request [ about(?r, item:alien) ] [sql: r.price > 10]", [[1, 3]]),
    ],
)
def test_detect(text: str, expected: list[list[int]]) -> None:
    """Filters ask for what the columns say: literals of all types, arrays, individuals, nodes."""
    assert found(text) == expected


@pytest.mark.filterwarnings("ignore:a matcher keeps what is open")
def test_matcher_and_snapshot() -> None:
    """A matcher that continues from a snapshot knows what the events before said."""
    pattern = OccurrencePattern.of(
        "(?l: LogIn; ?r: Request) [ about(?r, ?i) ^ Film(?i) ^ input(?x, ?b) ^ objectValue(?b, ?j) ^ Book(?j) ]",
        knowledge=KNOWLEDGE,
        mapping=MAPPING,
    ).policy("unrestricted")
    table = events()

    def matcher() -> Matcher:
        return Matcher(pattern, table.schema, time="at", columns=["id"])

    first = matcher()
    ids = []
    for row in range(3):
        ids += first.process(table.slice(row, 1)).to_pylist()
        restored = matcher()
        restored.restore(first.snapshot())
        first = restored
    ids += first.finish().to_pylist()
    assert [[one["id"] for one in row["events"]] for row in ids] == [[1, 3]]


def test_events_with_one_name() -> None:
    """If the mapping says so, they are one individual: what the earlier ones say holds for the later ones, too."""
    table = events(id=pa.array([7, 7, 8], pa.int64()))
    linked = EventMapping(f"{SHOP}event/{{id}}", type="kind", linked=True)
    pattern = OccurrencePattern.of("LogIn", knowledge=KNOWLEDGE, mapping=linked)
    rows = detect(table, pattern, time="at", columns=["kind"]).to_pylist()
    assert [one["kind"] for row in rows for one in row["events"]] == ["LogIn", "Request"]
    stages = Pattern.begin("a", knowledge=KNOWLEDGE, mapping=linked).subtype("LogIn")
    with pytest.raises(PatternError, match=r"events may have the same name, or name each other \(linked\)"):
        detect(table, stages, time="at")


def test_whether_events_are_linked_is_true_or_false() -> None:
    with pytest.raises(PatternError, match="mapping: linked is True or False, got 1"):
        EventMapping("id", linked=1)  # type: ignore[arg-type]


def test_an_event_without_a_name() -> None:
    """The error says which event has no name, and what to do."""
    with pytest.raises(
        EventError, match=r"an event needs a name .* 'id' is NULL: {'id': None}\. Leave such events out"
    ):
        found("Event", events(id=pa.array([1, None, 3], pa.int64())))


def test_problems_are_reported_at_once() -> None:
    """Missing columns, unfit types, prefixes and names that are not known: all in one error."""
    mapping = EventMapping(
        "shpo:{id}",
        type="kind",
        classes={"a": "Reqest"},
        properties={"hasPrise": "price", "tag": "place", "about": [individual("count"), individual("item:{x}{tags}")]},
    )
    table = events().append_column("place", pa.array([{"city": "Graz"}] * 3)).append_column("count", pa.array([1] * 3))
    pattern = OccurrencePattern.of("Event", knowledge=KNOWLEDGE, mapping=mapping)
    with pytest.raises(PatternError) as error:
        detect(table, pattern, time="at")
    assert str(error.value).splitlines() == [
        "the prefix 'shpo:' is unknown. There are :, item:, owl:, rdf:, rdfs:, swrlb:, xsd: (mapping, 'shpo:{id}')",
        "the knowledge has no class or property <http://shop.example/Reqest> (mapping, 'Reqest')",
        "Names like it: http://shop.example/Request",
        "the knowledge has no class or property <http://shop.example/hasPrise> (mapping, 'hasPrise')",
        "Names like it: http://shop.example/hasPrice",
        f"the column 'place' must be {VALUE}, or an array of these; it is STRUCT<city: STRING> (mapping)",
        "the column 'count' must be STRING or an array of STRING; it is BIGINT (mapping)",
        "no column named 'x' (mapping)",
        "Known here: id, at, local, kind, item, items, price, tags, day, took, paid, place, count",
        f"the column 'tags' must be {VALUE}; it is ARRAY<STRING> (mapping)",
    ]


def test_turtle_may_bring_names() -> None:
    """With Turtle, names that the knowledge does not have are no errors, but warned of."""
    mapping = EventMapping("name", properties={"hasPrise": "price"}, turtle="more")
    pattern = OccurrencePattern.of("?e: Sale [ hasPrise(?e, 3) ]", knowledge=KNOWLEDGE, mapping=mapping)
    table = pa.table({"at": pa.array([START]), "name": ["a"], "price": [3], "more": [":a a :Sale ."]})
    with pytest.warns(CepheidWarning) as caught:
        assert detect(table, pattern, time="at").num_rows == 1
    assert [str(one.message).splitlines()[0] for one in caught] == [
        "the knowledge has no class or property <http://shop.example/Sale> (type 'Sale')",
        "the knowledge has no class or property <http://shop.example/hasPrise> (condition, column 1)",
    ]


_WITHOUT_PYOXIGRAPH = f"""
import sys
sys.modules["pyoxigraph"] = None  # so that it cannot be imported
import pyarrow as pa
from datetime import UTC, datetime
from cepheid import OccurrencePattern, detect
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri

class_, above = Iri("{SHOP}Novel"), Iri("{SHOP}Book")
facts = [(class_, Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"), above)]
pattern = OccurrencePattern.of(
    "?b: Book", knowledge=Knowledge(facts, {{"": "{SHOP}"}}), mapping=EventMapping("{SHOP}{{id}}", type="kind")
)
table = pa.table({{"id": [1], "kind": ["Novel"], "at": [datetime(2024, 1, 1, tzinfo=UTC)]}})
print(detect(table, pattern, time="at").num_rows)
"""


def test_columns_need_no_pyoxigraph() -> None:
    """Where events bring no Turtle, only reading knowledge needs pyoxigraph."""
    ran = subprocess.run([sys.executable, "-c", _WITHOUT_PYOXIGRAPH], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout == "1\n"


POSTS = f"""
@prefix : <{SHOP}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Post rdfs:subClassOf :Event . :Like rdfs:subClassOf :Event . :ann a :Person .
:replyTo a owl:ObjectProperty . :by a owl:ObjectProperty .
"""


@pytest.mark.parametrize("turtle", [None, "facts"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("replyTo(?e, ?x) ^ Post(?x)", [[2]]),
        ("replyTo(?e, ?x) ^ by(?x, ?y)", [[2], [3]]),
        ("replyTo(?e, ?x) ^ replyTo(?x, ?y)", [[3]]),
        ("replyTo(?e, ?x) ^ Post(e:1)", [[2], [3]]),
        ("by(?e, ?p) ^ Person(?p)", [[1], [3]]),
    ],
)
def test_events_that_name_events(condition: str, expected: list[list[int]], turtle: str | None) -> None:
    """A column of names, and a constant, may be the name of an event; what that says counts. `turtle`: in a session."""
    known = Knowledge.read(POSTS, prefixes={"": SHOP, "e": f"{SHOP}e/"})
    related = {"replyTo": individual("to"), "by": individual("{by}")}
    mapping = EventMapping("e:{id}", type="kind", properties=related, turtle=turtle)
    columns = {
        "id": [1, 2, 3],
        "kind": ["Post", "Like", "Like"],
        "to": [None, "e:1", "e:2"],
        "by": ["ann", "bob", "ann"],
        "facts": pa.nulls(3, pa.string()),
    }
    table = pa.table({"at": events()["at"], **columns})
    pattern = OccurrencePattern.of(f"?e: Event [{condition}]", knowledge=known, mapping=mapping)
    rows = detect(table, pattern, time="at", columns=["id"]).to_pylist()
    assert [[one["id"] for one in row["events"]] for row in rows] == expected
