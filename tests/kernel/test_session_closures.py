"""The compiled closures of sessions are those of `Closure`, which defines them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.knowledge.ontologies import DECLARED, HEAD, axioms, facts
from tests.searching import share

from cepheid.kernel.arrays import NO_TIME
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.closure.limits import FactLimits, TooManyFacts
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Term, Triple
from cepheid.plan.limits import Limits

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


class Limited:
    """The definition of a session with limits: the event that passes one says nothing, nor do later ones."""

    def __init__(self, base: Closure, limits: FactLimits) -> None:
        self._base, self._limits = base, limits
        self._taken: list[tuple[list[Triple], int]] = []
        self.closure = Closure(base, limits)
        self.dropped: int | None = None
        """How many facts were not taken; None: the session is not full."""

    def add(self, said: list[Triple], time: int) -> None:
        if self.dropped is not None:
            self.dropped += len(said)
            return
        try:
            self.closure.add(said, time)
            self._taken.append((said, time))
        except TooManyFacts:
            self.dropped = len(said)
            self.closure = Closure(self._base, self._limits)
            for one, at in self._taken:
                self.closure.add(one, at)


SOME_EVENTS = st.booleans().flatmap(lambda say_axioms: events(say_axioms=say_axioms))
LIMITS = st.builds(FactLimits, st.sampled_from([3, 8, 20, 100]), st.sampled_from([2, 3, 100]))


@share(100)
@given(
    stated=AXIOMS,
    shared=SHARED,
    given=st.booleans().flatmap(lambda say: events(say_axioms=say)),
    limits=LIMITS,
    calls=st.integers(1, 3),
)
def test_limits(stated: list[str], shared: list[str], given: list[Event], limits: FactLimits, calls: int) -> None:
    """With limits the facts are those of the definition, however many events a call has; otherwise an event that
    passes one is an error.
    """
    base = closed(stated, shared)
    defined = [Limited(base, limits) for _ in range(3)]
    passing = dict[int, int]()
    for number, (session, time, said) in enumerate(given):
        defined[session].add(said, time)
        if defined[session].dropped is not None:
            passing.setdefault(session, number)
    first = min(passing.values(), default=None)
    closures = SessionClosures(base, limits=Limits(max_facts=limits.facts, max_same_as=limits.names, on_limit="drop"))
    numbers = [closures.begin() for _ in range(3)]
    raising = SessionClosures(base, limits=Limits(max_facts=limits.facts, max_same_as=limits.names))
    same = [raising.begin() for _ in range(3)]
    size = max(1, -(-len(given) // calls))
    for begin in range(0, len(given), size):
        call = given[begin : begin + size]
        end = np.cumsum([len(said) for _, _, said in call], dtype=np.int64)
        facts = [(fact, time) for _, time, said in call for fact in said]
        own = np.array([numbers[session] for session, _, _ in call], np.int32)
        closures.add(own, end, closures.said(facts))
        numbers = [closures.number_of(number) for number in numbers]
        if closures.is_full:
            closures.tidy(np.zeros(0, np.int32))
        if first is not None and begin + size > first:
            if begin <= first:
                of_call = np.array([same[session] for session, _, _ in call], np.int32)
                with pytest.raises(TooManyFacts) as caught:
                    raising.add(of_call, end, raising.said(facts))
                assert begin + caught.value.visit in passing.values()
        else:
            raising.add(np.array([same[session] for session, _, _ in call], np.int32), end, raising.said(facts))
    full = [one.dropped is not None for one in defined]
    note(f"full {sum(full)}")
    assert closures.dropped == sum(one.dropped or 0 for one in defined)
    assert [not closures.takes_more(number) for number in numbers] == full
    for number, one in zip(numbers, defined, strict=True):
        assert dict(closures.facts(number)) == dict(one.closure.own_facts())
        found, expected = closures.contradiction(number), one.closure.contradiction
        assert (found and found.time) == (expected and expected.time)


def test_names_are_counted_before_their_facts_are_there() -> None:
    """A thousand names of one individual would be a million facts."""
    base = closed([], [])
    closures = SessionClosures(base, limits=Limits(max_same_as=50))
    session = closures.begin()
    text = HEAD + " ".join(f":n{i} owl:sameAs :n{i + 1} ." for i in range(1000))
    with pytest.raises(TooManyFacts, match="max_same_as"):
        closures.add(
            np.array([session], np.int32), np.array([1000]), closures.said((one, 1) for one in triples(text, "turtle"))
        )
    assert len(dict(closures.facts(session))) < 10_000
