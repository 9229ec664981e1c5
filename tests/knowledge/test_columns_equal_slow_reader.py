"""What is read column by column is what the slow reader says of each event."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.knowledge import slow_reader
from tests.knowledge.slow_reader import Nameless, Said
from tests.searching import share

from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Value, individual, node
from cepheid.knowledge.terms import Iri, Triple, term_of, text_of

PREFIXES = {"": "http://shop.example/", "item": "http://shop.example/item/"}
TYPES = {
    "id": pa.int64(),
    "number": pa.int32(),
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "price": pa.decimal128(12, 3),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("ms"),
    "day": pa.date32(),
    "ok": pa.bool_(),
    "numbers": pa.list_(pa.int64()),
}
words = st.sampled_from(["a", "b", "item:c", "Ü", "urn:x", ""])
names = st.sampled_from(["a", "b", "item:c", "urn:x", "<mailto:a@b.example>"])


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "number": st.integers(-3, 3),
        "text": names,
        "texts": st.lists(names | st.none(), max_size=3),
        "price": st.decimals("-10", "10", places=3),
        "at": st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)).map(lambda one: one.replace(tzinfo=UTC)),  # noqa: DTZ001
        "local": st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)).map(lambda one: one.replace(microsecond=0)),  # noqa: DTZ001
        "day": st.dates(date(1990, 1, 1), date(2040, 1, 1)),
        "ok": st.booleans(),
        "numbers": st.lists(st.integers(0, 5) | st.none(), max_size=3),
    }
    return {"id": draw(st.integers(0, 3))} | {name: draw(one | st.none()) for name, one in values.items()}


templates = st.sampled_from(["text", "texts", "item:{text}", "n{numbers}", "{number}/{text}", "<urn:{day}-{ok}>"])
plain: st.SearchStrategy[Value] = (
    st.sampled_from([*TYPES]) | st.builds(Individual, templates) | st.builds(Constant, st.sampled_from(["a", "item:c"]))
)
properties = st.sampled_from(["p", "q", "item:r"])
nodes = st.recursive(
    st.dictionaries(properties, plain, min_size=1, max_size=3).map(node),
    lambda inner: st.dictionaries(properties, plain | inner, min_size=1, max_size=3).map(node),
    max_leaves=2,
)
mappings = st.builds(
    EventMapping,
    st.sampled_from(["e{id}", "<urn:{id}/{id}>"]),
    type=st.sampled_from([None, "text", "texts"]),
    classes=st.none(),
    properties=st.dictionaries(properties, plain | nodes | st.lists(plain | nodes, max_size=2), max_size=3),
)


def described(name: str, facts: list[Triple]) -> Said:
    """What is said of the event, with what is said of its nodes in place of their names."""

    def of(subject: Iri) -> Said:
        return frozenset(
            (predicate, Nameless(of(object_), place(object_)) if is_node(object_) else object_)  # type: ignore[arg-type]
            for own, predicate, object_ in facts
            if own == subject
        )  # type: ignore[return-value]

    return of(Iri(name))


def is_node(term: object) -> bool:
    return isinstance(term, Iri) and term.is_made_up


def place(term: object) -> str:
    assert isinstance(term, Iri)
    return term.value.partition(".c")[2]


def nodes_of(said: Said, name: str) -> set[tuple[str, Nameless]]:
    """The nodes of an event, with its name: two events share those that are equal."""
    own = {one for _, one in said if isinstance(one, Nameless)}
    return {(name, one) for one in own}.union(*(nodes_of(one.said, name) for one in own))


@share(100)
@given(mappings, st.lists(rows(), max_size=5))
def test_equal(mapping: EventMapping, given_: list[dict[str, Any]]) -> None:
    """The names and the facts are the same, and so are the nodes that events share: those of one name that say the same
    share one.
    """
    columns = {name: pa.array([row[name] for row in given_], type_) for name, type_ in TYPES.items()}
    read = EventFacts(mapping, PREFIXES).read({name: columns[name] for name in mapping.columns}, lambda _: {})
    expected = [slow_reader.said(mapping, row, PREFIXES) for row in given_]
    assert [(name.value, described(name.value, facts)) for name, facts in read] == expected
    for (one, other), (slow, slower) in zip(combinations(read, 2), combinations(expected, 2), strict=True):
        shared = [{part for fact in facts for part in fact if is_node(part)} for _, facts in (one, other)]
        assert len(shared[0] & shared[1]) == len(nodes_of(slow[1], slow[0]) & nodes_of(slower[1], slower[0]))


def test_several_columns_in_a_name() -> None:
    """A template of several columns takes every type, and gives no name where one is NULL."""
    price, text = pa.array([Decimal("1.50"), None, Decimal(2)]), pa.array(["a b", "c", None])
    mapping = EventMapping("e{id}", properties={"p": individual("item:{price}/{text}")})
    read = EventFacts(mapping, PREFIXES).read({"id": pa.array([1, 2, 3]), "price": price, "text": text}, lambda _: {})
    assert [[str(fact[2]) for fact in facts] for _, facts in read] == [["<http://shop.example/item/1.5/a%20b>"], [], []]


def test_texts_of_terms() -> None:
    """A term is found by its text, and the text says the term."""
    xsd = "http://www.w3.org/2001/XMLSchema#"
    texts = ["http://x.example/y", "_:a.b", f'"{xsd}string"a "b" c', f'"{xsd}string"', '"http://x@y/z en-GB"a']
    assert [text_of(term_of(text)) for text in texts] == texts
