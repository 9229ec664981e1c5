"""The event ontology for services, and the mapping of a service log to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from examples.shop_log import shop_log

from cepheid import OccurrencePattern, detect
from cepheid.knowledge.events.mapping import individual
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.services import CLASSES, EVENT, SERVICE_PREFIXES, SERVICES, service_mapping
from cepheid.knowledge.terms import Iri

SHOP = """
@prefix shop: <http://shop.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
shop:Novel a shop:Printed . shop:Drama a shop:Disc . shop:VideoGame a shop:Disc .
shop:Printed rdfs:subClassOf shop:Media . shop:Disc rdfs:subClassOf shop:Media .
"""
PREFIXES = {**SERVICE_PREFIXES, "": EVENT, "shop": "http://shop.example/"}
KNOWLEDGE = Knowledge.read([SERVICES, SHOP], prefixes=PREFIXES)
MAPPING = service_mapping(
    "http://shop.example/call/{call}/{type}",
    time="at",
    process=individual("shop:{process}"),
    inputs={"shop:category": individual("shop:{category}"), "shop:price": "price"},
    outputs={"shop:ok": "ok"},
)


def found(expression: str, log: pa.Table, **arguments: Any) -> list[list[int]]:
    """The calls of the events of each occurrence."""
    pattern = OccurrencePattern.of(expression, knowledge=KNOWLEDGE, mapping=MAPPING).policy("unrestricted")
    rows = detect(log, pattern, key="user", time="at", columns=["call"], **arguments).to_pylist()
    return sorted([one["call"] for one in row["events"]] for row in rows)


def test_the_ontology() -> None:
    """It is consistent and within OWL 2 RL, and has the classes of the mapping."""
    known = Knowledge.read(SERVICES)
    assert known.ignored == ()
    events = Knowledge.read(SERVICES, prefixes=PREFIXES)
    kinds = {Iri(EVENT + one) for one in CLASSES}
    others = {Iri(EVENT + "ParameterValueBinding")}
    assert {one for one in known.classes if one.value.startswith(EVENT)} == kinds | others
    question = "rdfs:subClassOf(?c, Event)"
    assert {one for (one,) in events.solutions(question, ["c"])} >= {one.value for one in kinds}


@pytest.mark.parametrize("class_", ["Event", "ProcessCallEvent", "AtomicProcessEndEvent"])
def test_classes_of_the_log(class_: str) -> None:
    """The log's types are classes, with those above them."""
    log = shop_log(60)
    ends = [type_ == "AtomicProcessEndEvent" for type_ in log["type"].to_pylist()]
    assert len(found(class_, log)) == (sum(ends) if class_ == "AtomicProcessEndEvent" else len(ends))


def test_inputs_of_calls() -> None:
    """An input is an individual of its class, and of those above."""
    log = shop_log(600)
    rows = log.to_pylist()
    for class_, categories in (
        ("Printed", {"Novel"}),
        ("Disc", {"Drama", "VideoGame"}),
        ("Media", {"Novel", "Drama", "VideoGame"}),
    ):
        text = f"""?r: AtomicProcessStartEvent
            [process(?r, shop:LookupItem) ^ input(?r, ?b) ^ toParameter(?b, shop:category) ^ objectValue(?b, ?c)
             ^ shop:{class_}(?c)]
        """
        asked = [
            [row["call"]]
            for row in rows
            if row["type"] == "AtomicProcessStartEvent"
            and row["process"] == "LookupItem"
            and row["category"] in categories
        ]
        assert found(text, log) == sorted(asked) != []


def test_outputs_of_calls() -> None:
    """Logins that failed; an event without a value of an output has no binding for it."""
    log = shop_log(2000)
    failed = """?e: AtomicProcessEndEvent
        [process(?e, shop:Login) ^ output(?e, ?b) ^ toParameter(?b, shop:ok) ^ dataValue(?b, false)]"""
    asked = [[row["call"]] for row in log.to_pylist() if row["process"] == "Login" and row["ok"] is False]
    assert found(failed, log) == sorted(asked) != []


def test_messages_and_times() -> None:
    """The message of a failure and the time are properties, too."""
    at = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(2)]
    log = pa.table({"id": [1, 2], "at": at, "kind": ["ExceptionEvent"] * 2, "why": ["no stock", None]})
    mapping = service_mapping("http://shop.example/event/{id}", type="kind", time="at", message="why")
    text = """?e: ExceptionEvent
        [textMessage(?e, "no stock") ^ timestamp(?e, "2026-01-01T00:00:00Z"^^xsd:dateTime)]"""
    pattern = OccurrencePattern.of(text, knowledge=KNOWLEDGE, mapping=mapping)
    assert [row["e"]["id"] for row in detect(log, pattern, time="at").to_pylist()] == [1]
