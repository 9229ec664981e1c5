"""What follows from an event whose facts are columns, if nothing follows about anything but itself.

Events of a mapping are inert if the ontology says of the mapped properties only what they are kinds of, and of which
classes their subjects and objects are. Then an event's classes follow from its own columns, and no event changes what
is known of another. Classes are found by closing an event of each class that has all properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.closure.rules import name
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value
from cepheid.knowledge.events.names import Template, TemplatePart, is_template, may_be_alike, name_of, property_of
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri, Literal, Term, Triple

_SUB_CLASS, _SUB_PROPERTY = name("rdfs:subClassOf"), name("rdfs:subPropertyOf")
_EQUIVALENT_CLASS, _EQUIVALENT_PROPERTY = name("owl:equivalentClass"), name("owl:equivalentProperty")
_DOMAIN, _RANGE = name("rdfs:domain"), name("rdfs:range")
_VOCABULARIES = tuple(name(prefix).value for prefix in ("rdf:", "rdfs:", "owl:"))
_NOTES = {*map(name, ("rdfs:label", "rdfs:comment", "rdfs:isDefinedBy", "rdfs:seeAlso", "owl:versionInfo"))}
_KINDS_OF_PROPERTIES = {
    *map(name, ("owl:ObjectProperty", "owl:DatatypeProperty", "owl:AnnotationProperty", "rdf:Property"))
}
_KINDS_OF_CLASSES = {*map(name, ("owl:Class", "rdfs:Class"))}
_SAID_OF_PROPERTIES = {_SUB_PROPERTY, _EQUIVALENT_PROPERTY, _DOMAIN, _RANGE, *_NOTES}
_SAID_OF_CLASSES = {_SUB_CLASS, _EQUIVALENT_CLASS, *_NOTES}


class NotLifted(Exception):
    """Why something is not said by each event alone."""


@dataclass(frozen=True)
class Related:
    """A property of the mapping: what it relates an event, or a node of an event, to."""

    property: Iri
    value: Value
    kinds: frozenset[Iri]
    """The property and those that it is a kind of."""
    of_subject: frozenset[Iri]
    """The classes of an individual that has the property."""
    of_object: frozenset[Iri]
    """The classes of an individual that is related by it; for a node, with the classes that it has by its properties.
    """
    by_range: frozenset[Iri] = frozenset()
    """For a node: the classes among these that it has whatever its own properties are."""
    inner: tuple[Related, ...] = ()
    """What a node is related to."""
    class_: Iri | None = None
    """For the property of classes: the class."""


@dataclass(frozen=True)
class Inert:
    """Events of which nothing follows about anything but themselves."""

    of_class: Mapping[Iri, frozenset[Iri]]
    """The classes of an event by the class of its type column."""
    related: tuple[Related, ...]
    """What an event is related to."""
    all_properties: frozenset[Iri]
    """The properties that individuals have because of events."""
    all_classes: frozenset[Iri]
    """The classes that events or their nodes may have."""
    of_others: frozenset[Iri]
    """The classes that named individuals may have because of events."""
    names: tuple[TemplatePart, ...]
    """The parts of the names of events (`Template.whole`)."""

    def may_name(self, one: Iri) -> bool:
        """Whether an event may have this name."""
        return may_be_alike(self.names, [(one.value, False)])


@lru_cache(maxsize=64)
def inert(knowledge: Knowledge, mapping: EventMapping) -> Inert:
    """What follows from the events of a mapping.

    Raises:
        NotLifted: more may follow.
    """
    if mapping.turtle is not None:
        raise NotLifted("events bring facts of their own, as Turtle")
    if mapping.linked:
        raise NotLifted("events may have the same name, or name each other (linked)")
    if not is_template(mapping.name):
        raise NotLifted("the names of events come from a column, and may be names of other things")
    return _Reading(knowledge, mapping).inert()


class _Reading:
    def __init__(self, knowledge: Knowledge, mapping: EventMapping) -> None:
        self._knowledge, self._mapping = knowledge, mapping
        self._closure = knowledge.closure

    def inert(self) -> Inert:
        mapping = self._mapping
        self._check_names()
        related = tuple(self._related(mapping.properties))
        properties = frozenset(kind for one in _all(related) for kind in one.kinds)
        for one in properties:
            self._check(one, _SAID_OF_PROPERTIES, _KINDS_OF_PROPERTIES, "property")
        of_others = frozenset(
            class_ for one in _all(related) if isinstance(one.value, Individual | Constant) for class_ in one.of_object
        )
        for one in of_others:
            self._check(one, _SAID_OF_CLASSES, _KINDS_OF_CLASSES, "class")
        by_properties = frozenset(class_ for one in related for class_ in one.of_subject)
        of_class = {class_: self._of_class(class_, related, by_properties) for class_ in self._classes()}
        of_nodes = {class_ for one in _all(related) if isinstance(one.value, Node) for class_ in one.of_object}
        of_events = frozenset[Iri]().union(by_properties, of_nodes, *of_class.values())
        names = Template(mapping.name).whole(self._knowledge.prefixes)
        return Inert(of_class, related, properties, of_events, of_others, names)

    def _check_names(self) -> None:
        """Events have names that nothing else has."""
        prefixes = self._knowledge.prefixes
        events = Template(self._mapping.name).whole(prefixes)
        head = events[0][0]
        for known in self._knowledge.names:
            if known.value.startswith(head) and may_be_alike(events, [(known.value, False)]):
                raise NotLifted(f"the knowledge has the name {known}, which an event ({self._mapping.name}) may have")
        for value in _values(self._mapping.properties):
            if not isinstance(value, Individual) or not is_template(value.name):
                continue  # a column may have any names; filters are lifted only where that does not matter
            if may_be_alike(events, Template(value.name).whole(prefixes)):
                raise NotLifted(f"individuals ({value.name}) may have the names of events ({self._mapping.name})")

    def _classes(self) -> list[Iri]:
        """The classes that the type column may name."""
        if self._mapping.classes is not None:
            return [*dict.fromkeys(name_of(class_, self._knowledge.prefixes) for _, class_ in self._mapping.classes)]
        if self._mapping.type is None:
            return []
        kinds = [self._subjects(TYPE, kind) for kind in _KINDS_OF_CLASSES]
        found = {one for some in [*kinds, self._subjects(_SUB_CLASS, None)] for one in some} | self._knowledge.classes
        named = (one for one in found if not (one.is_made_up or one.value.startswith(_VOCABULARIES)))
        return sorted(named, key=lambda one: one.value)

    def _related(self, properties: tuple[tuple[str, Value], ...]) -> Iterator[Related]:
        for written, value in properties:
            own = property_of(written, self._knowledge.prefixes)
            if own == TYPE:
                class_ = name_of(value.name, self._knowledge.prefixes) if isinstance(value, Constant) else None
                if class_ is None:
                    raise NotLifted("an event has several columns of classes")
                classes = self._facts_of([(_SUBJECT, TYPE, class_)])[0]
                yield Related(own, value, frozenset(), classes, frozenset(), class_=class_)
                continue
            inner = tuple(self._related(value.properties)) if isinstance(value, Node) else ()
            object_: Term = Literal("") if isinstance(value, str) else _OBJECT
            of_subject, of_object, kinds = self._facts_of([(_SUBJECT, own, object_)])
            by_range = of_object if inner else frozenset()
            for one in inner:
                of_object |= one.of_subject
            if inner and self._classes_of(by_range, inner) != of_object:
                raise NotLifted(f"a node that {own} relates to has further classes because of its properties")
            yield Related(own, value, kinds | {own}, of_subject, of_object, by_range, inner)

    def _of_class(self, class_: Iri, related: tuple[Related, ...], by_properties: frozenset[Iri]) -> frozenset[Iri]:
        """The classes of an event of the class. That they do not depend on its properties is checked."""
        alone = self._classes_of([class_], ())
        if self._classes_of([class_], related) != alone | by_properties:
            raise NotLifted(f"an event of class {class_} has further classes because of its properties")
        return alone

    def _classes_of(self, classes: Iterable[Iri], related: Iterable[Related]) -> frozenset[Iri]:
        """The classes of an individual of these classes that is related so."""
        stated: list[Triple] = [(_SUBJECT, TYPE, class_) for class_ in classes]
        other = (
            (_SUBJECT, one.property, _OBJECT) if one.class_ is None else (_SUBJECT, TYPE, one.class_) for one in related
        )
        return self._facts_of([*stated, *other])[0]

    def _facts_of(self, facts: list[Triple]) -> tuple[frozenset[Iri], frozenset[Iri], frozenset[Iri]]:
        """The classes of subject and object and the properties between them that follow from these facts about two new
        individuals. NotLifted if anything else follows.
        """
        closure = Closure(self._closure)
        closure.add(facts)
        if closure.contradiction is not None:
            raise NotLifted(f"an event contradicts the knowledge, {closure.contradiction}")
        number = closure.terms.find
        subject, object_, type_ = number(_SUBJECT), number(_OBJECT), number(TYPE)
        own = [] if subject is None else [*closure.facts.matching(subject, None, None)]
        others = [] if object_ is None else [*closure.facts.matching(object_, None, None)]
        terms = closure.terms
        literal_ = [fact for fact in own if terms.is_literal(fact[2])]
        plain = all(fact[1] == type_ or fact[2] == object_ for fact in own if fact not in literal_)
        if not plain or any(fact[1] != type_ for fact in others):
            raise NotLifted(f"of {facts[-1][1]} more follows than classes")
        if len(closure.facts) - len(self._closure.facts) != len(own) + len(others):
            raise NotLifted(f"of {facts[-1][1]} something follows about other individuals")
        return (
            _iris(terms.term(fact[2]) for fact in own if fact[1] == type_),
            _iris(terms.term(fact[2]) for fact in others),
            _iris(terms.term(fact[1]) for fact in own if fact[1] != type_),
        )

    def _check(self, one: Iri, said: set[Iri], kinds: set[Iri], what: str) -> None:
        """Raises NotLifted if the ontology says more of a property or class of events than what it is a kind of."""
        for subject, predicate, object_ in self._knowledge.facts:
            if one not in (subject, object_) or not isinstance(predicate, Iri):
                continue
            if not predicate.value.startswith(_VOCABULARIES):
                continue  # an annotation
            plain = predicate in said or (predicate == TYPE and subject == one and object_ in kinds)
            plain = plain or (predicate == TYPE and object_ == one)  # a member of the class
            if predicate in (_DOMAIN, _RANGE):
                plain = plain or object_ == one
            if not plain or (predicate in (_SUB_CLASS, _EQUIVALENT_CLASS) and _is_made_up(subject, object_)):
                raise NotLifted(f"what the ontology says of the {what} {one} may concern several individuals")

    def _subjects(self, predicate: Iri, object_: Iri | None) -> list[Iri]:
        terms, facts = self._closure.terms, self._closure.facts
        numbers = terms.find(predicate), None if object_ is None else terms.find(object_)
        if numbers[0] is None or (object_ is not None and numbers[1] is None):
            return []
        return [*_iris(terms.term(fact[0]) for fact in facts.matching(None, numbers[0], numbers[1]))]


_SUBJECT, _OBJECT = Iri("_:an event"), Iri("_:an individual")
"""New individuals, whose facts are looked at."""


def _all(related: tuple[Related, ...]) -> Iterator[Related]:
    for one in related:
        yield one
        yield from _all(one.inner)


def _values(properties: tuple[tuple[str, Value], ...]) -> Iterator[Value]:
    for _, value in properties:
        yield value
        if isinstance(value, Node):
            yield from _values(value.properties)


def _iris(terms: Iterator[Term]) -> frozenset[Iri]:
    return frozenset(term for term in terms if isinstance(term, Iri))


def _is_made_up(*terms: Term) -> bool:
    return any(isinstance(term, Iri) and term.is_made_up for term in terms)
