"""Filters as SQL find what sessions find: cases that are easily wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid import OccurrencePattern, Pattern, PatternError, detect, semantic
from cepheid.knowledge import EventMapping, Knowledge, individual, node
from cepheid.knowledge.events.mapping import Properties

SHOP = "http://shop.example/"
HEAD = f"""
@prefix : <{SHOP}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Event a owl:Class . :street a owl:DatatypeProperty . :city a owl:DatatypeProperty . :price a owl:DatatypeProperty .
:to a owl:ObjectProperty . :by a owl:ObjectProperty . :via a owl:ObjectProperty .
"""
ADDRESS = node({"street": "street", "city": "city"})
COLUMNS: Mapping[str, Sequence[object]] = {
    "kind": ["Event"] * 4,
    "street": ["a", "b", None, None],
    "city": [None, "x", "y", None],
    "price": [1, 3, 1, 3],
    "by": ["ann", "ann", "cid", "bob"],
    "via": ["bob", "cid", "cid", "ann"],
}


def table() -> pa.Table:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=one) for one in range(4)]
    return pa.table({"id": range(4), "at": times, "facts": pa.nulls(4, pa.string()), **COLUMNS})


def mapped(properties: Properties, turtle: str | None = None) -> EventMapping:
    return EventMapping("event/{id}", type="kind", properties=properties, turtle=turtle)


@pytest.mark.parametrize("turtle", [None, "facts"])
@pytest.mark.parametrize(
    ("ontology", "properties", "text", "expected"),
    [
        # One of several columns of a node gives the class, and another condition must hold, too.
        (":to rdfs:domain :Sent .", {"to": ADDRESS, "price": "price"}, "Sent(?e) ∧ price(?e, 3)", [1]),
        # A node has the class by the range of its property, whichever of its columns are there.
        (":to rdfs:range :Address .", {"to": ADDRESS}, "to(?e, ?n) ∧ Address(?n)", [0, 1, 2]),
        (
            ":to rdfs:range :Address . :street rdfs:domain :Address .",
            {"to": ADDRESS},
            "to(?e, ?n) ∧ Address(?n)",
            [0, 1, 2],
        ),
        (":street rdfs:domain :Exact .", {"to": ADDRESS}, "to(?e, ?n) ∧ Exact(?n)", [0, 1]),
        # A class of nodes that follows from two others.
        (
            ":to rdfs:range :Address . :street rdfs:domain :Exact . :Good owl:intersectionOf ( :Address :Exact ) .",
            {"to": ADDRESS},
            "to(?e, ?n) ∧ Good(?n)",
            [0, 1],
        ),
        *(
            (":ann owl:sameAs :bob .", {"by": individual("by"), "via": individual("via")}, text, [0, 2, 3])
            for text in (
                "sameAs(?x, ?y) ∧ by(?e, ?x) ∧ via(?e, ?y)",
                "by(?e, ?x) ∧ sameAs(?x, ?y) ∧ via(?e, ?y)",
                "by(?e, ?x) ∧ via(?e, ?y) ∧ sameAs(?x, ?y)",
            )
        ),
    ],
)
def test_events(ontology: str, properties: Properties, text: str, expected: list[int], turtle: str | None) -> None:
    """The same events fit with and without a session (`turtle`)."""
    known = Knowledge.read(HEAD + ontology, prefixes={"": SHOP})
    mapping = mapped(properties, turtle)
    pattern = OccurrencePattern.of(f"?e: Event [{text}]", knowledge=known, mapping=mapping)
    rows = detect(table(), pattern, time="at", columns=["id"]).to_pylist()
    assert [row["e"]["id"] for row in rows] == expected


def test_columns_of_two_events() -> None:
    """That a column of the current event is there does not follow from a column of another one with its name."""
    known = Knowledge.read(HEAD, prefixes={"": SHOP})
    begun = Pattern.begin("a", knowledge=known, mapping=mapped({"price": "price"}))
    pattern = begun.next("b").where(semantic("price(?b, ?p) ∧ price(?a, 3)"))
    prices = pa.array([3, None, 3, 1])
    events = table().set_column(table().column_names.index("price"), "price", prices)
    found = detect(events, pattern, time="at", columns=["id"]).to_pylist()
    assert [(row["a"]["id"], row["b"]["id"]) for row in found] == [(2, 3)]


def test_names_that_differ_have_no_sql() -> None:
    """The message says why."""
    known = Knowledge.read(HEAD + ":ann owl:differentFrom :bob .", prefixes={"": SHOP})
    mapping = mapped({"by": individual("by"), "via": individual("via")})
    text = "by(?a, ?x) ∧ via(?a, ?y) ∧ differentFrom(?x, ?y)"
    pattern = Pattern.begin("a", knowledge=known, mapping=mapping).where(semantic(text))
    with pytest.raises(PatternError, match=r"differentFrom\(\?x, \?y\) compares names of events"):
        detect(table(), pattern, time="at")


def test_too_many_ways() -> None:
    """A property with many columns, asked often, would be very long SQL."""
    known = Knowledge.read(HEAD, prefixes={"": SHOP})
    related = [individual(name) for name in ("by", "via", "street", "city")]
    pattern = Pattern.begin("a", knowledge=known, mapping=mapped({"to": related}))
    text = " ∧ ".join(f"to(?a, ?x{number})" for number in range(4))
    with pytest.raises(PatternError, match="there are more than 100 ways in which it may be true"):
        detect(table(), pattern.where(semantic(text)), time="at")
