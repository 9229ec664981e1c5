"""Reads and writes the parts `knowledge` and `mapping` of pattern documents.

Functions import what is known only when a document has some: most patterns have no knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.lang.document.marked_text import Value

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping, Properties
    from cepheid.knowledge.events.mapping import Value as Related
    from cepheid.knowledge.knowledge import Knowledge


def knowledge_of(document: Mapping[str, Any], folder: Path | None) -> Knowledge:
    """The knowledge in files, whose names are relative to the folder, or in the document itself.

    Raises:
        KnowledgeError: it cannot be read, or contradicts itself.
    """
    from cepheid.knowledge.knowledge import Knowledge

    prefixes = document.get("prefixes", {})
    if "ntriples" in document:
        return Knowledge.read(document["ntriples"], format="ntriples", prefixes=prefixes)
    assert folder is not None
    return Knowledge.read([folder / name for name in document["files"]], prefixes=prefixes)


def knowledge_document(knowledge: Knowledge) -> dict[str, Value]:
    """The part from which `knowledge_of` reads the knowledge without files."""
    from cepheid.knowledge.vocabulary import KNOWN_PREFIXES

    document: dict[str, Value] = {"ntriples": knowledge.ntriples}
    prefixes: dict[str, Value] = {
        name: iri for name, iri in knowledge.prefixes.items() if KNOWN_PREFIXES.get(name) != iri
    }
    return document | ({"prefixes": prefixes} if prefixes else {})


def knowledge_digest(knowledge: Knowledge) -> dict[str, Value]:
    """What stands for the knowledge where patterns are compared and messages are made, as it may have many facts."""
    document: dict[str, Value] = {"facts": f"{len(knowledge.facts)} facts ({knowledge.fingerprint})"}
    return document | {"prefixes": knowledge_document(knowledge).get("prefixes", {})}


def mapping_of(document: Mapping[str, Any]) -> EventMapping:
    """The mapping of events.

    Raises:
        PatternError: a part is not of its form.
    """
    from cepheid.knowledge.events.mapping import EventMapping

    properties = _properties_of(document.get("properties", {}))
    return EventMapping(**{**document, "properties": properties})


def _properties_of(document: Mapping[str, Any]) -> Properties:
    return {
        name: [_related_of(one) for one in (given if isinstance(given, list) else [given])]
        for name, given in document.items()
    }


def _related_of(given: Any) -> Related:
    from cepheid.knowledge.events.mapping import constant, individual, node

    match given:
        case {"individual": name}:
            return individual(name)
        case {"constant": name}:
            return constant(name)
        case {"node": properties}:
            return node(_properties_of(properties))
    column: str = given
    return column


def mapping_document(mapping: EventMapping) -> dict[str, Value]:
    """The part from which `mapping_of` reads the mapping. It leaves out what is not given."""
    document: dict[str, Value] = {"name": mapping.name}
    if mapping.type is not None:
        document["type"] = mapping.type
    if mapping.classes is not None:
        document["classes"] = dict(mapping.classes)
    if mapping.properties:
        document["properties"] = _properties_document(mapping.properties)
    if mapping.turtle is not None:
        document["turtle"] = mapping.turtle
    if mapping.linked:
        document["linked"] = True
    return document


def _properties_document(properties: Sequence[tuple[str, Related]]) -> dict[str, Value]:
    values: dict[str, list[Value]] = {}
    for name, related in properties:
        values.setdefault(name, []).append(_related_document(related))
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _related_document(related: Related) -> Value:
    from cepheid.knowledge.events.mapping import Constant, Individual, Node

    match related:
        case Individual(name):
            return {"individual": name}
        case Constant(name):
            return {"constant": name}
        case Node(properties):
            return {"node": _properties_document(properties)}
    return related


def meaning_document(knowledge: Knowledge | None, mapping: EventMapping | None) -> dict[str, Value]:
    """The keys `knowledge` and `mapping` of a pattern's document; none if there is no knowledge."""
    if knowledge is None or mapping is None:
        return {}
    return {"knowledge": knowledge_document(knowledge), "mapping": mapping_document(mapping)}
