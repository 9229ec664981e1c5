"""The classes and the properties that facts name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.closure.rules import name
from cepheid.knowledge.terms import Iri, Term, Triple

KNOWN_PREFIXES: Mapping[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
"""The prefixes that need not be given: those of the names that rules are about."""

_CLASSES = {name("owl:Class"), name("rdfs:Class")}
_OF_CLASSES = {name(one) for one in ("rdfs:subClassOf", "owl:equivalentClass", "owl:disjointWith", "owl:complementOf")}
_PROPERTIES = {name("rdf:Property")} | {
    name(f"owl:{one}Property")
    for one in (
        "Object",
        "Datatype",
        "Functional",
        "InverseFunctional",
        "Transitive",
        "Symmetric",
        "Asymmetric",
        "Irreflexive",
    )
}
_OF_PROPERTIES = {
    name(one) for one in ("rdfs:subPropertyOf", "owl:equivalentProperty", "owl:inverseOf", "owl:propertyDisjointWith")
}
_DOMAINS = {name("rdfs:domain"), name("rdfs:range")}


def classes_of(facts: Iterable[Triple]) -> frozenset[Iri]:
    """The names of classes: those declared or related as such, and those that individuals have."""
    found: set[Term] = set()
    for subject, predicate, object_ in facts:
        if predicate == TYPE:
            found |= {subject} if object_ in _CLASSES else {object_}
        elif predicate in _OF_CLASSES:
            found |= {subject, object_}
        elif predicate in _DOMAINS:
            found.add(object_)
    return _own(found)


def properties_of(facts: Iterable[Triple]) -> frozenset[Iri]:
    """The names of properties: those declared or related as such, and those that individuals have."""
    found: set[Term] = set()
    for subject, predicate, object_ in facts:
        found.add(predicate)
        if predicate == name("owl:onProperty"):
            found.add(object_)
        elif predicate in _DOMAINS or (predicate == TYPE and object_ in _PROPERTIES):
            found.add(subject)
        elif predicate in _OF_PROPERTIES:
            found |= {subject, object_}
    return _own(found)


def _own(terms: Iterable[Term]) -> frozenset[Iri]:
    """The names among these that are of no vocabulary."""
    spaces = (*KNOWN_PREFIXES.values(), "http://www.w3.org/2001/XMLSchema#", "_:")
    return frozenset(one for one in terms if isinstance(one, Iri) and not one.value.startswith(spaces))
