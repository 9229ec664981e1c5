"""How columns become the names and the facts of events."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import EventError, PatternError
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.events.literals import literals
from cepheid.knowledge.events.mapping import EventMapping, Individual, Properties, constant, individual, node
from cepheid.knowledge.events.names import Template, encoded, may_be_alike
from cepheid.knowledge.filters.values import Duration, Moment, value_of
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri, Triple

SHOP = "http://shop.example/"
PREFIXES = {"": SHOP, "item": f"{SHOP}item/", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}
EVENT = f"{SHOP}event/{{id}}"


def wrong(value: object) -> Any:
    """A value of another type than the argument has."""
    return value


def said(mapping: EventMapping, **columns: Any) -> list[tuple[str, list[Triple]]]:
    """The name and the facts of each event."""
    arrays = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    read = EventFacts(mapping, PREFIXES).read(
        arrays, lambda row: {name: one[row].as_py() for name, one in arrays.items()}
    )
    return [(name.value, facts) for name, facts in read]


def facts(properties: Properties, **columns: Any) -> set[Triple]:
    """What one event says, whose id is 1."""
    ((_, found),) = said(EventMapping(EVENT, properties=properties), id=[1], **columns)
    return set(found)


def stated(turtle: str) -> set[Triple]:
    """The facts of a document about the event :event/1, there written as <e>."""
    head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())
    return set(triples(head + turtle.replace("<e>", f"<{SHOP}event/1>"), "turtle"))


@pytest.mark.parametrize(
    ("template", "column", "name"),
    [
        (EVENT, pa.array([17]), f"{SHOP}event/17"),
        (EVENT, pa.array(["a b/c?ü成~-._%"]), f"{SHOP}event/a%20b%2Fc%3Fü成~-._%25"),
        (EVENT, pa.array([Decimal("1.50")]), f"{SHOP}event/1.5"),
        (EVENT, pa.array([date(2024, 2, 29)]), f"{SHOP}event/2024-02-29"),
        (EVENT, pa.array([""]), f"{SHOP}event/"),
        ("item:{id}", pa.array(["book 1"]), f"{SHOP}item/book%201"),
        ("{id}", pa.array(["a:b"]), f"{SHOP}a%3Ab"),
        ("{id}-{id}", pa.array([2]), f"{SHOP}2-2"),
        ("<mailto:{id}@shop.example>", pa.array(["ann"]), "mailto:ann@shop.example"),
        ("id", pa.array(["http://other.example/x#y"]), "http://other.example/x#y"),
        ("id", pa.array(["item:book"]), f"{SHOP}item/book"),
        ("id", pa.array(["book"]), f"{SHOP}book"),
        ("id", pa.array(["<mailto:ann@shop.example>"]), "mailto:ann@shop.example"),
        ("id", pa.array(["urn:uuid:1"]), "urn:uuid:1"),
        ("id", pa.array(["http://x.example/"], pa.large_string()), "http://x.example/"),
    ],
)
def test_names(template: str, column: pa.Array, name: str) -> None:
    """A template percent-encodes values as R2RML does; a column holds names as they are written elsewhere."""
    assert said(EventMapping(template), id=column) == [(name, [])]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("call/{call}/{type}", "{process}", False),
        ("call/{call}/{type}", "call/{id}", False),
        ("call/{call}", "call/{id}", True),
        ("{call}", "{a}-{b}", True),
        ("call/{call}/x", "call/{a}/{b}", True),
        ("call/{call}/x", "call/{a}/{b}y", False),
        ("call/{call}", "call/a b", False),
        ("call/{call}", "call/a%20b", True),
        ("call/{call}", "user/a", False),
    ],
)
def test_templates_with_common_names(one: str, other: str, *, alike: bool) -> None:
    """A column has no characters that divide names, so templates with other divisions have no name in common."""
    parts = [Template(text).whole(PREFIXES) if "{" in text else [(SHOP + text, False)] for text in (one, other)]
    assert may_be_alike(*parts) is may_be_alike(*reversed(parts)) is alike


templates = st.lists(st.sampled_from(["a", "b", "ab", "/", "{x}", "{y}"]), min_size=1, max_size=5).map("".join)
values = st.text("ab/ ", max_size=3)


@given(templates, templates, st.tuples(values, values), st.tuples(values, values))
def test_equal_names_are_alike(one: str, other: str, first: tuple[str, str], second: tuple[str, str]) -> None:
    """Templates that make the same name of some values may be alike."""
    parts = [Template(text).whole(PREFIXES) for text in (one, other)]
    names = [
        "".join(encoded(dict(zip("xy", given, strict=True))[text]) if is_column else text for text, is_column in some)
        for some, given in zip(parts, (first, second), strict=True)
    ]
    assert names[0] != names[1] or may_be_alike(*parts)


def test_name_of_several_columns() -> None:
    """A template may read several columns."""
    mapping = EventMapping("item:{shop}/{number}")
    assert said(mapping, shop=["a/b", "c"], number=[1, 2]) == [(f"{SHOP}item/a%2Fb/1", []), (f"{SHOP}item/c/2", [])]
    assert mapping.columns == ("shop", "number")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([12], pa.int64()), "12"),
        (pa.array([-3], pa.int8()), "-3"),
        (pa.array([Decimal("12.50")]), "12.5"),
        (pa.array([Decimal("12.00")]), "12.0"),
        (pa.array([Decimal("0.0000001")]), "0.0000001"),
        (pa.array([Decimal(100)]), "100.0"),
        (pa.array([1.5]), "1.5E0"),
        (pa.array([-1234.5]), "-1.2345E3"),
        (pa.array([1e-7]), "1.0E-7"),
        (pa.array([0.0]), "0.0E0"),
        (pa.array([100.0], pa.float32()), "1.0E2"),
        (pa.array([1e300]), "1.0E300"),
        (pa.array([float("inf")]), '"INF"^^xsd:double'),
        (pa.array([float("-inf")]), '"-INF"^^xsd:double'),
        (pa.array([float("nan")]), '"NaN"^^xsd:double'),
        (pa.array([True]), "true"),
        (pa.array(['a"b\n']), '"a\\"b\\n"'),
        (pa.array([""]), '""'),
        (pa.array([date(2024, 2, 29)]), '"2024-02-29"^^xsd:date'),
        (pa.array([1704164645000000], pa.timestamp("us")), '"2024-01-02T03:04:05"^^xsd:dateTime'),
        (
            pa.array([datetime(2024, 1, 2, 3, 4, 5, 120000, tzinfo=UTC)]).cast(pa.timestamp("us", "Europe/Berlin")),
            '"2024-01-02T03:04:05.12Z"^^xsd:dateTime',
        ),
        (pa.array([timedelta(days=1, hours=2, minutes=3, seconds=4.5)]), '"P1DT2H3M4.5S"^^xsd:dayTimeDuration'),
        (pa.array([timedelta(0)]), '"PT0S"^^xsd:dayTimeDuration'),
        (pa.array([-timedelta(minutes=90)]), '"-PT1H30M"^^xsd:dayTimeDuration'),
        (pa.array([timedelta(microseconds=7)]), '"PT0.000007S"^^xsd:dayTimeDuration'),
    ],
)
def test_literals(column: pa.Array, expected: str) -> None:
    """Each type of a column has its type of literals."""
    xsd = "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
    assert facts({"value": "v"}, v=column) == stated(f"{xsd}<e> :value {expected} .")


@given(st.lists(st.floats(allow_nan=False) | st.none()))
def test_doubles(values: list[float | None]) -> None:
    """Doubles are exact."""
    found = literals(pa.array(values, pa.float64()))
    assert [None if one is None else value_of(one) for one in found] == values


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-(10**9), max_value=10**9)))
def test_decimals(values: list[Decimal]) -> None:
    """Decimals are exact; equal ones are one literal."""
    found = literals(pa.array(values, pa.decimal128(38, 7)))
    assert [value_of(one) for one in found if one is not None] == values
    assert found == literals(pa.array(values, pa.decimal128(38, 9)))


@given(st.lists(st.timedeltas(timedelta(days=-10000), timedelta(days=10000))))
def test_durations(values: list[timedelta]) -> None:
    """Durations are exact to the microsecond."""
    found = [value_of(one) for one in literals(pa.array(values, pa.duration("us"))) if one is not None]
    seconds = [Decimal(one // timedelta(microseconds=1)) / 1_000_000 for one in values]
    assert found == [Duration("dayTimeDuration", one) for one in seconds]


@given(st.lists(st.datetimes()), st.sampled_from([None, "UTC", "Asia/Tokyo"]))
def test_times(values: list[datetime], zone: str | None) -> None:
    """Times are exact; those with a zone are the same moments."""
    found = literals(
        pa.array(values, pa.timestamp("us")).cast(pa.timestamp("us", zone))
        if zone is None
        else pa.array([one.replace(tzinfo=UTC) for one in values], pa.timestamp("us", zone))
    )
    zoned = [one if zone is None else one.replace(tzinfo=UTC) for one in values]
    assert [value_of(one) for one in found if one is not None] == [Moment(one, "dateTime") for one in zoned]


def test_years_beyond_python() -> None:
    """Times that Python does not have are literals, too."""
    column = pa.array([253402300800000000], pa.timestamp("us", "UTC"))
    assert [str(one) for one in literals(column)] == [
        '"10000-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    ]


def test_class() -> None:
    """The type column names the class; with a table only the values in it have one."""
    by_name = said(EventMapping("id", type="kind"), id=["a", "b", "c"], kind=["LogIn", "item:Order", None])
    assert by_name == [
        (f"{SHOP}a", [(Iri(f"{SHOP}a"), Iri(PREFIXES["rdf"] + "type"), Iri(f"{SHOP}LogIn"))]),
        (f"{SHOP}b", [(Iri(f"{SHOP}b"), Iri(PREFIXES["rdf"] + "type"), Iri(f"{SHOP}item/Order"))]),
        (f"{SHOP}c", []),
    ]
    table = EventMapping("id", type="kind", classes={"log in": "LogIn", "order": "item:Order"})
    assert said(table, id=["a", "b", "c"], kind=["log in", "order", "ping"]) == [by_name[0], by_name[1], by_name[2]]


def test_properties() -> None:
    """Literals, individuals by template and by column, constants and several values of one property."""
    properties: Properties = {
        "price": "price",
        "forItem": individual("item:{item}"),
        "seller": individual("seller"),
        "a": [constant("Sale"), individual("kind")],
    }
    found = facts(properties, price=[Decimal("9.50")], item=["a b"], seller=["http://x.example/s"], kind=["Gift"])
    assert found == stated(
        "<e> :price 9.5 ; :forItem <http://shop.example/item/a%20b> ; a :Sale, :Gift ; :seller <http://x.example/s> ."
    )


def test_arrays() -> None:
    """An array gives one fact for each element that is not NULL; a template may read one."""
    properties: Properties = {"tag": "tags", "forItem": individual("item:{items}"), "seller": individual("sellers")}
    found = facts(properties, tags=[["a", None, "b"]], items=[[1, 2]], sellers=[["ann", "bob"]])
    assert found == stated('<e> :tag "a", "b" ; :forItem item:1, item:2 ; :seller :ann, :bob .')
    assert facts(properties, tags=pa.array([None], pa.list_(pa.string())), items=[[]], sellers=[[]]) == set()
    two = said(EventMapping("id", properties={"tag": "tags"}), id=["a", "b", "c"], tags=[["x"], None, ["y", "z"]])
    assert [len(found) for _, found in two] == [1, 0, 2]


def test_null() -> None:
    """NULL gives no fact: of a literal, an individual, a template, or a column without values."""
    properties: Properties = {
        "a": individual("kind"),
        "price": "price",
        "note": "note",
        "forItem": individual("item:{shop}/{item}"),
    }
    null = pa.array([None], pa.string())
    assert (
        facts(properties, kind=null, price=pa.array([None], pa.int64()), note=pa.nulls(1), shop=["s"], item=null)
        == set()
    )


BINDING: Properties = {
    "input": [
        node({"a": constant("Binding"), "toParameter": constant("item:item"), "dataValue": "item"}),
        node({"a": constant("Binding"), "toParameter": constant("item:count"), "dataValue": "count"}),
    ],
    "at": node({"place": node({"city": "city"})}),
}


def test_nodes() -> None:
    """Nodes are the event's own; one of which all columns are NULL is left out."""
    found = facts(BINDING, item=["book"], count=pa.array([None], pa.int64()), city=["Graz"])
    expected = stated(
        '<e> :input [ a :Binding ; :toParameter item:item ; :dataValue "book" ] ; :at [ :place [ :city "Graz" ] ] .'
    )
    assert by_shape(found) == by_shape(expected)
    assert facts(BINDING, item=pa.nulls(1), count=pa.nulls(1), city=pa.nulls(1)) == set()
    always = facts({"source": node({"a": constant("Log")})})
    assert by_shape(always) == by_shape(stated("<e> :source [ a :Log ] ."))


def by_shape(some: set[Triple]) -> list[str]:
    """The facts without the names of nodes that have none."""
    return sorted(
        " ".join("[]" if isinstance(part, Iri) and part.is_made_up else str(part) for part in fact) for fact in some
    )


def test_nodes_are_the_events_own() -> None:
    """Events have different nodes, also events of one name that say different things; the same event has the same."""
    mapping = EventMapping("id", properties=BINDING)

    def nodes(id_: str, item: str) -> set[str]:
        ((_, found),) = said(mapping, id=[id_], item=[item], count=[1], city=["Graz"])
        return {part.value for fact in found for part in fact if isinstance(part, Iri) and part.is_made_up}

    assert len(nodes("a", "book")) == 4
    assert nodes("a", "book") == nodes("a", "book")
    assert not nodes("a", "book") & nodes("b", "book")
    assert len(nodes("a", "book") - nodes("a", "film")) == 1
    ((_, found),) = said(EventMapping("id", properties={"x": [node({"v": "v"})] * 2}), id=["a"], v=[1])
    assert len({fact[2] for fact in found if fact[0] == Iri(f"{SHOP}a")}) == 2


def test_turtle_beside_columns() -> None:
    """Columns may say some of it, and Turtle the rest."""
    mapping = EventMapping(EVENT, properties={"price": "price"}, turtle="more")
    ((_, found),) = said(mapping, id=[1], price=[5], more=[":ann :knows :bob ."])
    assert set(found) == stated("<e> :price 5 . :ann :knows :bob .")


def test_no_name() -> None:
    """An event without a name is an error that says which event."""
    with pytest.raises(
        EventError, match=r"^an event needs a name to be an individual, and 'id' is NULL: {'id': None, 'x': 7}"
    ):
        said(EventMapping("id"), id=["a", None], x=[1, 7])
    with pytest.raises(
        EventError, match=r"and 'shop' is NULL: {'id': 2, 'shop': None}\. Leave such events out, or map"
    ):
        said(EventMapping("item:{id}/{shop}"), id=[1, 2], shop=["s", None])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Sci Fi",
            r"'kind' must hold names: 'Sci Fi' is no name: a name is an IRI, prefix:name, or a name in the prefix ''",
        ),
        ("", "'' is no name"),
        (
            "shpo:Book",
            r"the prefix 'shpo:' is unknown\. There are :, item:, rdf:, swrlb:, xsd: \(event {'id': 'b', 'kind'",
        ),
        ("_:b", "the prefix '_:' is unknown"),
        ("<_:b>", "'<_:b>' is no name"),
    ],
)
def test_values_that_are_no_names(text: str, message: str) -> None:
    """A value that must be a name and is none is an error that says of which event."""
    with pytest.raises(EventError, match=message):
        said(EventMapping("id", type="kind"), id=["a", "b"], kind=["Book", text])
    kinds = pa.array([["Book"], [text]])
    with pytest.raises(EventError, match=message):
        said(EventMapping("id", properties={"a": individual("kind")}), id=["a", "b"], kind=kinds)


def test_value() -> None:
    """Mappings are compared by value, can be keys, and can be pickled."""
    one, other = (EventMapping(EVENT, type="kind", classes={"x": "A", "y": "B"}, properties=BINDING) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    assert one != EventMapping(EVENT, type="kind", classes={"x": "A", "y": "C"}, properties=BINDING)
    assert one == EventMapping(EVENT, type="kind", classes={"y": "B", "x": "A"}, properties=BINDING)
    assert one.columns == ("id", "kind", "item", "count", "city")
    assert individual("x") == Individual("x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EventMapping(""), "mapping: name: text is expected, got ''"),
        (lambda: EventMapping(wrong(3)), "mapping: name: text is expected, got 3"),
        (
            lambda: EventMapping("http://x/{id"),
            r"mapping: name 'http://x/{id': column 10: a column is expected in braces, as",
        ),
        (lambda: EventMapping("http://x/{}"), "column 10: a column is expected in braces"),
        (lambda: EventMapping("a\\}"), "has no columns in braces"),
        (lambda: EventMapping("id", type="{kind}"), "mapping: type '{kind}' has no columns in braces"),
        (lambda: EventMapping("id", classes={"x": "A"}), "mapping: classes: they belong to the values of a column"),
        (lambda: EventMapping("id", type="k", classes={}), "classes by the values of 'k' are expected, got {}"),
        (
            lambda: EventMapping("id", type="k", classes=wrong({1: "A"})),
            "mapping: classes: texts are expected, got 1: 'A'",
        ),
        (
            lambda: EventMapping("id", properties=wrong({"x": 3})),
            r"mapping: x: a column, individual\(…\), constant\(…\) or node",
        ),
        (
            lambda: EventMapping("id", properties=wrong("x")),
            "mapping: properties: values by the names of properties are expected",
        ),
        (
            lambda: EventMapping("id", properties={"x": "item:{i}"}),
            r"names an individual: write individual\('item:{i}'\)",
        ),
        (
            lambda: EventMapping("id", properties={"a": "kind"}),
            r"mapping: a: classes are named: write individual\('kind'\)",
        ),
        (lambda: EventMapping("id", properties={"": "x"}), "mapping: the name of a property is expected, got ''"),
        (lambda: node({}), "mapping: a node has properties"),
        (lambda: constant("item:{x}"), "mapping: constant 'item:{x}' has no"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    """What cannot be a mapping is refused at once, with what is expected."""
    with pytest.raises(PatternError, match=message):
        make()
