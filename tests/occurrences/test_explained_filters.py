"""The plan says how each semantic filter is answered: constant, lifted or growing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid import OccurrencePattern
from cepheid.detect import plan_of
from cepheid.knowledge.events.mapping import EventMapping, individual
from cepheid.knowledge.knowledge import Knowledge
from cepheid.plan.occurrences.explain import explain_occurrence_plan
from cepheid.requests.request_of import request_of
from occurrences.shop import at

SHOP = "http://shop.example/"
KNOWN = f"""
    @prefix : <{SHOP}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    :Event a owl:Class . :item a owl:ObjectProperty . :price a owl:DatatypeProperty . :limit a owl:DatatypeProperty .
    :dune a :Book ; :limit 20 . :alien a :Film ; :limit 10 .
"""
KEYS = [("time", "at"), ("sequence", "id")]


def explained(text: str, more: str = "", **properties: Any) -> str:
    known = Knowledge.read(KNOWN + more, prefixes={"": SHOP})
    given = {"item": individual("item"), "price": "price", **properties}
    mapping = EventMapping(f"{SHOP}event/{{id}}", type="kind", properties=given)
    pattern = OccurrencePattern.of(text, knowledge=known, mapping=mapping)
    events = pa.table(
        {
            "id": [1],
            "at": pa.array([at(0)], pa.timestamp("us", "UTC")),
            "kind": ["Event"],
            "item": ["dune"],
            "shelf": ["a"],
            "price": [3],
        }
    )
    return explain_occurrence_plan(plan_of(events, request_of(pattern, time="at", sequence="id")))


@pytest.mark.parametrize(
    ("filter_", "line"),
    [
        ("Book(dune)", "constant, no event matters; it holds"),
        ("Film(?x) ∧ limit(?x, 20)", "constant, no event matters; it never holds"),
        ("item(?a, ?i) ∧ Book(?i)", "lifted, a.`item` IN (':dune', '<http://shop.example/dune>', 'dune', 'http://shop.example/dune')"),
        (
            "item(?a, ?i) ∧ limit(?i, ?l) ∧ price(?a, ?p) ∧ greaterThan(?p, ?l)",
            ("lifted, ((a.`item` IN (':alien', '<http://shop.example/alien>', 'alien', 'http://shop.example/alien') "
            "AND a.`price` > 10) OR (a.`item` IN (':dune', '<http://shop.example/dune>', 'dune', "
            "'http://shop.example/dune') AND a.`price` > 20))"),
        ),
    ],
)  # fmt: skip
def test_ways(filter_: str, line: str) -> None:
    """Each filter has a line, with what is asked of columns."""
    found = explained(f"(?a: Event ; ?b: Event)[{filter_}]")
    assert "What events mean: lifted, SQL on their columns says it, as each says all that matters.\n" in found
    assert f"Filter {filter_}: {line}\n" in found


def test_names_of_two_events() -> None:
    """Names are compared by one column of each event, which SQL makes; otherwise conditions would do all of it."""
    found = explained("(?a: Event ; ?b: Event)[item(?a, ?i) ∧ item(?b, ?i)]")
    assert ": lifted, [the name in a.`item`] = [the name in b.`item`]\n" in found
    assert found.endswith("Columns for conditions and measures:\n  [the name in `item`]: STRING\n")


def test_growing() -> None:
    """The reason is given."""
    found = explained("?a: Event [Book(?x)]", ":item a owl:FunctionalProperty .")
    assert "What events mean: growing, asked of what each key's events say by then, because what the ontology" in found


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (1, "`item` IN (':book0', ':dune', '<http://shop.example/book0>', "),
        (100, "`item` IN (':book0', ':book1', ':book10', … "),
        (5000, "array_contains(array('book0', 'book1', 'book10', … 5,001 in all), [the name in `item`])"),
    ],
)
def test_long_lists(number: int, line: str) -> None:
    """Of a long list the first values are shown, and their number."""
    books = " ".join(f":book{number} a :Book ." for number in range(number))
    found = explained("?a: Event [item(?a, ?i) ∧ Book(?i)]", books)
    assert line in found
    assert (" in all)" in found) == (number > 1)
    assert all(len(line) < 500 for line in found.splitlines())
