"""The rules of OWL 2 RL about lists. Each list makes rules of its own, of the length of the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from cepheid.knowledge.closure.rules import Atom, Rule, name
from cepheid.knowledge.terms import Term

TYPE, SAME, DIFFERENT = name("rdf:type"), name("owl:sameAs"), name("owl:differentFrom")
SUBCLASS = name("rdfs:subClassOf")
OWNERS = ALL_DIFFERENT, ALL_DISJOINT_CLASSES, ALL_DISJOINT_PROPERTIES = (
    name("owl:AllDifferent"),
    name("owl:AllDisjointClasses"),
    name("owl:AllDisjointProperties"),
)
"""The types of nodes whose lists have rules."""


def _intersection(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    yield Rule("cls-int1", tuple(Atom("?x", TYPE, item) for item in items), Atom("?x", TYPE, owner))
    for item in items:
        yield Rule("cls-int2", (Atom("?x", TYPE, owner),), Atom("?x", TYPE, item))
        yield Rule("scm-int", (), Atom(owner, SUBCLASS, item))


def _union(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    for item in items:
        yield Rule("cls-uni", (Atom("?x", TYPE, item),), Atom("?x", TYPE, owner))
        yield Rule("scm-uni", (), Atom(item, SUBCLASS, owner))


def _one_of(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    for item in items:
        yield Rule("cls-oo", (), Atom(item, TYPE, owner))


def _chain(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    ends = [f"?x{i}" for i in range(len(items) + 1)]
    body = tuple(Atom(start, item, end) for item, (start, end) in zip(items, pairwise(ends), strict=True))
    yield Rule("prp-spo2", body, Atom(ends[0], owner, ends[-1]))


def _key(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    both = [Atom(x, TYPE, owner) for x in ("?x", "?y")]
    values = [Atom(x, item, f"?z{i}") for i, item in enumerate(items) for x in ("?x", "?y")]
    yield Rule("prp-key", (*both, *values), Atom("?x", SAME, "?y"))


def _all_different(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    for one, other in combinations(items, 2):
        yield Rule("eq-diff2", (Atom(owner, TYPE, ALL_DIFFERENT),), Atom(one, DIFFERENT, other))


def _all_disjoint_classes(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    stated = Atom(owner, TYPE, ALL_DISJOINT_CLASSES)
    for one, other in combinations(items, 2):
        yield Rule("cax-adc", (stated, Atom("?x", TYPE, one), Atom("?x", TYPE, other)), None)


def _all_disjoint_properties(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    stated = Atom(owner, TYPE, ALL_DISJOINT_PROPERTIES)
    for one, other in combinations(items, 2):
        yield Rule("prp-adp", (stated, Atom("?x", one, "?y"), Atom("?x", other, "?y")), None)


def _members(owner: Term, items: Sequence[Term]) -> Iterator[Rule]:
    for rules in (_all_different, _all_disjoint_classes, _all_disjoint_properties):
        yield from rules(owner, items)


LISTS: Mapping[Term, Callable[[Term, Sequence[Term]], Iterator[Rule]]] = {
    name("owl:intersectionOf"): _intersection,
    name("owl:unionOf"): _union,
    name("owl:oneOf"): _one_of,
    name("owl:propertyChainAxiom"): _chain,
    name("owl:hasKey"): _key,
    name("owl:members"): _members,
    name("owl:distinctMembers"): _all_different,
}
"""By the property whose values are lists: the rules of a list, with the subject of the property."""
