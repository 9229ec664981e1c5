"""Public facts about filters over knowledge."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cepheid.errors import KnowledgeError
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom, Variable, parsed
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri, Term

FACTS = Path(__file__).parents[1] / "conformance" / "algebra" / "semantic.jsonl"
_ALL = [json.loads(line) for line in FACTS.read_text("utf-8").splitlines()]
FILTERS = [fact for fact in _ALL if fact["kind"] == "filter"]
PATTERNS = [fact for fact in _ALL if fact["kind"] != "filter"]
"""Of these only the sessions are asked: what their events mean, not what the patterns find."""


@cache
def knowledge(text: str, prefixes: tuple[tuple[str, str], ...]) -> Knowledge:
    return Knowledge.read(text, prefixes=dict(prefixes))


@pytest.mark.filterwarnings("ignore:.* never holds:cepheid.errors.CepheidWarning")
@pytest.mark.parametrize("fact", FILTERS, ids=lambda fact: str(fact["id"]))
def test_filters(fact: dict[str, Any]) -> None:
    """Whether the filter holds, for which values, or that the knowledge contradicts itself."""
    expected, prefixes = fact["expected"], tuple(fact["prefixes"].items())
    if "error" in expected:
        with pytest.raises(KnowledgeError, match="contradicts itself, by the rule "):
            knowledge(fact["kb"], prefixes)
        return
    known = knowledge(fact["kb"], prefixes)
    assert known.holds(fact["filter"], fact["bind"]) == expected["holds"]
    if "solutions" in expected:
        found = known.solutions(fact["filter"], fact["project"], fact["bind"])
        assert found == sorted(map(tuple, expected["solutions"]))


@pytest.mark.parametrize("fact", PATTERNS, ids=lambda fact: str(fact["id"]))
def test_sessions(fact: dict[str, Any]) -> None:
    """Whatever the order in which the events of a session come: since when they contradict the knowledge, and of which
    types each event is at its own time.
    """
    expected, prefixes, events = fact["expected"], tuple(fact["prefixes"].items()), [*fact["events"]]
    if "error" in expected:
        with pytest.raises(KnowledgeError, match="contradicts itself, by the rule "):
            knowledge(fact["kb"], prefixes)
        return
    known = knowledge(fact["kb"], prefixes)
    head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in prefixes)
    sessions = {event.get("key", ""): Closure(known.closure) for event in events}
    random.Random(fact["id"]).shuffle(events)
    for event in events:
        sessions[event.get("key", "")].add(triples(head + event["ttl"], "turtle"), event["t"])
    found = {key: one.contradiction.time for key, one in sessions.items() if one.contradiction is not None}
    assert found == expected.get("inconsistent", {})
    types = {event["id"]: types_of(fact, event, known, sessions[event.get("key", "")]) for event in events}
    assert types == {id_: set(names) for id_, names in expected["leaf_types"].items()}


def types_of(fact: dict[str, Any], event: dict[str, Any], known: Knowledge, session: Closure) -> set[str]:
    """Of the types that the pattern names, those of the event at its own time."""
    restricted, individual = fact["types"], Iri(event["iri"])

    def is_of(name: str) -> bool:
        if name not in restricted:
            class_ = Atom("class", Iri(known.prefixes[""] + name), (Variable("e"),))
            return holds([class_], {"e": individual})
        one = restricted[name]
        return is_of(one["base"]) and holds(parsed(one["filter"], known.prefixes), {one["var"]: individual})

    def holds(atoms: Sequence[Atom], bindings: dict[str, Term]) -> bool:
        return next(solutions(atoms, session, bindings, event["t"]), None) is not None

    names = {*restricted, *(one["base"] for one in restricted.values()), *leaves(fact["expr"])}
    return {name for name in names if is_of(name)}


def leaves(expression: list[Any]) -> set[str]:
    if expression[0] == "ev":
        return {expression[1]}
    return {name for part in expression if isinstance(part, list) for name in leaves(part)}
