"""Random ontologies as Turtle."""

from __future__ import annotations

from hypothesis import strategies as st

EX = "http://example.org/"
HEAD = f"""@prefix : <{EX}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
CLASSES, PROPERTIES, INDIVIDUALS = ([f"{letter}{i}" for i in range(n)] for letter, n in (("C", 5), ("p", 4), ("i", 6)))
DECLARED = "".join(
    [f":{name} a owl:Class .\n" for name in CLASSES] + [f":{name} a owl:ObjectProperty .\n" for name in PROPERTIES]
)
_ONE = '"1"^^xsd:nonNegativeInteger'
_RESTRICTIONS = (
    "[ a owl:Restriction ; owl:onProperty {p} ; owl:someValuesFrom {c} ]",
    "[ a owl:Restriction ; owl:onProperty {p} ; owl:someValuesFrom owl:Thing ]",
    "[ a owl:Restriction ; owl:onProperty {p} ; owl:allValuesFrom {c} ]",
    "[ a owl:Restriction ; owl:onProperty {p} ; owl:hasValue {i} ]",
    f"[ a owl:Restriction ; owl:onProperty {{p}} ; owl:maxCardinality {_ONE} ]",
    f"[ a owl:Restriction ; owl:onProperty {{p}} ; owl:onClass {{c}} ; owl:maxQualifiedCardinality {_ONE} ]",
    "[ a owl:Class ; owl:intersectionOf ( {c} {d} ) ]",
    "[ a owl:Class ; owl:unionOf ( {c} {d} ) ]",
    "[ a owl:Class ; owl:oneOf ( {i} {j} ) ]",
)
_AXIOMS = (
    "{c} rdfs:subClassOf {d} .",
    "{c} rdfs:subClassOf {r} .",
    "{c} owl:equivalentClass {r} .",
    "{c} owl:equivalentClass {d} .",
    "{p} rdfs:subPropertyOf {q} .",
    "{p} owl:equivalentProperty {q} .",
    "{p} owl:inverseOf {q} .",
    "{p} rdfs:domain {c} .",
    "{p} rdfs:range {c} .",
    "{p} a owl:TransitiveProperty .",
    "{p} a owl:SymmetricProperty .",
    "{p} a owl:FunctionalProperty .",
    "{p} a owl:InverseFunctionalProperty .",
    "{p} owl:propertyChainAxiom ( {q} {p} ) .",
)
_FACTS = ("{i} a {c} .", "{i} a {c} .", "{i} {p} {j} .", "{i} {p} {j} .", "{i} {p} {j} .", "{i} owl:sameAs {j} .")


@st.composite
def axioms(draw: st.DrawFn) -> str:
    return draw(_filled(_AXIOMS))


@st.composite
def facts(draw: st.DrawFn) -> str:
    return draw(_filled(_FACTS))


@st.composite
def _filled(draw: st.DrawFn, forms: tuple[str, ...]) -> str:
    form = draw(st.sampled_from(forms))
    names = {"c": CLASSES, "d": CLASSES, "p": PROPERTIES, "q": PROPERTIES, "i": INDIVIDUALS, "j": INDIVIDUALS}
    parts = {key: f":{draw(st.sampled_from(some))}" for key, some in names.items()}
    return form.format(**parts, r=draw(st.sampled_from(_RESTRICTIONS)).format(**parts))
