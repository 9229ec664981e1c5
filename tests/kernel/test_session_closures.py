"""The compiled closures of sessions are those of `Closure`, which defines them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.knowledge.ontologies import DECLARED, HEAD, axioms, facts
from tests.searching import share

from cepheid.kernel.arrays import NO_TIME
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Term, Triple

Event = tuple[int, int, list[Triple]]
"""Session, time, and what it says."""
AXIOMS = st.lists(axioms(), max_size=8)
SHARED = st.lists(facts(), max_size=4)


@st.composite
def events(draw: st.DrawFn, *, say_axioms: bool) -> list[Event]:
    said = st.one_of(facts(), facts(), axioms()) if say_axioms else facts()
    drawn = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.lists(said, max_size=3)), max_size=10))
    return [
        (session, time, triples(HEAD + "\n".join(text), "turtle", scope=f"e{number}"))
        for number, (session, time, text) in enumerate(drawn)
    ]


def add_in_calls(closures: SessionClosures, given: list[Event], calls: int) -> None:
    """Adds the events in several calls, in each the events of a session one after the other."""
    size = max(1, -(-len(given) // calls))
    for first in range(0, len(given), size):
        call = sorted(given[first : first + size], key=lambda event: event[0])
        sizes = Counter({session: 0 for session, _, _ in call})
        for session, _, said in call:
            sizes[session] += len(said)
        end = np.cumsum([*sizes.values()], dtype=np.int64)
        numbered = closures.said((fact, time) for _, time, facts in call for fact in facts)
        closures.add(np.array([*sizes], np.int32), end, numbered)


def check(base: Closure, given: list[Event], calls: int) -> None:
    closures = SessionClosures(base)
    assert [closures.begin() for _ in range(3)] == [0, 1, 2]
    add_in_calls(closures, given, calls)
    for session in {session for session, _, _ in given}:
        alone = Closure(base)
        for of, time, said in given:
            if of == session:
                alone.add(said, time)
        assert dict(closures.facts(session)) == dict(alone.own_facts())
        one, other = closures.contradiction(session), alone.contradiction
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.time == other.time


def local(term: Term) -> str:
    """The last part of a name."""
    return str(term).strip("<>").replace("#", "/").rpartition("/")[2]


def closed(stated: list[str], shared: list[str]) -> Closure:
    base = Closure()
    base.add(triples("\n".join([HEAD, DECLARED, *stated, *shared]), "turtle", scope="k"))
    return base


@share(100)
@given(stated=AXIOMS, shared=SHARED, given=events(say_axioms=False), calls=st.integers(1, 4))
def test_facts_and_times_are_those_of_the_definition(
    stated: list[str], shared: list[str], given: list[Event], calls: int
) -> None:
    """All facts of a session and their times are the same, in any order of arrival and split into any calls."""
    check(closed(stated, shared), given, calls)


@share(30)
@given(stated=AXIOMS, shared=SHARED, given=events(say_axioms=True), calls=st.integers(1, 4))
def test_events_may_say_something_of_classes(
    stated: list[str], shared: list[str], given: list[Event], calls: int
) -> None:
    check(closed(stated, shared), given, calls)


@share(30)
@given(stated=AXIOMS, shared=SHARED, given=events(say_axioms=False), later=events(say_axioms=False))
def test_sessions_end(stated: list[str], shared: list[str], given: list[Event], later: list[Event]) -> None:
    """The facts of a session that ends are taken out; all others remain, and its number is used again."""
    base = closed(stated, shared)
    closures = SessionClosures(base)
    assert [closures.begin() for _ in range(3)] == [0, 1, 2]
    add_in_calls(closures, given, 1)
    closures.end(1)
    needed = closures.said([(triples(HEAD + ":kept a :Other .", "turtle")[0], NO_TIME)]).subject
    name = closures.terms.term(int(needed[0]))
    moved = closures.tidy(needed)
    assert closures.terms.term(int(moved[needed[0]])) == name
    assert closures.begin() == 1
    assert not dict(closures.facts(1))
    add_in_calls(closures, later, 2)
    for session in range(3):
        alone = Closure(base)
        for of, time, said in [*(one for one in given if one[0] != 1), *later]:
            if of == session:
                alone.add(said, time)
        assert dict(closures.facts(session)) == dict(alone.own_facts())
        one, other = closures.contradiction(session), alone.contradiction
        assert (one and one.time) == (other and other.time)


def test_a_contradiction_names_its_facts_and_its_event() -> None:
    """It is that of the first event that brings one; facts of the knowledge that have a part in it are named."""
    base = closed([":C0 owl:disjointWith :C1 ."], [":i0 a :C0 ."])
    closures = SessionClosures(base)
    closures.begin()
    texts = [":i1 a :C0 .", ":i0 a :C1 .", ":i1 a :C1 ."]
    said = [(fact, at) for at, text in enumerate(texts) for fact in triples(HEAD + text, "turtle")]
    closures.add(np.zeros(3, np.int32), np.array([1, 2, 3]), closures.said(said))
    found = closures.contradiction(0)
    assert found is not None
    assert (found.time, found.rule, closures.brought_by(0)) == (1, "cax-dw", 1)
    shown = sorted(
        tuple(str(term).strip("<>").replace("#", "/").rpartition("/")[2] for term in fact) for fact in found.facts
    )
    assert shown == [("C0", "disjointWith", "C1"), ("i0", "type", "C0"), ("i0", "type", "C1")]
