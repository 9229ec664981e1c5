"""The rules of OWL 2 RL, as tables 4 to 7 and 9 of the W3C's recommendation (OWL 2 Profiles, section 4.3) have them.

Left out: that everything is the same as itself (`eq-ref`; filters know that), and what the recommendation says of
datatypes (table 8): literals are no individuals. Rules with lists have the names of the recommendation too; they are
made anew for each list (`lists.py`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cepheid.knowledge.terms import XSD, Iri, Literal, Term

_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}

AtomPart: TypeAlias = Term | str
"""A term, or the name of a variable."""


class Atom(NamedTuple):
    """A pattern of facts."""

    subject: AtomPart
    predicate: AtomPart
    object: AtomPart


class Rule(NamedTuple):
    """If facts match the body, the head follows; None: they contradict each other."""

    name: str
    body: tuple[Atom, ...]
    head: Atom | None


def name(short: str) -> Iri:
    """The name with a prefix `rdf`, `rdfs` or `owl`."""
    prefix, local = short.split(":")
    return Iri(_PREFIXES[prefix] + local)


_COUNTS = {text: Literal(text, f"{XSD}nonNegativeInteger") for text in "01"}


def part(text: str) -> AtomPart:
    """A variable `?x`, `a` for the type, a number, or a name."""
    if text.startswith("?"):
        return text
    if text in _COUNTS:
        return _COUNTS[text]
    return name("rdf:type" if text == "a" else text)


def rule(text: str) -> Rule:
    """A rule as `name: ?x p ?y, ?y p ?z -> ?x p ?z`; after the arrow `false` for a contradiction."""
    title, rest = text.split(": ", 1)
    body, head = rest.split(" -> ")
    atoms = tuple(Atom(*map(part, atom.split())) for atom in body.split(", "))
    return Rule(title, atoms, None if head == "false" else Atom(*map(part, head.split())))


_TEXTS = """
eq-sym: ?x owl:sameAs ?y -> ?y owl:sameAs ?x
eq-trans: ?x owl:sameAs ?y, ?y owl:sameAs ?z -> ?x owl:sameAs ?z
eq-rep-s: ?s owl:sameAs ?t, ?s ?p ?o -> ?t ?p ?o
eq-rep-p: ?p owl:sameAs ?q, ?s ?p ?o -> ?s ?q ?o
eq-rep-o: ?o owl:sameAs ?t, ?s ?p ?o -> ?s ?p ?t
eq-diff1: ?x owl:sameAs ?y, ?x owl:differentFrom ?y -> false
eq-diff1: ?x owl:differentFrom ?x -> false
eq-diff-sym: ?x owl:differentFrom ?y -> ?y owl:differentFrom ?x

prp-dom: ?p rdfs:domain ?c, ?x ?p ?y -> ?x a ?c
prp-rng: ?p rdfs:range ?c, ?x ?p ?y -> ?y a ?c
prp-fp: ?p a owl:FunctionalProperty, ?x ?p ?y, ?x ?p ?z -> ?y owl:sameAs ?z
prp-ifp: ?p a owl:InverseFunctionalProperty, ?x ?p ?z, ?y ?p ?z -> ?x owl:sameAs ?y
prp-irp: ?p a owl:IrreflexiveProperty, ?x ?p ?x -> false
prp-symp: ?p a owl:SymmetricProperty, ?x ?p ?y -> ?y ?p ?x
prp-asyp: ?p a owl:AsymmetricProperty, ?x ?p ?y, ?y ?p ?x -> false
prp-trp: ?p a owl:TransitiveProperty, ?x ?p ?y, ?y ?p ?z -> ?x ?p ?z
prp-spo1: ?p rdfs:subPropertyOf ?q, ?x ?p ?y -> ?x ?q ?y
prp-eqp1: ?p owl:equivalentProperty ?q, ?x ?p ?y -> ?x ?q ?y
prp-eqp2: ?p owl:equivalentProperty ?q, ?x ?q ?y -> ?x ?p ?y
prp-pdw: ?p owl:propertyDisjointWith ?q, ?x ?p ?y, ?x ?q ?y -> false
prp-inv1: ?p owl:inverseOf ?q, ?x ?p ?y -> ?y ?q ?x
prp-inv2: ?p owl:inverseOf ?q, ?x ?q ?y -> ?y ?p ?x
prp-npa1: ?n owl:sourceIndividual ?x, ?n owl:assertionProperty ?p, ?n owl:targetIndividual ?y, ?x ?p ?y -> false
prp-npa2: ?n owl:sourceIndividual ?x, ?n owl:assertionProperty ?p, ?n owl:targetValue ?y, ?x ?p ?y -> false

cls-nothing2: ?x a owl:Nothing -> false
cls-com: ?c owl:complementOf ?d, ?x a ?c, ?x a ?d -> false
cls-svf1: ?r owl:someValuesFrom ?c, ?r owl:onProperty ?p, ?x ?p ?y, ?y a ?c -> ?x a ?r
cls-svf2: ?r owl:someValuesFrom owl:Thing, ?r owl:onProperty ?p, ?x ?p ?y -> ?x a ?r
cls-avf: ?r owl:allValuesFrom ?c, ?r owl:onProperty ?p, ?x a ?r, ?x ?p ?y -> ?y a ?c
cls-hv1: ?r owl:hasValue ?y, ?r owl:onProperty ?p, ?x a ?r -> ?x ?p ?y
cls-hv2: ?r owl:hasValue ?y, ?r owl:onProperty ?p, ?x ?p ?y -> ?x a ?r
cls-maxc1: ?r owl:maxCardinality 0, ?r owl:onProperty ?p, ?x a ?r, ?x ?p ?y -> false
cls-maxc2: ?r owl:maxCardinality 1, ?r owl:onProperty ?p, ?x a ?r, ?x ?p ?y, ?x ?p ?z -> ?y owl:sameAs ?z
cls-maxqc1: ?r owl:maxQualifiedCardinality 0, ?r owl:onProperty ?p, ?r owl:onClass ?c, ?x a ?r, ?x ?p ?y, \
?y a ?c -> false
cls-maxqc2: ?r owl:maxQualifiedCardinality 0, ?r owl:onProperty ?p, ?r owl:onClass owl:Thing, ?x a ?r, ?x ?p ?y -> false
cls-maxqc3: ?r owl:maxQualifiedCardinality 1, ?r owl:onProperty ?p, ?r owl:onClass ?c, ?x a ?r, ?x ?p ?y, ?y a ?c, \
?x ?p ?z, ?z a ?c -> ?y owl:sameAs ?z
cls-maxqc4: ?r owl:maxQualifiedCardinality 1, ?r owl:onProperty ?p, ?r owl:onClass owl:Thing, ?x a ?r, ?x ?p ?y, \
?x ?p ?z -> ?y owl:sameAs ?z

cax-sco: ?c rdfs:subClassOf ?d, ?x a ?c -> ?x a ?d
cax-eqc1: ?c owl:equivalentClass ?d, ?x a ?c -> ?x a ?d
cax-eqc2: ?c owl:equivalentClass ?d, ?x a ?d -> ?x a ?c
cax-dw: ?c owl:disjointWith ?d, ?x a ?c, ?x a ?d -> false

scm-cls: ?c a owl:Class -> ?c rdfs:subClassOf ?c
scm-cls: ?c a owl:Class -> ?c owl:equivalentClass ?c
scm-cls: ?c a owl:Class -> ?c rdfs:subClassOf owl:Thing
scm-cls: ?c a owl:Class -> owl:Nothing rdfs:subClassOf ?c
scm-sco: ?c rdfs:subClassOf ?d, ?d rdfs:subClassOf ?e -> ?c rdfs:subClassOf ?e
scm-eqc1: ?c owl:equivalentClass ?d -> ?c rdfs:subClassOf ?d
scm-eqc1: ?c owl:equivalentClass ?d -> ?d rdfs:subClassOf ?c
scm-eqc2: ?c rdfs:subClassOf ?d, ?d rdfs:subClassOf ?c -> ?c owl:equivalentClass ?d
scm-op: ?p a owl:ObjectProperty -> ?p rdfs:subPropertyOf ?p
scm-op: ?p a owl:ObjectProperty -> ?p owl:equivalentProperty ?p
scm-dp: ?p a owl:DatatypeProperty -> ?p rdfs:subPropertyOf ?p
scm-dp: ?p a owl:DatatypeProperty -> ?p owl:equivalentProperty ?p
scm-spo: ?p rdfs:subPropertyOf ?q, ?q rdfs:subPropertyOf ?r -> ?p rdfs:subPropertyOf ?r
scm-eqp1: ?p owl:equivalentProperty ?q -> ?p rdfs:subPropertyOf ?q
scm-eqp1: ?p owl:equivalentProperty ?q -> ?q rdfs:subPropertyOf ?p
scm-eqp2: ?p rdfs:subPropertyOf ?q, ?q rdfs:subPropertyOf ?p -> ?p owl:equivalentProperty ?q
scm-dom1: ?p rdfs:domain ?c, ?c rdfs:subClassOf ?d -> ?p rdfs:domain ?d
scm-dom2: ?q rdfs:domain ?c, ?p rdfs:subPropertyOf ?q -> ?p rdfs:domain ?c
scm-rng1: ?p rdfs:range ?c, ?c rdfs:subClassOf ?d -> ?p rdfs:range ?d
scm-rng2: ?q rdfs:range ?c, ?p rdfs:subPropertyOf ?q -> ?p rdfs:range ?c
scm-hv: ?c owl:hasValue ?i, ?c owl:onProperty ?p, ?d owl:hasValue ?i, ?d owl:onProperty ?q, ?p rdfs:subPropertyOf ?q \
-> ?c rdfs:subClassOf ?d
scm-svf1: ?c owl:someValuesFrom ?x, ?c owl:onProperty ?p, ?d owl:someValuesFrom ?y, ?d owl:onProperty ?p, \
?x rdfs:subClassOf ?y -> ?c rdfs:subClassOf ?d
scm-svf2: ?c owl:someValuesFrom ?x, ?c owl:onProperty ?p, ?d owl:someValuesFrom ?x, ?d owl:onProperty ?q, \
?p rdfs:subPropertyOf ?q -> ?c rdfs:subClassOf ?d
scm-avf1: ?c owl:allValuesFrom ?x, ?c owl:onProperty ?p, ?d owl:allValuesFrom ?y, ?d owl:onProperty ?p, \
?x rdfs:subClassOf ?y -> ?c rdfs:subClassOf ?d
scm-avf2: ?c owl:allValuesFrom ?x, ?c owl:onProperty ?p, ?d owl:allValuesFrom ?x, ?d owl:onProperty ?q, \
?p rdfs:subPropertyOf ?q -> ?d rdfs:subClassOf ?c
"""

RULES: tuple[Rule, ...] = tuple(rule(line) for line in _TEXTS.replace("\\\n", "").splitlines() if line)
