"""Pattern files with knowledge and a mapping of events."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cepheid import (
    Matcher,
    OccurrencePattern,
    PatternError,
    SnapshotError,
    event,
    pattern_from_text,
    pattern_to_document,
    pattern_to_yaml,
    read_pattern,
)
from cepheid.knowledge.events.mapping import EventMapping, Properties, constant, individual, node
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.document.knowledge import mapping_document, mapping_of
from cepheid.lang.document.problems import schema_of
from cepheid.lang.fingerprint import pattern_fingerprint
from cepheid.lang.occurrences.document import SCHEMA
from cepheid.lang.semantic import semantic

SHOP = "http://shop.example/"
ONTOLOGY = """
@prefix : <http://shop.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Request a owl:Class . :Novel rdfs:subClassOf :Book . :about a owl:ObjectProperty . :hasPrice a owl:DatatypeProperty .
"""
BOOKS = """
@prefix : <http://shop.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:dune a :Novel . [] a owl:AllDifferent ; owl:members ( :dune :alien ) .
"""
FILE = """
name: novels
knowledge:
  files: [shop.ttl, data/books.ttl]
  prefixes: {"": "http://shop.example/"}
mapping:
  name: http://shop.example/event/{id}
  type: kind
  properties:
    about: {individual: "{item}"}
    hasPrice: price
types:
  Dear: "?r: Request [ hasPrice(?r, ?p) ^ greaterThan(?p, 10) ]"
occurrence: >
  ?r: Dear [ about(?r, ?i) ^ Book(?i) ][sql: r.price < 100]
  -[ about(?o, ?i) ^ sameAs(?i, dune) ] ?o: Request
"""
MAPPING = EventMapping(
    f"{SHOP}event/{{id}}", type="kind", properties={"about": individual("{item}"), "hasPrice": "price"}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "shop.ttl").write_text(ONTOLOGY)
    (tmp_path / "data" / "books.ttl").write_text(BOOKS)
    (tmp_path / "novels.yaml").write_text(FILE)
    return tmp_path


def test_read(folder: Path) -> None:
    """Files of knowledge are found beside the pattern file; conditions in brackets are semantic filters or SQL."""
    knowledge = Knowledge.read([folder / "shop.ttl", folder / "data" / "books.ttl"], prefixes={"": SHOP})
    request = event("Dear").named("r").where(semantic("about(?r, ?i) ^ Book(?i)")).where("r.price < 100")
    other = event("Request").named("o")
    expression = request.minus_if(other, semantic("about(?o, ?i) ^ sameAs(?i, dune)"))
    expected = (
        OccurrencePattern.of(expression, knowledge=knowledge, mapping=MAPPING)
        .named("novels")
        .restrict("Dear", "Request", semantic("hasPrice(?r, ?p) ^ greaterThan(?p, 10)"), variable="r")
    )
    assert read_pattern(folder / "novels.yaml") == expected


def test_written_documents_are_complete(folder: Path) -> None:
    """What is written holds the facts, and reads as the same pattern without any file."""
    pattern = read_pattern(folder / "novels.yaml")
    document = pattern_to_document(pattern)
    assert [*document] == ["name", "knowledge", "mapping", "types", "occurrence"]
    Draft202012Validator(schema_of(SCHEMA)).validate(document)
    assert pattern_from_text(json.dumps(document)) == pattern
    assert pattern_from_text(pattern_to_yaml(pattern)) == pattern


def test_with_taxonomy(folder: Path) -> None:
    """A pattern with knowledge may have a column of types, too."""
    pattern = read_pattern(folder / "novels.yaml")
    assert isinstance(pattern, OccurrencePattern)
    with_types = pattern.taxonomy("kind")
    assert pattern_from_text(json.dumps(pattern_to_document(with_types))) == with_types


names = st.sampled_from(["a b", "price", "items", "ä"])
related = st.recursive(
    names | names.map(lambda one: individual(f"x:{{{one}}}")) | names.map(individual) | st.builds(constant, names),
    lambda inner: st.dictionaries(names, inner, min_size=1, max_size=2).map(node),
    max_leaves=4,
)
properties = st.dictionaries(names, related | st.lists(related, min_size=1, max_size=3), max_size=3)


kinds = st.none() | st.dictionaries(names, names, min_size=1)


@given(given_=properties, type_=st.none() | names, classes=kinds, turtle=st.none() | names, repeated=st.booleans())
def test_mappings(
    *, given_: Properties, type_: str | None, classes: dict[str, str] | None, turtle: str | None, repeated: bool
) -> None:
    """Each mapping can be written as plain data and read again; the schema allows it."""
    classes = classes if type_ is not None else None
    mapping = EventMapping("id", type=type_, classes=classes, properties=given_, turtle=turtle, repeated=repeated)
    document = json.loads(json.dumps(mapping_document(mapping)))
    assert mapping_of(document) == mapping
    schema = schema_of(SCHEMA)
    Draft202012Validator({**schema["$defs"]["mapping"], "$defs": schema["$defs"]}).validate(document)


HEAD = "occurrence: A\n"
KNOWLEDGE = 'knowledge: {ntriples: ""}\n'


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (HEAD, ["a pattern needs the key 'taxonomy' (p.yaml, line 1, column 1)"]),
        (HEAD + "knowledge: {files: [a.ttl]}", [
            "a pattern needs the key 'mapping'",
            "files of knowledge can be named only in a pattern file, which they are relative to (p.yaml, line 2",
        ]),
        (HEAD + "mapping: {name: id}", ["a pattern needs the key 'knowledge'"]),
        (HEAD + "knowledge: {}\nmapping: {name: id}", [
            "'knowledge' has one of the keys files and ntriples; this has none (p.yaml, line 2, column 12)"
        ]),
        (HEAD + 'knowledge: {files: [a], ntriples: ""}\nmapping: {name: id}', [
            "'knowledge' has one of the keys files and ntriples; this has both"
        ]),
        (HEAD + "knowledge: {file: a}\nmapping: {}", [
            "'knowledge' has one", "'knowledge' has no key 'file'", "'mapping' needs the key 'name'"
        ]),
        (HEAD + KNOWLEDGE + "mapping: {name: 'http://x/{'}", [
            "mapping: name 'http://x/{': column 10: a column is expected in braces"
        ]),
        (HEAD + KNOWLEDGE + "mapping: {name: id, properties: {a: kind}}", ["mapping: a: classes are named"]),
        (HEAD + KNOWLEDGE + "mapping: {name: id, properties: {p: {individul: x}}}", ["'p' has no key 'individul'"]),
        (HEAD + KNOWLEDGE + "mapping: {name: id, properties: {p: 3}}", [
            "'p' must be a column, 'individual: NAME', 'constant: NAME', 'node: {…}' or a list of these, got 3"
        ]),
        (HEAD + KNOWLEDGE + "mapping: {name: id, properties: {p: [[x]]}}", [
            "item 1 of 'p' must be a column, 'individual: NAME', 'constant: NAME' or 'node: {…}', got [\"x\"]"
        ]),
        (HEAD + KNOWLEDGE + "mapping: {name: id, properties: {p: {node: {}}}}", ["'node' must be a mapping of prop"]),
        ("occurrence: 'A [ ]'\n" + KNOWLEDGE + "mapping: {name: id}", ["a semantic filter is text, as in"]),
        (HEAD + 'knowledge: {ntriples: "<a"}\nmapping: {name: id}', ["the text: "]),
    ],
)  # fmt: skip
def test_problems(text: str, messages: list[str]) -> None:
    """Problems of these parts are reported with their places."""
    with pytest.raises(PatternError) as raised:
        pattern_from_text(text, source="p.yaml")
    found = [str(problem) for problem in raised.value.problems]
    assert len(found) == len(messages), found
    for one, message in zip(found, messages, strict=True):
        assert one.startswith(message)


def test_files_that_cannot_be_read(folder: Path) -> None:
    """The message names the file of knowledge, and the place in the pattern file."""
    (folder / "shop.ttl").write_text(":a :b")
    with pytest.raises(PatternError, match=r"shop\.ttl: .*line 1.*\(.*novels\.yaml, line 3, column 1\)") as raised:
        read_pattern(folder / "novels.yaml")
    (folder / "shop.ttl").unlink()
    with pytest.raises(PatternError, match=r"shop\.ttl cannot be read: No such file") as raised:
        read_pattern(folder / "novels.yaml")
    assert "knowledge:" in str(raised.value)


def events() -> pa.Schema:
    at = pa.timestamp("us", "UTC")
    return pa.schema({"id": pa.int64(), "at": at, "kind": pa.string(), "item": pa.string(), "price": pa.int64()})


def test_fingerprint(folder: Path) -> None:
    """The order of facts, and which file has them, is no part of a pattern's fingerprint."""
    pattern = read_pattern(folder / "novels.yaml")
    (folder / "novels.yaml").write_text(FILE.replace("shop.ttl, data/books.ttl", "data/books.ttl, shop.ttl"))
    other = read_pattern(folder / "novels.yaml")
    (folder / "shop.ttl").write_text(ONTOLOGY + ":more a owl:Class .")
    more = read_pattern(folder / "novels.yaml")
    assert pattern == other != more
    one, same, another = (pattern_fingerprint(pattern_to_document(each)) for each in (pattern, other, more))
    assert one == same != another


@pytest.mark.filterwarnings("ignore:policy 'recent'", "ignore:a matcher keeps what is open")
def test_snapshots_name_what_changed(folder: Path) -> None:
    """A snapshot fits the same knowledge and mapping only; otherwise the error says which of them changed."""
    pattern = read_pattern(folder / "novels.yaml")
    assert isinstance(pattern, OccurrencePattern)

    def matcher(knowledge: Knowledge | None = None, mapping: EventMapping | None = None) -> Matcher:
        assert isinstance(pattern, OccurrencePattern)
        changed = OccurrencePattern.of(
            pattern.expression, knowledge=knowledge or pattern.knowledge, mapping=mapping or pattern.mapping
        )
        (dear,) = pattern.restricted
        changed = changed.restrict(dear.name, dear.base, dear.condition, variable=dear.variable).named("novels")
        return Matcher(changed, events(), time="at")

    snapshot = matcher().snapshot()
    assert matcher().restore(snapshot) is None
    texts = [ONTOLOGY, BOOKS + ":alien a :Film ."]
    with pytest.raises(SnapshotError, match=r'knowledge\.facts was "11 facts \(\w+\)" and is "12 facts \(\w+\)"'):
        matcher(Knowledge.read(texts, prefixes={"": SHOP})).restore(snapshot)
    with pytest.raises(SnapshotError, match=r"prefixes\.x was null and is \"http://x/\""):
        matcher(Knowledge.read([ONTOLOGY, BOOKS], prefixes={"": SHOP, "x": "http://x/"})).restore(snapshot)
    other = EventMapping(MAPPING.name, type="kind", properties={"about": individual("item"), "hasPrice": "price"})
    with pytest.raises(SnapshotError, match=r"about\.individual was \"{item}\" and is \"item\""):
        matcher(mapping=other).restore(snapshot)
