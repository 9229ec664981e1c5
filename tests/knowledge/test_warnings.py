"""Warnings and errors of semantic filters: where they are, what may be meant, and what never holds."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cepheid import (
    CepheidWarning,
    IntervalPattern,
    KnowledgeError,
    OccurrencePattern,
    Pattern,
    PatternError,
    detect,
    semantic,
)
from cepheid.knowledge import EventMapping, Knowledge, constant, individual
from cepheid.knowledge.events.mapping import Properties

SHOP = "http://shop.example/"
KNOWLEDGE = Knowledge.read(
    """
@prefix : <http://shop.example/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Request a owl:Class . :Book a owl:Class . :about a owl:ObjectProperty . :hasPrice a owl:DatatypeProperty .
:LogIn a owl:Class ; owl:disjointWith :Request . :Buy rdfs:subClassOf :Request . :hasPrice rdfs:domain :Request .
""",
    prefixes={"": SHOP, "shop": SHOP},
)
LOG = pa.table(
    {
        "id": [1],
        "at": [datetime(2026, 1, 1, tzinfo=UTC)],
        "kind": ["Request"],
        "item": ["dune"],
        "price": [5],
        "facts": [":e1 a :Request ."],
    }
)
MAPPED = EventMapping(
    "http://e.example/{id}", type="kind", properties={"about": individual("{item}"), "hasPrice": "price"}
)
TURTLE = EventMapping("http://e.example/{id}", turtle="facts")


def found(text: str, mapping: EventMapping = MAPPED) -> pa.Table:
    pattern = OccurrencePattern.of(text, knowledge=KNOWLEDGE, mapping=mapping)
    return detect(LOG, pattern, time="at")


PREFIXES = ":, owl:, rdf:, rdfs:, shop:, swrlb:, xsd:"
UNKNOWN = [
    (
        "about(?r, ?i) ∧ Boook(?i)",
        "the knowledge has no class or property <http://shop.example/Boook> (condition, column 17)",
        "  about(?r, ?i) ∧ Boook(?i)",
        "                  ^^^^^",
        "Names like it: http://shop.example/Book",
    ),
    (
        "hasPrice(?r, ?p) ∧\n  graterThan(?p, 3)",
        "the knowledge has no class or property <http://shop.example/graterThan> (condition, line 2, column 3)",
        "    graterThan(?p, 3)",
        "    ^^^^^^^^^^",
        "Built-ins with a name like it: greaterThan, greaterThanOrEqual",
    ),
    (
        "shp:about(?r, ?i)",
        f"the prefix 'shp:' is unknown. Did you mean 'shop:'? There are {PREFIXES} (condition, column 1)",
        "  shp:about(?r, ?i)",
        "  ^^^^^^^^^",
    ),
    (
        "about(?r, ?i) ∧ swrlb:equals(?i, 3)",
        "there is no built-in 'equals' here. Built-ins with a name like it: equal (condition, column 17)",
        "  about(?r, ?i) ∧ swrlb:equals(?i, 3)",
        "                  ^^^^^^^^^^^^",
    ),
    (
        'about("dune", ?i)',
        "an individual must stand here, and this is a literal (condition, column 7)",
        '  about("dune", ?i)',
        "        ^^^^^^",
    ),
    (
        "about(?i)",
        "<http://shop.example/about> is a property, which takes two arguments, and not a class (condition, column 1)",
        "  about(?i)",
        "  ^^^^^",
    ),
    (
        "about(?r, ?i) ∧ Book(?r, ?i)",
        "<http://shop.example/Book> is a class, which takes one argument, and not a property (condition, column 17)",
        "  about(?r, ?i) ∧ Book(?r, ?i)",
        "                  ^^^^",
    ),
    (
        "about(?r, ?i) ∧ Book(3)",
        "an individual must stand here, and this is a literal (condition, column 22)",
        "  about(?r, ?i) ∧ Book(3)",
        "                       ^",
    ),
    (
        'sameAs(?r, "2026-01-01"^^xsd:date)',
        "an individual must stand here, and this is a literal (condition, column 12)",
        '  sameAs(?r, "2026-01-01"^^xsd:date)',
        "             ^^^^^^^^^^^^",
    ),
]


@pytest.mark.parametrize(("text", *"abcd"), [(*one, *[None] * (5 - len(one))) for one in UNKNOWN])
def test_places(text: str, a: str, b: str, c: str, d: str | None) -> None:
    """Each message has the line and column, with a caret below, and names like the unknown one."""
    with pytest.raises(PatternError) as error:
        found(f"?r: Request [ {text} ]")
    assert str(error.value).splitlines() == [line for line in (a, b, c, d) if line is not None]


def test_places_without_a_pattern() -> None:
    """Questions without events have the same messages."""
    with pytest.raises(KnowledgeError) as error:
        KNOWLEDGE.holds("Book(?b) ∧\n Book(3)")
    assert str(error.value).splitlines() == [
        "an individual must stand here, and this is a literal (filter, line 2, column 7)",
        "   Book(3)",
        "        ^",
    ]


def test_unknown_names_without_a_pattern() -> None:
    """Questions without events warn of names that the knowledge does not have."""
    with pytest.warns(CepheidWarning) as caught:
        assert not KNOWLEDGE.holds("Boook(?b)")
    assert str(caught[0].message).splitlines() == [
        "the knowledge has no class or property <http://shop.example/Boook> (filter, column 1)",
        "  Boook(?b)",
        "  ^^^^^",
        "Names like it: http://shop.example/Book",
    ]
    with pytest.warns(CepheidWarning, match="is a property, which takes two arguments"):
        assert KNOWLEDGE.solutions("about(?b)", ["b"]) == []


def test_events_with_turtle_may_bring_other_classes() -> None:
    """Unknown classes and properties are warned of, once; prefixes and built-ins remain errors."""
    text = "?r: Request [ Boook(?r) ∧ Boook(?i) ∧ writtenBy(?r, ?i) ]"
    with pytest.warns(CepheidWarning) as caught:
        found(text, TURTLE)
    messages = [str(one.message).splitlines()[0] for one in caught if "no class" in str(one.message)]
    assert messages == [
        "the knowledge has no class or property <http://shop.example/Boook> (condition, column 1)",
        "the knowledge has no class or property <http://shop.example/Boook> (condition, column 13)",
        "the knowledge has no class or property <http://shop.example/writtenBy> (condition, column 25)",
    ]
    assert str(caught[0].message).endswith(
        "Names like it: http://shop.example/Book\nEvents may bring it with their facts."
    )
    with pytest.warns(CepheidWarning, match=r"no class or property <http://shop.example/Rquest>"):
        found("Rquest", TURTLE)
    for wrong in ("shp:Book(?r)", "swrlb:equals(?r, 3)", "Book(3)"):
        with pytest.raises(PatternError):
            found(f"?r: Request [ {wrong} ]", TURTLE)


NEVER = [
    ("hasPrice(?r, ?p) ∧ greaterThan(?p, ?q)", "?q"),
    ("greaterThan(?p, 3)", "?p"),
    ("Book(?b) ∧ add(?x, ?y, 1) ∧ add(?y, ?x, 1)", "?x and ?y"),
    ("Book(?b) ∧ add(3, ?y, 1)", "?y"),
]


@pytest.mark.parametrize(("text", "names"), NEVER)
def test_variables_that_nothing_can_bind(text: str, names: str) -> None:
    """A filter that never holds is warned of, in patterns and in questions."""
    message = (
        f"the filter {text!r} never holds: nothing binds {names}, as only built-ins have it. Use it in another atom"
    )
    for ask in (lambda: found(f"?r: Request [ {text} ]"), lambda: KNOWLEDGE.holds(text)):
        with pytest.warns(CepheidWarning) as caught:
            ask()
        assert [str(one.message) for one in caught] == [message]
    assert caught[0].filename == __file__


PLAIN = Knowledge.read(
    """
@prefix : <http://shop.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:Request a owl:Class . :about a owl:ObjectProperty . :hasPrice a owl:DatatypeProperty .
""",
    prefixes={"": SHOP},
)


def test_patterns_of_stages_and_intervals() -> None:
    """Other kinds of patterns are warned of, too."""
    condition = semantic("hasPrice(?r, ?p) ∧ lessThan(?p, ?q)")
    stages = Pattern.begin("r", knowledge=PLAIN, mapping=MAPPED).where(condition)
    intervals = IntervalPattern.pal(r="Request").with_knowledge(PLAIN, MAPPED).where(condition)
    log = LOG.append_column("end", LOG["at"])
    for pattern, time in ((stages, "at"), (intervals, ("at", "end"))):
        with pytest.warns(CepheidWarning, match=r"never holds: nothing binds \?q"):
            assert not len(detect(log, pattern, time=time))


@pytest.mark.parametrize(
    "text",
    [
        "hasPrice(?r, ?p) ∧ add(?x, ?p, 1) ∧ add(?y, ?x, 1) ∧ lessThan(?y, 9)",
        "sameAs(?r, ?x)",
        "add(?x, 1, 2) ∧ Book(?b)",
    ],
)
def test_variables_that_something_binds(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(f"?r: Request [ {text} ]")
        KNOWLEDGE.holds(text)
        KNOWLEDGE.holds("greaterThan(?p, ?q)", {"p": "http://x/p", "q": "http://x/q"})


EXCLUSIVE: list[tuple[EventMapping, str | None]] = [
    (
        EventMapping("http://e.example/{id}", type="kind", classes={"in": "LogIn"}, properties={"hasPrice": "price"}),
        "an event of class <http://shop.example/LogIn> that has <http://shop.example/hasPrice>",
    ),
    (
        EventMapping("http://e.example/{id}", properties={"a": [constant("LogIn"), constant("Buy")]}),
        "every event",
    ),
    (
        EventMapping("http://e.example/{id}", type="kind", properties={"a": constant("LogIn")}),
        "every event of class <http://shop.example/Request>",
    ),
    (MAPPED, None),
]


@pytest.mark.parametrize(("mapping", "what"), EXCLUSIVE)
def test_classes_that_exclude_each_other(mapping: EventMapping, what: str | None) -> None:
    """A mapping that gives an event two classes that exclude each other is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found("Request", mapping)
    given = [str(one.message) for one in caught]
    classes = "<http://shop.example/LogIn> and <http://shop.example/Request>"
    expected = f"{what} is of classes that exclude each other: {classes}. Correct the mapping or the knowledge"
    assert given == ([] if what is None else [expected])


def test_sql_without_its_mark() -> None:
    """Who writes SQL in the brackets of filters is told how it is marked."""
    with pytest.raises(PatternError) as raised:
        found("?r: Request [r.price > 3]")
    (problem,) = raised.value.problems
    assert problem.hint == "In a pattern with knowledge brackets have semantic filters; SQL is written [sql: …]."
    with pytest.raises(PatternError) as raised:
        found("?r: Request [x:about(?r, ?i)]")
    assert raised.value.problems[0].hint is None


def test_unknown_leaf() -> None:
    """An unknown class of a leaf has its place."""
    with pytest.raises(PatternError, match=r"has no class or property <http://shop\.example/Reqest> \(type 'Reqest'\)"):
        found("Reqest")


def test_mistaken_names_of_mappings() -> None:
    """A mapping that takes a class for a property is refused, and the other way round."""
    mapping = EventMapping("http://e.example/{id}", properties={"Book": "price", "a": constant("about")})
    with pytest.raises(PatternError) as raised:
        found("Request", mapping)
    first, second = map(str, raised.value.problems)
    assert first == f"<{SHOP}Book> is a class, which takes one argument, and not a property (mapping, 'Book')"
    assert second.startswith(
        f"<{SHOP}about> is a property, which takes two arguments, and not a class (mapping, 'about'"
    )


RELATES = f"mapping, 'about': <{SHOP}about> relates individuals (owl:ObjectProperty), and a column has literals"
HAS_LITERALS = f"mapping, 'hasPrice': <{SHOP}hasPrice> has literals (owl:DatatypeProperty), and is given an individual"


def test_mistaken_values_of_mappings() -> None:
    """A column of literals for a property of individuals is warned of, and the other way round."""
    properties: Properties = {"about": "item", "hasPrice": individual("{price}")}
    mapping = EventMapping("http://e.example/{id}", properties=properties)
    known = {"knowledge": KNOWLEDGE, "mapping": mapping}
    patterns = (
        (OccurrencePattern.of("Request", **known), {"time": "at"}),
        (Pattern.begin("a", **known), {"time": "at"}),
        (IntervalPattern.pal(a="Request").with_knowledge(**known), {"time": ("at", "at")}),
    )
    for pattern, options in patterns:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            detect(LOG, pattern, **options)
        first, second = (text for one in caught if (text := str(one.message)).startswith("mapping"))
        assert first == f"{RELATES}. Write individual('item')"
        assert second == f"{HAS_LITERALS}. Write the name of a column alone"


def test_errors_in_facts_of_events() -> None:
    """The place is that in the event's own text, before which the prefixes are put."""
    for facts, place in (
        (":e1 a", "column 6"),
        ("fo:b :p :q .", "line 1 between columns 1 and [45]:"),
        (":e1 a :Request .\nx", "line 2"),
    ):
        log = LOG.set_column(5, "facts", pa.array([facts]))
        with pytest.raises(KnowledgeError, match=rf"the facts of the event http://e.example/1: .*{place}"):
            detect(log, OccurrencePattern.of("Request", knowledge=KNOWLEDGE, mapping=TURTLE), time="at")
