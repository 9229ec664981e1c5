"""Mappings that give an event classes that exclude each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cepheid.knowledge.closure.closure import Closure, Contradiction
from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.events.mapping import Constant, EventMapping
from cepheid.knowledge.events.names import name_of, property_of
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri, Literal, Term, Triple

_EVENT, _OTHER = Iri("_:an event"), Iri("_:an individual")


def exclusive_classes(knowledge: Knowledge, mapping: EventMapping, classes: Collection[Iri]) -> Iterator[str]:
    """Warnings for events that contradict the knowledge by their class and one mapped property, or by constant classes.

    Args:
        mapping: One whose names have no problems.
        classes: The classes that events may have, if the mapping does not list them.
    """
    prefixes = knowledge.prefixes
    listed = [*dict.fromkeys(name_of(name, prefixes) for _, name in mapping.classes or ())]
    constant = [
        name_of(value.name, prefixes)
        for name, value in mapping.properties
        if name == "a" and isinstance(value, Constant)
    ]
    properties = {property_of(name, prefixes): value for name, value in mapping.properties if name != "a"}
    always: list[Triple] = [(_EVENT, TYPE, one) for one in constant]
    if (found := _contradiction(knowledge, always)) is not None:
        yield _warning("every event", found)
        return
    for class_ in listed or (sorted(classes, key=str) if mapping.type is not None else ()):
        own: list[Triple] = [*always, (_EVENT, TYPE, class_)]
        if (found := _contradiction(knowledge, own)) is not None:
            yield _warning(f"every event of class {class_}", found)
            continue
        for property_, value in properties.items():
            object_: Term = Literal("") if isinstance(value, str) else _OTHER
            if (found := _contradiction(knowledge, [*own, (_EVENT, property_, object_)])) is not None:
                yield _warning(f"an event of class {class_} that has {property_}", found)


def _contradiction(knowledge: Knowledge, facts: Sequence[Triple]) -> Contradiction | None:
    closure = Closure(knowledge.closure)
    closure.add(facts)
    return closure.contradiction


def _warning(what: str, found: Contradiction) -> str:
    classes = sorted({str(fact[2]) for fact in found.facts if fact[0] == _EVENT and fact[1] == TYPE})
    if len(classes) < 2:
        return f"{what} contradicts the knowledge, {found}"
    return (
        f"{what} is of classes that exclude each other: {' and '.join(classes)}. Correct the mapping or the knowledge"
    )
