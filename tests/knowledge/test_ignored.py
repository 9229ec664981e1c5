"""What an ontology says that the closure ignores is listed."""

from __future__ import annotations

import pytest

from cepheid.knowledge import ignored as why
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri

X = "http://x.example/"
HEAD = f"""
@prefix : <{X}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix swrl: <http://www.w3.org/2003/11/swrl#> .
"""


def ignored(text: str) -> list[tuple[str, str]]:
    found = Knowledge.read(HEAD + text, prefixes={"": X}).ignored
    return [(one.axiom, one.reason) for one in found]


SOME = "[ owl:onProperty :p ; owl:someValuesFrom :B ]"
MANY = "[ owl:onProperty :p ; owl:maxCardinality 2 ]"
ONE, TWO = (f'"{one}"^^<http://www.w3.org/2001/XMLSchema#integer>' for one in (1, 2))
UNION = "[ owl:unionOf ( :B :C ) ]"


@pytest.mark.parametrize(
    ("text", "axiom", "reason"),
    [
        (f":A rdfs:subClassOf {SOME} .", ":A rdfs:subClassOf (:p some :B)", why.NO_NEW),
        (f":A owl:equivalentClass {SOME} .", ":A owl:equivalentClass (:p some :B)", why.NO_NEW),
        (f":p rdfs:range {SOME} .", ":p rdfs:range (:p some :B)", why.NO_NEW),
        (f":p rdfs:domain {UNION} .", ":p rdfs:domain (:B or :C)", why.NO_CHOICE),
        (f":x a {UNION} .", ":x a (:B or :C)", why.NO_CHOICE),
        (":A rdfs:subClassOf [ owl:oneOf ( :x :y ) ] .", ":A rdfs:subClassOf {:x, :y}", why.NO_CHOICE),
        (f":A rdfs:subClassOf {MANY} .", ":A rdfs:subClassOf (:p max 2)", why.COUNTS),
        (
            ":A rdfs:subClassOf [ owl:onProperty :p ; owl:qualifiedCardinality 1 ; owl:onClass :B ] .",
            ":A rdfs:subClassOf (:p exactly 1 :B)",
            why.COUNTS,
        ),
        (
            ':A rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality "1"^^xsd:nonNegativeInteger ] .',
            ":A rdfs:subClassOf (:p min 1)",
            why.COUNTS,
        ),
        (
            ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 1 ] .",
            ":A rdfs:subClassOf (:p max 1)",
            why.COUNT_TYPE,
        ),
        (
            "[ owl:onProperty :p ; owl:allValuesFrom :B ] rdfs:subClassOf :A .",
            "(:p only :B) rdfs:subClassOf :A",
            why.ON_THE_LEFT,
        ),
        ("[ owl:complementOf :B ] rdfs:subClassOf :A .", "(not :B) rdfs:subClassOf :A", why.ON_THE_LEFT),
        (
            f":A rdfs:subClassOf [ owl:onProperty :q ; owl:allValuesFrom [ owl:intersectionOf ( :B {SOME} ) ] ] .",
            ":A rdfs:subClassOf (:q only (:B and (:p some :B)))",
            why.NO_NEW,
        ),
        (
            ":A rdfs:subClassOf [ owl:complementOf [ owl:onProperty :p ; owl:allValuesFrom :B ] ] .",
            ":A rdfs:subClassOf (not (:p only :B))",
            why.ON_THE_LEFT,
        ),
        (
            ":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf true ] .",
            ":A rdfs:subClassOf (:p Self)",
            why.SELF,
        ),
        (":A owl:unionOf ( :B :C ) .", ":A is (:B or :C)", why.NO_CHOICE),
        (":A owl:disjointUnionOf ( :B :C ) .", ":A owl:disjointUnionOf (:B :C)", why.DISJOINT_UNION),
        (":p a owl:ReflexiveProperty .", ":p", why.REFLEXIVE),
        ("<urn:o> owl:imports <urn:i> .", "<urn:o> owl:imports <urn:i>", why.IMPORTS),
        (":Shape a sh:NodeShape .", ":Shape", why.SHAPES),
        (":rule a swrl:Imp .", ":rule", why.RULES),
        (
            ":p rdfs:range [ a rdfs:Datatype ; owl:oneOf ( 1 2 ) ] .",
            f":p rdfs:range {{{ONE}, {TWO}}}",
            why.DATATYPES,
        ),
        (":A rdfs:subClassOf [ owl:onProperties ( :p :q ) ; owl:someValuesFrom :B ] .", "( some :B)", why.PROPERTIES),
        (
            "[ a owl:AllDisjointClasses ; owl:members ( :A [ owl:complementOf :B ] ) ] .",
            "owl:AllDisjointClasses (not :B)",
            why.ON_THE_LEFT,
        ),
    ],
)  # fmt: skip
def test_ignored(text: str, axiom: str, reason: str) -> None:
    """Each axiom is listed with the reason."""
    assert (axiom, reason) in ignored(text)


def test_an_expression_that_is_a_part_of_itself() -> None:
    """A ring of expressions, which no ontology means, ends."""
    assert ignored("_:a owl:complementOf _:a . :A rdfs:subClassOf _:a .") == []
    (found,) = ignored(f"_:a owl:intersectionOf ( _:a {SOME} ) . :A rdfs:subClassOf _:a .")
    assert found == (":A rdfs:subClassOf ([] and (:p some :B))", why.NO_NEW)


@pytest.mark.parametrize(
    "text",
    [
        f"{SOME} rdfs:subClassOf :A .",
        f"{UNION} rdfs:subClassOf :A .",
        "[ owl:oneOf ( :x :y ) ] rdfs:subClassOf :A .",
        ":A owl:equivalentClass [ owl:onProperty :p ; owl:hasValue :x ] .",
        ":A owl:equivalentClass [ owl:intersectionOf ( :B :C ) ] .",
        ":A owl:intersectionOf ( :B :C ) .",
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ] , [ owl:complementOf :C ] .",
        ':A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality "1"^^xsd:nonNegativeInteger ] .',
        ':A rdfs:subClassOf [ owl:maxQualifiedCardinality "0"^^xsd:nonNegativeInteger ; owl:onClass :B ] .',
        f":A rdfs:subClassOf [ owl:complementOf {SOME} ] .",
        ":A owl:hasKey ( :p ) . :p owl:propertyChainAxiom ( :q :r ) ; owl:inverseOf [ owl:inverseOf :q ] .",
        "[ a owl:AllDisjointClasses ; owl:members ( :A :B ) ] . :A owl:disjointWith :C .",
        ":p a owl:IrreflexiveProperty , owl:AsymmetricProperty ; rdfs:domain :A ; rdfs:range xsd:string .",
    ],
)
def test_not_ignored(text: str) -> None:
    """What OWL 2 RL allows is not listed."""
    assert ignored(text) == []


def test_names() -> None:
    """Classes and properties are those declared, related or used."""
    known = Knowledge.read(
        HEAD + ":A rdfs:subClassOf :B . :x a :C ; :p 3 . :q rdfs:domain :D . :r a owl:ObjectProperty ."
    )
    assert known.classes == {Iri(X + one) for one in "ABCD"}
    assert known.properties == {Iri(X + one) for one in "pqr"}
