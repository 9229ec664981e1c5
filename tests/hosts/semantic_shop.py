"""A shop whose events are individuals, with patterns of stages and intervals that ask what they mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from cepheid import IntervalPattern, Pattern, semantic
from cepheid.knowledge import EventMapping, Knowledge, individual

SHOP = "http://shop.example/"
PREFIXES = {"": SHOP, "item": f"{SHOP}item/", "user": f"{SHOP}user/"}
FACTS = """
    @prefix : <http://shop.example/> . @prefix item: <http://shop.example/item/> .
    @prefix user: <http://shop.example/user/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :LogIn rdfs:subClassOf :Event . :Request rdfs:subClassOf :Event . :Purchase rdfs:subClassOf :Event .
    :about a owl:ObjectProperty . :by a owl:ObjectProperty . :hasPrice a owl:DatatypeProperty .
    :Novel rdfs:subClassOf :Book . :Textbook rdfs:subClassOf :Book .
    :livesIn a owl:ObjectProperty . :suppliedBy a owl:ObjectProperty .
    item:dune a :Novel ; :suppliedBy :ace . item:logic a :Textbook ; :suppliedBy :acebooks . item:alien a :Film .
    :ace owl:sameAs :acebooks . user:ann :livesIn :us . user:bob :livesIn :at .
"""
KNOWLEDGE = Knowledge.read(FACTS, prefixes=PREFIXES)
MAPPING = EventMapping(
    f"{SHOP}event/{{id}}",
    type="kind",
    properties={"about": individual("item:{item}"), "by": individual("user:{user}"), "hasPrice": "price"},
)
BOOK = semantic("about(?buys, ?i) ∧ Book(?i)")
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "until": pa.timestamp("us", "UTC"),
        "user": pa.string(),
        "kind": pa.string(),
        "item": pa.string(),
        "price": pa.int64(),
    }
)
ROWS = [
    ("ann", "LogIn", None, None),
    ("bob", "LogIn", None, None),
    ("ann", "Purchase", "dune", 600),
    ("bob", "Purchase", "dune", 2000),
    ("ann", "Purchase", "alien", 900),
    ("ann", "Purchase", "logic", 500),
    ("ann", "Request", "dune", None),
    ("cyd", "LogIn", None, None),
]


def log() -> pa.Table:
    """The events, an hour apart; each takes ten minutes."""
    rows = [(i, START + timedelta(hours=i), START + timedelta(hours=i, minutes=10), *row) for i, row in enumerate(ROWS)]
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=SCHEMA.names).cast(SCHEMA)


def buyers(knowledge: Knowledge = KNOWLEDGE, mapping: EventMapping = MAPPING) -> Pattern:
    """Customers from the US who buy books for more than $1,000 within 3 days, in any number of purchases."""
    return (
        Pattern.begin("first", name="buyers", knowledge=knowledge, mapping=mapping)
        .subtype("LogIn")
        .where(semantic("by(?first, ?u) ∧ livesIn(?u, us)"))
        .followed_by("buys")
        .subtype("Purchase")
        .where(BOOK)
        .one_or_more()
        .followed_by("enough")
        .subtype("Event")
        .where("sum(buys.price) > 1000")
        .within("3 days")
    )


def suppliers(knowledge: Knowledge = KNOWLEDGE) -> Pattern:
    """Purchases of two items of one supplier, which may have two names."""
    same = "about(?one, ?i) ∧ about(?other, ?j) ∧ suppliedBy(?i, ?s) ∧ suppliedBy(?j, ?s)"
    return (
        Pattern.begin("one", name="suppliers", knowledge=knowledge, mapping=MAPPING)
        .subtype("Purchase")
        .followed_by_any("other")
        .subtype("Purchase")
        .where(semantic(same))
        .within("3 days")
    )


def requests(knowledge: Knowledge = KNOWLEDGE) -> IntervalPattern:
    """A request after purchases of the same supplier, without a film between them."""
    return (
        IntervalPattern.pal(bought="Purchase", asked="Request")
        .with_knowledge(knowledge, MAPPING)
        .relate("bought", "before", "asked")
        .where(semantic("about(?bought, ?i) ∧ suppliedBy(?i, ?s) ∧ about(?asked, ?j) ∧ suppliedBy(?j, ?s)"))
        .where("bought.user = asked.user")
        .without(
            "film", "Event", ordered="end(bought) < start(film), end(film) < start(asked)",
            where=semantic("about(?film, ?i) ∧ Film(?i)"),
        )
        .within("3 days")
        .named("requests")
    )  # fmt: skip


BUYERS = [{"first": 0, "buys": [2, 5], "enough": 6}]
SUPPLIERS = [{"one": 2, "other": 5}]
REQUESTS = [{"bought": 5, "asked": 6}]


def numbers(found: pa.Table) -> list[dict[str, object]]:
    """The numbers of the events of each match, by stage or variable."""
    rows = [{name: value for name, value in row.items() if name != "event"} for row in found.to_pylist()]
    return [
        {
            name: [one["id"] for one in value] if isinstance(value, list) else value["id"]
            for name, value in row.items()
            if isinstance(value, list | dict)
        }
        for row in rows
    ]
