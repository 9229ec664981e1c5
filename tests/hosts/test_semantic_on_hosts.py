"""Patterns of stages and intervals with semantic filters: in process, in matchers, on a durable host, in files."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.semantic_shop import (
    BOOK,
    BUYERS,
    FACTS,
    KNOWLEDGE,
    MAPPING,
    PREFIXES,
    REQUESTS,
    SCHEMA,
    START,
    SUPPLIERS,
    buyers,
    log,
    numbers,
    requests,
    suppliers,
)

from cepheid import (
    IntervalMatcher,
    IntervalPattern,
    Matcher,
    Pattern,
    PatternError,
    SnapshotError,
    detect,
    pattern_from_text,
    pattern_to_document,
    pattern_to_yaml,
    semantic,
)
from cepheid.detect import plan_of
from cepheid.families import known_family_of
from cepheid.host import open_host
from cepheid.intervals import interval_pattern
from cepheid.knowledge import EventMapping, Knowledge
from cepheid.lang.fingerprint import pattern_fingerprint
from cepheid.requests.request_of import request_of

MORE = Knowledge.read(FACTS + "item:alien a :Novel .", prefixes=PREFIXES)
STAGES: dict[str, Any] = {"key": "user", "time": "at", "columns": ["id"]}
INTERVALS: dict[str, Any] = {"key": "user", "time": ("at", "until"), "columns": ["id"]}


def test_in_process() -> None:
    """The sum is of books of all kinds, and of no film; two names of a supplier are one."""
    assert numbers(detect(log(), buyers(), **STAGES)) == BUYERS
    assert numbers(detect(log(), suppliers(), **STAGES)) == SUPPLIERS
    assert numbers(detect(log(), requests(), **INTERVALS)) == REQUESTS
    assert numbers(detect(log(), suppliers(MORE), **STAGES)) == SUPPLIERS
    with_film = buyers(MORE)
    assert len(detect(log(), with_film, **STAGES)) > len(BUYERS)


def test_matcher() -> None:
    """A matcher that is stored and restored after each event finds the same; a snapshot fits no other knowledge."""
    found, snapshot = [], None
    for row in range(len(log())):
        matcher = Matcher(buyers(), SCHEMA, lateness="0 s", **STAGES)
        if snapshot is not None:
            matcher.restore(snapshot)
        found += numbers(matcher.process(log().slice(row, 1)))
        snapshot = matcher.snapshot()
    matcher = Matcher(buyers(), SCHEMA, lateness="0 s", **STAGES)
    assert snapshot is not None
    matcher.restore(snapshot)
    assert found + numbers(matcher.finish()) == BUYERS
    with pytest.raises(SnapshotError, match=r"knowledge.*facts"):
        Matcher(buyers(MORE), SCHEMA, lateness="0 s", **STAGES).restore(snapshot)
    mapped = EventMapping(MAPPING.name, type="kind", properties=dict(MAPPING.properties) | {"hasPrice": "id"})
    with pytest.raises(SnapshotError, match=r'mapping\.properties\.hasPrice was "price" and is "id"'):
        Matcher(buyers(mapping=mapped), SCHEMA, lateness="0 s", **STAGES).restore(snapshot)


def test_interval_matcher() -> None:
    """As `test_matcher`, for intervals."""
    matcher = IntervalMatcher(requests(), SCHEMA, lateness="0 s", **INTERVALS)
    found = numbers(matcher.process(log().slice(0, 6)))
    snapshot = matcher.snapshot()
    with pytest.raises(SnapshotError, match=r"knowledge.*facts"):
        IntervalMatcher(requests(MORE), SCHEMA, lateness="0 s", **INTERVALS).restore(snapshot)
    matcher = IntervalMatcher(requests(), SCHEMA, lateness="0 s", **INTERVALS)
    matcher.restore(snapshot)
    found += numbers(matcher.process(log().slice(6)))
    assert found + numbers(matcher.finish()) == REQUESTS
    assert "Filter about(?film, ?i) ∧ Film(?i): lifted, `film`.`item` IN ('alien')" in matcher.explain()


def test_durable(tmp_path: Path) -> None:
    """A host that is opened again needs no file of knowledge."""
    store = f"sqlite:///{tmp_path}/shop.db"
    with open_host(store) as host:
        host.input("log", SCHEMA, time="at", sequence="id")
        host.deploy(suppliers(), input="log", key="user", columns=["id"])
    for row in range(len(log())):
        with open_host(store) as host:
            host.feed(log().slice(row, 1), input="log", position=row + 1)
    with open_host(store) as host:
        host.advance_time(START + timedelta(days=1))
        (found,) = host.sql("SELECT stages FROM matches_suppliers").to_pylist()
    assert json.loads(found["stages"]) == {"one": [{"id": 2}], "other": [{"id": 5}]}


@pytest.mark.parametrize("pattern", [buyers(), suppliers(), requests()], ids=lambda one: one.name)
def test_files(pattern: Pattern | IntervalPattern) -> None:
    """Documents have the facts, and read as the same pattern; other knowledge is another fingerprint."""
    document = pattern_to_document(pattern)
    assert pattern_from_text(json.dumps(document)) == pattern
    assert pattern_from_text(pattern_to_yaml(pattern)) == pattern
    other = suppliers(MORE) if pattern.name == "suppliers" else buyers(MORE)
    assert pattern_fingerprint(document) != pattern_fingerprint(pattern_to_document(other))


def test_explain() -> None:
    """The filters and their SQL."""
    pattern = buyers()
    text = known_family_of(pattern).explain(pattern, plan_of(log(), request_of(pattern, **STAGES))).text
    assert "What events mean: lifted" in text
    assert "Filter about(?buys, ?i) ∧ Book(?i): lifted, `item` IN ('dune', 'logic')" in text
    assert "semantic('about(?buys, ?i) ∧ Book(?i)')" in known_family_of(pattern).explain(pattern, None).text


def begun(**arguments: Any) -> Pattern:
    return Pattern.begin("a", **({"knowledge": KNOWLEDGE, "mapping": MAPPING} | arguments))


def interval(**types: str) -> IntervalPattern:
    return IntervalPattern.pal(**types).with_knowledge(KNOWLEDGE, MAPPING)


ONE = semantic("about(?a, ?i) ∧ Book(?i)")
BOTH = semantic("about(?a, ?i) ∧ about(?b, ?i)")
GROUP = Pattern.begin("b").followed_by("c").where(semantic("about(?b, ?i) ∧ about(?c, ?i)"))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (Pattern.begin("a").where(ONE), "(stage 'a', where)\nGive the pattern knowledge: Pattern.begin(…"),
        (IntervalPattern.pal(a="X").taxonomy("kind").where(ONE), "with_knowledge(knowledge, mapping)."),
        (begun().where(BOTH).followed_by("b"), "?b has the name of a stage that comes later (stage 'a', where, column"),
        (
            begun().where(semantic("about(?bx, ?i) ∧ about(?b, ?i)")).followed_by("b"),
            "?b has the name of a stage that comes later (stage 'a', where, column 24)",
        ),
        (begun().where("semantic('about(?a, ?i)')"), "a semantic filter is no part of an SQL expression (stage 'a'"),
        (begun().one_or_more().followed_by("b").where(BOTH), "?a has the name of a stage that does not always take"),
        (begun().followed_by("x").optional().followed_by("b").where(semantic("about(?x, ?i)")), "?x has the name"),
        (begun().followed_by(GROUP).one_or_more(), "?b has the name of a stage that does not always take exactly one"),
        (
            begun().where(semantic("abot(?a, ?i)")),
            "no class or property <http://shop.example/abot> (stage 'a', where, column 1)",
        ),
        (begun().where(semantic("x:about(?a, ?i)")), "the prefix 'x:' is unknown"),
        (begun().subtype("Nvel"), "no class or property <http://shop.example/Nvel> (stage 'a', subtype)"),
        (begun().subtype("about"), "is a property, which takes two arguments, and not a class (stage 'a', subtype)"),
        (
            Pattern.begin("a b", knowledge=KNOWLEDGE, mapping=MAPPING).where(ONE),
            "'a b' is no word, so no variable can have its name.",
        ),
        (begun().taxonomy("kind").where(ONE), "a pattern with knowledge has no taxonomy (taxonomy)"),
        (begun().where(semantic("about(?x, item:dune)")), "asks more than the events of a partial match say"),
        (interval(a="Event").where(semantic("about(?x, item:dune)")), "asks more than the events of a match say"),
        (interval(a="Event").where("a.id = 1 OR semantic('about(?a, ?i)')"), "stands in no other expression than AND"),
        (interval(a="Event").where("semantic(a.id)"), "takes the text of a filter"),
        (interval(a="Evnt"), "no class or property <http://shop.example/Evnt> (event 'a')"),
        (interval(a="Event", b="Event").without("n", "Event", between=("a", "b")).where(semantic("about(?n, ?i)")),
         "?n is negated (where, column 7)"),
        (begun(mapping=EventMapping("user")).where(ONE), "mapping does not say all about an event by itself: the"),
        (begun(mapping=EventMapping("e:{nr}")).where(ONE), "no column named 'nr' (mapping)"),
    ],
)  # fmt: skip
def test_problems(pattern: Pattern | IntervalPattern, message: str) -> None:
    """Each problem is named, with its place and what to do."""
    options: dict[str, Any] = INTERVALS if isinstance(pattern, IntervalPattern) else STAGES
    with pytest.raises(PatternError) as raised:
        detect(log(), pattern, **options)
    assert message in str(raised.value)


def test_growing_is_found_without_events() -> None:
    """`cepheid check` needs no events to find a mapping that does not say all about an event by itself."""
    for pattern in (
        begun(mapping=EventMapping("user")).where(ONE),
        interval(a="Event").with_knowledge(KNOWLEDGE, EventMapping("user")),
    ):
        (problem,) = known_family_of(pattern).check(pattern, None)
        assert problem.hint is not None
        assert "OccurrencePattern.of(…, knowledge=…, mapping=…) can ask it" in problem.hint


def test_arguments() -> None:
    """Knowledge and mapping are given together, and are of their types."""
    for make in (
        lambda: Pattern.begin("a", knowledge=KNOWLEDGE),
        lambda: interval_pattern("EVENT PAL(A a)", mapping=MAPPING),
    ):
        with pytest.raises(PatternError, match="are given together"):
            make()
    with pytest.raises(PatternError, match=r"knowledge: Knowledge\.read\(…\) is expected, got str: 'shop.ttl'"):
        begun(knowledge="shop.ttl")
    with pytest.raises(PatternError, match=r"mapping: EventMapping\(…\) is expected, got dict: {}"):
        begun(mapping={})
    with pytest.raises(PatternError, match="belong to the whole pattern"):
        Pattern.begin("a").followed_by(begun().where(BOOK))


def test_query_text() -> None:
    """In the text of an interval pattern a filter is written as a function."""
    text = "EVENT PAL(Purchase a) WHERE semantic('about(?a, ?i) ^ Book(?i)') AND a.price > 500"
    pattern = interval_pattern(text, knowledge=KNOWLEDGE, mapping=MAPPING)
    assert numbers(detect(log(), pattern, **INTERVALS)) == [{"a": 2}, {"a": 3}]
