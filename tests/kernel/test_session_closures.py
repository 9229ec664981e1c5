"""The compiled closures of sessions are those of `Closure`, which defines them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.knowledge.ontologies import DECLARED, HEAD, axioms, facts
from tests.searching import share

from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Triple

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
