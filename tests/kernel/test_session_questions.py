"""The programs of filters find what `solutions` finds, and since when; and large sessions are those of `Closure`."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.test_session_closures import AXIOMS, SHARED, Event, add_in_calls, closed, events
from tests.knowledge.ontologies import CLASSES, EX, HEAD, INDIVIDUALS, PROPERTIES
from tests.searching import share

from cepheid.compile.knowledge.programs import Filter
from cepheid.kernel.arrays import NO_TIME
from cepheid.kernel.knowledge.asking import earliest
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.kernel.knowledge.layout import NEVER, Verdict
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import parsed
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri

PREFIXES = {"": EX, "owl": "http://www.w3.org/2002/07/owl#", "swrlb": "http://www.w3.org/2003/11/swrlb#"}
TIMES = range(1, 6)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Some class and property atoms over the bound variable ?a and others, seldom with another atom."""
    part = st.sampled_from(["?a", "?a", "?x", "?y", *INDIVIDUALS[:2]])
    of_class = st.builds("{}({})".format, st.sampled_from(CLASSES), part)
    of_property = st.builds("{}({}, {})".format, st.sampled_from(PROPERTIES), part, part)
    others = st.sampled_from(
        ["sameAs(?a, ?x)", "differentFrom(?a, i0)", "equal(?x, 1)", "unknown(?a, ?x)", "p0(?a, 1)"]
    )
    atoms = draw(st.lists(of_class | of_property | of_property | of_property, min_size=1, max_size=4))
    atoms += draw(st.lists(others, max_size=1) if draw(st.integers(0, 3)) == 0 else st.just([]))
    return Filter(parsed(" ^ ".join(atoms), PREFIXES), ("a",) if draw(st.booleans()) or "?a" in " ".join(atoms) else ())


@share(50)
@given(
    stated=AXIOMS,
    shared=SHARED,
    given=events(say_axioms=False) | events(say_axioms=True),
    asked=st.lists(filters(), min_size=1, max_size=4),
    calls=st.integers(1, 3),
)
def test_programs_find_what_solutions_find(
    stated: list[str], shared: list[str], given: list[Event], asked: list[Filter], calls: int
) -> None:
    """A verdict is that of the definition at the time, or is left to it. The earliest time is the first of these."""
    base = closed(stated, shared)
    closures = SessionClosures(base, asked)
    assert [closures.begin() for _ in range(3)] == [0, 1, 2]
    add_in_calls(closures, given, calls)
    for session in {session for session, _, _ in given}:
        alone = Closure(base)
        for of, time, said in given:
            if of == session:
                alone.add(said, time)
        for number, filter_ in enumerate(asked):
            for individual in INDIVIDUALS[:3]:
                question = Question(session, number, filter_, Iri(EX + individual))
                check_question(closures, alone, question)


class Question(NamedTuple):
    session: int
    number: int
    filter: Filter
    individual: Iri


def check_question(closures: SessionClosures, alone: Closure, question: Question) -> None:
    session, number, filter_, individual = question
    bindings = dict.fromkeys(filter_.bound, individual)
    holds = [next(solutions(filter_.atoms, alone, bindings, time), None) is not None for time in TIMES]
    count = len(TIMES)
    sessions = np.full(count, session, np.int32)
    individuals = np.full(count, closures.terms.number(individual), np.int32)
    found = closures.asked(number, sessions, individuals, np.array(TIMES, np.int64))
    for verdict, expected in zip(found.tolist(), holds, strict=True):
        assert verdict == Verdict.UNDECIDED or (verdict == Verdict.HOLDS) == expected
    if Verdict.UNDECIDED in found or next(solutions(filter_.atoms, alone, bindings, 0), None) is not None:
        return
    if any(atom.kind not in ("class", "property") for atom in filter_.atoms):
        return  # the earliest time is that of the class and property atoms, which other atoms may still refuse
    knowing = closures.knowing(sessions, individuals)
    knowing.matching.values[0] = individuals[0]
    first = earliest(knowing, session, number, NO_TIME)
    assert first == (TIMES[holds.index(True)] if True in holds else NEVER)


def test_filters_of_class_and_property_atoms_are_decided() -> None:
    """Others are left to the definition only where all class and property atoms hold."""
    base = closed([":C0 rdfs:subClassOf :C1 ."], [":i5 a :C2 ."])
    texts = ["C1(?a) ^ p0(?a, ?x) ^ C2(?x)", "C1(?a) ^ p0(?a, ?x) ^ sameAs(?x, i5)", "p0(?a, 7)", "sameAs(?a, i0)"]
    closures = SessionClosures(base, [Filter(parsed(text, PREFIXES), ("a",)) for text in texts])
    add_in_calls(closures, [(closures.begin(), 3, triples(HEAD + ":i0 a :C0 ; :p0 :i5 . :i1 :p0 :i5 .", "turtle"))], 1)
    individuals = np.array([closures.terms.number(Iri(f"{EX}i{one}")) for one in (0, 0, 1)], np.int32)
    times, sessions = np.array([2, 3, 3]), np.zeros(3, np.int32)
    no, yes, open_ = Verdict.DOES_NOT_HOLD, Verdict.HOLDS, Verdict.UNDECIDED
    found = [closures.asked(number, sessions, individuals, times).tolist() for number in range(len(texts))]
    assert found == [[no, yes, no], [no, open_, no], [no, open_, open_], [open_] * 3]


@pytest.mark.parametrize("seed", range(4))
def test_large_sessions(seed: int) -> None:
    """Sessions with thousands of facts, which come out of order and in many calls: their slots are moved while rules
    read chains, and after other sessions ended.
    """
    random = Random(seed)
    base = closed([":p0 a owl:TransitiveProperty .", ":p1 owl:inverseOf :p0 .", ":p2 rdfs:domain :C0 ."], [])
    closures = SessionClosures(base)
    assert [closures.begin() for _ in range(3)] == [0, 1, 2]
    alone = [Closure(base) for _ in range(3)]
    for call in range(6):
        given = list[Event]()
        for _ in range(30):
            session, at = random.randrange(3), random.randrange(24)
            property_ = random.choice(["p0", "p0", "p1", "p2"])
            text = f"{HEAD}:e{at} :{property_} :e{(at + random.randrange(1, 4)) % 26} ."
            given.append((session, random.randrange(1, 9), triples(text, "turtle")))
        add_in_calls(closures, given, 1)
        for session, time, said in given:
            alone[session].add(said, time)
        if call == 3:
            closures.end(1)
            closures.tidy(np.zeros(0, np.int32))
            assert closures.begin() == 1
            alone[1] = Closure(base)
    sizes = [len(dict(closures.facts(session))) for session in range(3)]
    assert max(sizes) > 300
    for session in range(3):
        assert dict(closures.facts(session)) == dict(alone[session].own_facts())
