"""What follows from random ontologies, compared with another program, and in any order of arrival."""

from __future__ import annotations

from collections.abc import Iterator

import owlrl
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from tests.knowledge.ontologies import CLASSES, DECLARED, EX, HEAD, INDIVIDUALS, PROPERTIES, axioms, facts
from tests.searching import share

from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri

TYPE, SAME = str(rdflib.RDF.type), str(rdflib.OWL.sameAs)
OF = {TYPE: {EX + name for name in CLASSES}, SAME: {EX + name for name in INDIVIDUALS}}
"""By predicate, the objects of the facts that are compared. Those of properties are individuals, too."""


def about_individuals(given: Iterator[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """The facts about named individuals. That each is the same as itself is left out."""
    individuals, properties = OF[SAME], {EX + name for name in PROPERTIES}
    return {
        (s, p, o)
        for s, p, o in given
        if s in individuals
        and (p in OF or p in properties)
        and o in OF.get(p, individuals)
        and not (p == SAME and s == o)
    }


def listed(closure: Closure) -> Iterator[tuple[str, str, str]]:
    for fact in closure.facts:
        terms = [closure.terms.term(number) for number in fact]
        if all(isinstance(term, Iri) for term in terms):
            s, p, o = (term.value for term in terms if isinstance(term, Iri))
            yield s, p, o


@share(15)
@given(stated=st.lists(axioms(), min_size=1, max_size=10), asserted=st.lists(facts(), min_size=1, max_size=14))
def test_as_another_program(stated: list[str], asserted: list[str]) -> None:
    """Owlrl finds the same about individuals."""
    text = "\n".join([HEAD, DECLARED, *stated, *asserted])
    graph = rdflib.Graph()
    graph.parse(data=text, format="turtle")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    closure = Closure()
    closure.add(triples(text, "turtle"))
    expected = about_individuals((str(s), str(p), str(o)) for s, p, o in graph)
    assert about_individuals(listed(closure)) == expected


@share(30)
@given(data=st.data(), stated=st.lists(axioms(), max_size=6), shared=st.lists(facts(), max_size=4))
def test_any_order_of_arrival(data: st.DataObject, stated: list[str], shared: list[str]) -> None:
    """Each fact has the time of the least moment at which it follows from what was stated until then, whatever the
    order in which that comes. Events may state axioms, too.
    """
    base = Closure()
    base.add(triples("\n".join([HEAD, DECLARED, *stated, *shared]), "turtle"))
    events = data.draw(st.lists(st.tuples(st.integers(1, 4), st.one_of(facts(), facts(), axioms())), max_size=6))
    documents = [(time, triples(HEAD + text, "turtle")) for time, text in events]
    session = Closure(base)
    for time, document in data.draw(st.permutations(documents)):
        session.add(document, time)
    known = {fact: session.facts.time(fact) for fact in session.facts}
    for moment in range(5):
        until = Closure(base)
        until.add((triple for time, document in documents if time <= moment for triple in document), moment)
        expected = set(named(until))
        assert {fact for fact, time in zip(named(session), known.values(), strict=True) if time <= moment} == expected
        assert (until.contradiction is not None) == (
            session.contradiction is not None and session.contradiction.time <= moment
        )


def named(closure: Closure) -> Iterator[tuple[object, ...]]:
    """The facts as terms."""
    for fact in closure.facts:
        yield tuple(closure.terms.term(number) for number in fact)
