"""What an ontology says and its closure ignores: axioms outside of OWL 2 RL, imports, and other languages of rules.

OWL 2 RL has two kinds of class expressions (OWL 2 Profiles, section 4.2.3): those on the left of subClassOf, and those
on the right of it. Here each expression is checked where it stands; a named class may stand anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.closure.rules import name
from cepheid.knowledge.terms import XSD, Iri, Literal, Term, Triple

_SHACL = "http://www.w3.org/ns/shacl#"
_SWRL = "http://www.w3.org/2003/11/swrl#"
_FIRST, _REST = name("rdf:first"), name("rdf:rest")
_SOME, _ALL, _VALUE = name("owl:someValuesFrom"), name("owl:allValuesFrom"), name("owl:hasValue")
_AND, _OR, _NOT, _ONE_OF = (name(f"owl:{one}") for one in ("intersectionOf", "unionOf", "complementOf", "oneOf"))
_MAX, _MAX_OF = name("owl:maxCardinality"), name("owl:maxQualifiedCardinality")
_ON_CLASS, _ON_PROPERTY = name("owl:onClass"), name("owl:onProperty")
_NUMBERS: Mapping[Term, str] = {
    name(f"owl:{one}"): word
    for one, word in {
        "minCardinality": "min",
        "maxCardinality": "max",
        "cardinality": "exactly",
        "minQualifiedCardinality": "min",
        "maxQualifiedCardinality": "max",
        "qualifiedCardinality": "exactly",
    }.items()
}
_SELF = name("owl:hasSelf")
_CONSTRUCTORS = (_SOME, _ALL, _VALUE, _AND, _OR, _NOT, _ONE_OF, _SELF, *_NUMBERS)

NO_NEW = "someValuesFrom as a superclass: no individuals are made up"
NO_CHOICE = "unionOf or oneOf as a superclass: which of them is not concluded"
COUNTS = "a cardinality other than at most 0 or 1 as a superclass"
COUNT_TYPE = 'the number of a cardinality must be written as "1"^^xsd:nonNegativeInteger'
ON_THE_LEFT = "allValuesFrom, complementOf or a cardinality as a subclass: nothing is concluded from what is not known"
SELF = "hasSelf"
DISJOINT_UNION = "disjointUnionOf"
REFLEXIVE = "a reflexive property"
DATATYPES = "a datatype of its own, or a cardinality of values of a datatype: datatypes are not checked"
PROPERTIES = "a restriction on several properties"
IMPORTS = "an import: nothing is fetched. Read the file, too"
SHAPES = "a SHACL shape"
RULES = "a SWRL rule"


@dataclass(frozen=True, order=True)
class Ignored:
    """An axiom of which nothing, or not all, follows."""

    axiom: str
    reason: str


_Check: TypeAlias = Callable[[Term], Iterator[str]]


def ignored_in(facts: Iterable[Triple], prefixes: Mapping[str, str]) -> tuple[Ignored, ...]:
    """What the closure of these facts ignores, in order, each once. Names are shown with these prefixes."""
    return tuple(sorted(set(_Axioms(facts, prefixes).ignored())))


class _Axioms:
    """Facts by subject, read as axioms."""

    def __init__(self, facts: Iterable[Triple], prefixes: Mapping[str, str]) -> None:
        self._of: dict[Term, dict[Term, list[Term]]] = {}
        self._stated: dict[Term, list[tuple[Term, Term]]] = {}
        for subject, predicate, object_ in facts:
            self._of.setdefault(subject, {}).setdefault(predicate, []).append(object_)
            self._stated.setdefault(predicate, []).append((subject, object_))
        self._open: set[Term] = set()
        """The expressions around the one that is read."""
        self._shown_around: list[Term] = []
        # The longest first, so that names are short.
        self._prefixes = sorted(((iri, short) for short, iri in prefixes.items()), key=lambda one: -len(one[0]))

    def ignored(self) -> Iterator[Ignored]:
        yield from self._of_classes()
        for subject, imported in self._all("owl:imports"):
            yield Ignored(f"{self._shown(subject)} owl:imports {self._shown(imported)}", IMPORTS)
        for subject, list_ in self._all("owl:disjointUnionOf"):
            yield Ignored(f"{self._shown(subject)} owl:disjointUnionOf ({self._listed(list_, ' ')})", DISJOINT_UNION)
        for subject, _ in self._all("owl:onProperties"):
            yield Ignored(self._shown(subject), PROPERTIES)
        for part in ("owl:onDatatype", "owl:datatypeComplementOf", "owl:onDataRange"):
            for subject, object_ in self._all(part):
                yield Ignored(f"{self._shown(subject)} {part} {self._shown(object_)}", DATATYPES)
        for subject, kind in self._stated.get(TYPE, ()):
            yield from self._of_kind(subject, kind)

    def _of_kind(self, subject: Term, kind: Term) -> Iterator[Ignored]:
        if kind == name("owl:ReflexiveProperty"):
            yield Ignored(self._shown(subject), REFLEXIVE)
        elif isinstance(kind, Iri) and kind.value in (f"{_SHACL}NodeShape", f"{_SHACL}PropertyShape"):
            yield Ignored(self._shown(subject), SHAPES)
        elif kind == Iri(f"{_SWRL}Imp"):
            yield Ignored(self._shown(subject), RULES)

    def _all(self, short: str) -> Sequence[tuple[Term, Term]]:
        return self._stated.get(name(short), ())

    # Class expressions

    def _of_classes(self) -> Iterator[Ignored]:
        for relation, left, right in (
            ("rdfs:subClassOf", self._left, self._right),
            ("owl:equivalentClass", self._both, self._both),
            ("owl:disjointWith", self._left, self._left),
            ("rdfs:domain", None, self._right),
            ("rdfs:range", None, self._right),
        ):
            for one, other in self._all(relation):
                axiom = f"{self._shown(one)} {relation} {self._shown(other)}"
                for check, node in ((left, one), (right, other)):
                    yield from self._found(axiom, check, node)
        for individual, class_ in self._stated.get(TYPE, ()):
            yield from self._found(f"{self._shown(individual)} a {self._shown(class_)}", self._right, class_)
        for owner, list_ in self._all("owl:members"):
            if name("owl:AllDisjointClasses") in self._of[owner].get(TYPE, ()):
                for member in self._items(list_):
                    yield from self._found(f"owl:AllDisjointClasses {self._shown(member)}", self._left, member)
        for owner, _ in self._all("owl:hasKey"):
            yield from self._found(f"{self._shown(owner)} owl:hasKey", self._left, owner)
        for class_, parts in self._of.items():
            if not _is_made_up(class_) and any(one in parts for one in _CONSTRUCTORS):
                axiom = f"{self._shown(class_)} is {self._expression(class_)}"
                for reason in (*self._left_parts(class_), *self._right_parts(class_)):
                    yield Ignored(axiom, reason)

    def _found(self, axiom: str, check: _Check | None, node: Term) -> Iterator[Ignored]:
        if check is not None:
            yield from (Ignored(axiom, reason) for reason in check(node))

    def _both(self, node: Term) -> Iterator[str]:
        yield from self._left(node)
        yield from self._right(node)

    def _left(self, node: Term) -> Iterator[str]:
        """Why the expression may not stand on the left of subClassOf."""
        yield from self._parts_of(node, self._left_parts)

    def _right(self, node: Term) -> Iterator[str]:
        """Why the expression may not stand on the right of subClassOf."""
        yield from self._parts_of(node, self._right_parts)

    def _parts_of(self, node: Term, check: _Check) -> Iterator[str]:
        if not _is_made_up(node) or node in self._open:
            return  # a named class, or an expression that is a part of itself
        self._open.add(node)
        is_datatype = name("rdfs:Datatype") in self._of.get(node, {}).get(TYPE, ())
        yield from [DATATYPES] if is_datatype else check(node)
        self._open.discard(node)

    def _left_parts(self, node: Term) -> Iterator[str]:
        for constructor, value in self._constructed(node):
            if constructor in (_AND, _OR):
                for item in self._items(value):
                    yield from self._left(item)
            elif constructor == _SOME:
                yield from self._left(value)
            elif constructor == _SELF:
                yield SELF
            elif constructor not in (_VALUE, _ONE_OF):
                yield ON_THE_LEFT

    def _right_parts(self, node: Term) -> Iterator[str]:
        for constructor, value in self._constructed(node):
            if constructor == _AND:
                for item in self._items(value):
                    yield from self._right(item)
            elif constructor == _NOT:
                yield from self._left(value)
            elif constructor == _ALL:
                yield from self._right(value)
            elif constructor == _SOME:
                yield NO_NEW
            elif constructor in (_OR, _ONE_OF):
                yield NO_CHOICE
            elif constructor == _SELF:
                yield SELF
            elif constructor in _NUMBERS:
                yield from _problem_of_number(constructor, value)
                for class_ in self._of[node].get(_ON_CLASS, ()):
                    yield from self._left(class_)

    def _constructed(self, node: Term) -> Iterator[tuple[Term, Term]]:
        parts = self._of.get(node, {})
        for constructor in _CONSTRUCTORS:
            for value in parts.get(constructor, ()):
                yield constructor, value

    def _items(self, list_: Term) -> Iterator[Term]:
        passed: set[Term] = set()
        while list_ in self._of and list_ not in passed:
            passed.add(list_)
            yield from self._of[list_].get(_FIRST, ())
            list_ = next(iter(self._of[list_].get(_REST, ())), name("rdf:nil"))

    # Texts

    def _shown(self, node: Term) -> str:
        if _is_made_up(node):
            if node in self._shown_around:
                return "[]"  # an expression that is a part of itself
            self._shown_around.append(node)
            shown = self._expression(node)
            self._shown_around.pop()
            return shown
        if isinstance(node, Iri):
            for iri, short in self._prefixes:
                if node.value.startswith(iri):
                    return f"{short}:{node.value.removeprefix(iri)}"
        return str(node)

    def _expression(self, node: Term) -> str:
        """The class expression as OWL's Manchester syntax has it; a node that is none as []."""
        properties = " ".join(map(self._shown, self._of.get(node, {}).get(_ON_PROPERTY, ())))
        for constructor, value in self._constructed(node):
            if constructor in (_AND, _OR):
                return f"({self._listed(value, ' and ' if constructor == _AND else ' or ')})"
            if constructor == _ONE_OF:
                return f"{{{self._listed(value, ', ')}}}"
            if constructor == _NOT:
                return f"(not {self._shown(value)})"
            if isinstance(constructor, Iri) and constructor in _NUMBERS:
                of = "".join(f" {self._shown(one)}" for one in self._of[node].get(_ON_CLASS, ()))
                number = value.text if isinstance(value, Literal) else str(value)
                return f"({properties} {_NUMBERS[constructor]} {number}{of})"
            words: Mapping[Term, str] = {_SOME: "some", _ALL: "only", _VALUE: "value", _SELF: "Self"}
            shown = "" if constructor == _SELF else f" {self._shown(value)}"
            return f"({properties} {words[constructor]}{shown})"
        inverse = self._of.get(node, {}).get(name("owl:inverseOf"), ())
        return f"(inverse {self._shown(inverse[0])})" if inverse else "[]"

    def _listed(self, list_: Term, between: str) -> str:
        return between.join(map(self._shown, self._items(list_)))


_AT_MOST_ONE = tuple(Literal(text, f"{XSD}nonNegativeInteger") for text in "01")


def _problem_of_number(constructor: Term, value: Term) -> Iterator[str]:
    """Why a superclass may not have this cardinality."""
    if constructor not in (_MAX, _MAX_OF) or not isinstance(value, Literal) or value.text not in ("0", "1"):
        yield COUNTS
    elif value not in _AT_MOST_ONE:
        yield COUNT_TYPE


def _is_made_up(node: Term) -> bool:
    return isinstance(node, Iri) and node.is_made_up
