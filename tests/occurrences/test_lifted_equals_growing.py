"""Patterns with knowledge find the same whether SQL says what events mean or sessions do."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import Occurrence, OccurrencePattern, Policy, detect, event
from cepheid.detect import plan_of
from cepheid.errors import KnowledgeError
from cepheid.knowledge.events.mapping import EventMapping, Properties, constant, individual, node
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.semantic import semantic
from cepheid.requests.request_of import request_of
from occurrences.shop import at

HEAD = """
    @prefix : <http://shop.example/> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Event a owl:Class . :Login rdfs:subClassOf :Event . :Request a owl:Class . :Buy a owl:Class .
    :item a owl:ObjectProperty . :user a owl:ObjectProperty . :price a owl:DatatypeProperty .
    :agent a owl:ObjectProperty .
    :part a owl:ObjectProperty . :Book a owl:Class . :Thing a owl:Class . :suppliedBy a owl:ObjectProperty .
    :Novel rdfs:subClassOf :Book . :dune a :Novel . :pen a :Tool . :dune :suppliedBy :acme . :pen :suppliedBy :acme .
    :dune :cost 2 . :duna :cost 3 . :pen :cost 2 . :tin :cost 1, "1" . :cost a owl:DatatypeProperty .
    :Corner a owl:Class . :place a owl:ObjectProperty .
    <http://shop.example/place/ann/1> a :Corner . <http://shop.example/place/a%20b/3> a :Corner .
    :acme :weight 5 . :Fiction a owl:Class . :Vip a owl:Class . :Stuff a owl:Class . :weight a owl:DatatypeProperty .
"""
PLAIN = [
    ":Buy rdfs:subClassOf :Request .",
    ":Request rdfs:subClassOf :Event .",
    ":item rdfs:domain :Request .",
    ":item rdfs:range :Thing .",
    ":pen a :Thing . :ink a :Thing .",
    ":user rdfs:subPropertyOf :agent .",
    ":agent rdfs:domain :Event .",
    ":user rdfs:label 'who' .",
    ":dune owl:sameAs :duna .",
    "<http://shop.example/user/ann> owl:sameAs <http://shop.example/user/bob> .",
    "<http://shop.example/user/ann> a :Vip .",
    ":Thing rdfs:subClassOf :Stuff .",
    ":dune owl:differentFrom :pen .",
    "<http://shop.example/place/ann/1> owl:sameAs <http://shop.example/place/bob/2> .",
    "<http://shop.example/place/ann/1> owl:sameAs :place1 .",
]
MORE = [
    ":item a owl:FunctionalProperty .",
    ":item owl:inverseOf :itemOf .",
    ":Fan owl:onProperty :item ; owl:someValuesFrom :Novel . :Fan rdfs:subClassOf :Request .",
    ":Buy owl:disjointWith :Login .",
    ":Event owl:hasKey ( :price ) .",
    ":Buy rdfs:subClassOf [ owl:onProperty :part ; owl:hasValue :dune ] .",
    ":user rdfs:range :Vip .",
    ":Fiction owl:intersectionOf ( :Request :Event ) .",
]
FILTERS = [
    "item(?v0, ?i) ∧ Book(?i)",
    "item(?v0, ?i) ∧ item(?v1, ?i)",
    "user(?v0, ?u) ∧ agent(?v1, ?u)",
    "user(?v0, ?u) ∧ Vip(?u)",
    "item(?v0, ?i) ∧ suppliedBy(?i, ?s) ∧ suppliedBy(?j, ?s) ∧ item(?v1, ?j)",
    "item(?v0, ?i) ∧ sameAs(?i, duna)",
    "item(?v0, duna)",
    "item(?v0, ?i) ∧ item(?v1, ?j) ∧ differentFrom(?i, ?j)",
    "price(?v0, ?p) ∧ greaterThan(?p, 2)",
    "price(?v0, 3)",
    "price(?v0, ?p) ∧ price(?v1, ?q) ∧ lessThan(?p, ?q)",
    "price(?v0, ?p) ∧ price(?v1, ?p)",
    "Thing(?i) ∧ item(?v0, ?i)",
    "Thing(ink) ∧ Request(?v0)",
    "Thing(?i) ∧ sameAs(?i, pen) ∧ Request(?v0)",
    "Stuff(?i) ∧ item(?v0, ?i) ∧ Tool(?i)",
    "item(?v0, ?i) ∧ suppliedBy(?i, ?s) ∧ weight(?s, ?w) ∧ greaterThan(?w, 4)",
    "item(?v0, ?i) ∧ suppliedBy(?i, ?s) ∧ weight(?s, ?w) ∧ greaterThan(?w, 5)",
    "item(?other, dune)",
    "Request(?other)",
    "suppliedBy(?a, ?b) ∧ Tool(?a)",
    "part(?v0, ?n) ∧ price(?n, ?p) ∧ greaterThan(?p, 2)",
    "part(?v0, ?n) ∧ Novel(?n)",
    "Request(?v0) ∧ Event(?v1)",
    "sameAs(?v0, ?v1)",
    "Fiction(?v0)",
    'price(?v0, "3")',
    "place(?v0, ?x) ∧ Corner(?x)",
    "place(?v0, ?x) ∧ place(?v1, ?x)",
    "place(?v0, ?x) ∧ sameAs(?x, place1)",
    "item(?v0, ?i) ∧ cost(?i, ?c) ∧ price(?v0, ?p) ∧ greaterThan(?p, ?c)",
    "item(?v0, ?i) ∧ cost(?i, ?c) ∧ price(?v1, ?p) ∧ add(?s, ?c, ?p) ∧ greaterThan(?s, 4)",
    "item(?v0, ?i) ∧ cost(?i, ?p) ∧ price(?v0, ?p)",
    "price(?v0, ?p) ∧ cost(?i, ?p) ∧ item(?v1, ?i)",
    "price(?v0, ?p) ∧ price(?v1, ?q) ∧ subtract(?d, ?q, ?p) ∧ weight(acme, ?w) ∧ add(?s, ?d, ?w) ∧ greaterThan(?s, 5)",
    "price(?v0, ?p) ∧ mod(0, ?p, 2) ∧ multiply(?x, ?p, ?p) ∧ lessThan(?x, 9)",
    "item(?v0, ?i) ∧ add(?s, ?i, 1)",
    "price(?v0, ?p) ∧ sameAs(?p, ?p)",
    "cost(?i, ?c) ∧ price(?v0, ?p) ∧ equal(?c, ?p) ∧ Tool(?i)",
]
TYPES = ["Event", "Login", "Request", "Buy", "Mine"]


class Row(NamedTuple):
    time: int
    kind: str | None
    item: str | None
    user: str | None
    price: int | None


ITEMS = [None, "dune", "duna", "pen", ":tin", "<http://shop.example/dune>", "http://shop.example/tin"]
rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 4),
        st.sampled_from(["Login", "Request", "Buy", ":Buy", "Other", None]),
        st.sampled_from(ITEMS),
        st.sampled_from([None, "ann", "bob", "a b"]),
        st.sampled_from([None, 1, 2, 3]),
    ),
    max_size=6,
).map(lambda found: sorted(found, key=lambda row: row.time))
filters = st.sampled_from(FILTERS).map(semantic)


@st.composite
def mappings(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of a mapping."""
    properties: Properties = {"item": individual("item"), "user": individual("http://shop.example/user/{user}")}
    properties = {**properties, **draw(st.sampled_from([{}, {"price": "price"}, {"price": "price"}]))}
    place: Properties = {"place": individual("http://shop.example/place/{user}/{price}")}
    properties = {**properties, **draw(st.sampled_from([{}, place]))}
    part = node({"a": constant("Novel"), "price": "price"})
    properties = {**properties, **draw(st.sampled_from([{}, {}, {"part": part}, {"a": constant("Event")}]))}
    classes = draw(st.sampled_from([None, None, {"Login": "Login", "Buy": "Buy", ":Buy": "Request"}]))
    return {"name": "http://shop.example/event/{number}", "type": "kind", "classes": classes, "properties": properties}


@st.composite
def expressions(draw: st.DrawFn) -> Occurrence:
    first, second = (event(draw(st.sampled_from(TYPES))).named(name) for name in ("v0", "v1"))
    both = draw(st.sampled_from([first >> second, first & second, first | second, first - second]))
    found = both.where(draw(filters))
    return draw(st.sampled_from([found, found, first.where(draw(filters)), first.minus_if(second, draw(filters))]))


@share(60)
@given(
    st.lists(st.sampled_from(PLAIN), max_size=6, unique=True),
    st.lists(st.sampled_from(MORE), max_size=1),
    mappings(),
    expressions(),
    rows,
)
def test_lifted_equals_growing(
    plain: list[str], more: list[str], mapping: dict[str, Any], expression: Occurrence, given_: list[Row]
) -> None:
    """The same occurrences. A column of facts that are all NULL changes nothing but the way."""
    prefixes = {"": "http://shop.example/"}
    try:
        known = Knowledge.read("\n".join([HEAD, *plain, *more]), prefixes=prefixes)
    except KnowledgeError:
        return
    events = table(given_)
    found = []
    for turtle in (None, "nothing"):
        pattern = OccurrencePattern.of(expression, knowledge=known, mapping=EventMapping(**mapping, turtle=turtle))
        pattern = pattern.restrict("Mine", "Event", semantic("item(?e, ?i) ∧ Book(?i)"), variable="e")
        pattern = pattern.policy(Policy.UNRESTRICTED)
        options: dict[str, Any] = {"time": "at", "sequence": "number", "columns": ["number"]}
        if turtle is None:
            note("lifted" if plan_of(events, request_of(pattern, **options)).semantics is None else "growing")
        found.append(_found(events, pattern, options))
    assert found[0] == found[1]


def _found(events: pa.Table, pattern: OccurrencePattern, options: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows_ = detect(events, pattern, **options).to_pylist()
    return [(row["match_start"], row["match_end"], row["events"]) for row in rows_]


def table(given_: list[Row]) -> pa.Table:
    columns = {
        "number": pa.array(range(len(given_)), pa.int64()),
        "at": pa.array([at(row.time) for row in given_], pa.timestamp("us", "UTC")),
        "kind": pa.array([row.kind for row in given_], pa.string()),
        "item": pa.array([row.item for row in given_], pa.string()),
        "user": pa.array([row.user for row in given_], pa.string()),
        "price": pa.array([row.price for row in given_], pa.int64()),
        "nothing": pa.nulls(len(given_), pa.string()),
    }
    return pa.table(columns)


pytestmark = pytest.mark.filterwarnings("ignore:policy 'recent' with the condition")
