"""What is wrong with a mapping of events: its columns and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from cepheid.errors import KnowledgeError, Problem, did_you_mean
from cepheid.knowledge.events.literals import fits
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value
from cepheid.knowledge.events.names import Template, is_template, name_of, property_of
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.unknown import unknown_names
from cepheid.plan.conditions.types import sql_name

WHERE = "mapping"


def column_problems(mapping: EventMapping, columns: pa.Schema) -> Iterator[Problem]:
    """Columns that the mapping reads and that are missing or of types that do not fit, each once."""
    for name, readings in mapping.readings.items():
        if name not in columns.names:
            yield Problem(f"no column named {name!r}", WHERE, hint=did_you_mean(name, columns.names))
            continue
        type_ = columns.field(name).type
        unfit = [reading.value for reading in readings if not fits(type_, reading)]
        if unfit:
            yield Problem(f"the column {name!r} must be {' and '.join(unfit)}; it is {sql_name(type_)}", WHERE)


def name_problems(mapping: EventMapping, knowledge: Knowledge) -> Iterator[Problem]:
    """Names of the mapping that cannot be read; and, unless events bring facts of their own, properties and classes
    that the knowledge does not have.
    """
    prefixes = knowledge.prefixes
    for kind, written in dict.fromkeys(_names(mapping)):
        try:
            if kind == "template":
                Template(written).whole(prefixes)
                continue
            name = property_of(written, prefixes) if kind == "property" else name_of(written, prefixes)
        except KnowledgeError as error:
            yield Problem(str(error), f"{WHERE}, {written!r}")
            continue
        if kind != "individual" and not mapping.brings_any_facts:
            yield from unknown_names(knowledge, [name], f"{WHERE}, {written!r}")


def _names(mapping: EventMapping) -> Iterator[tuple[str, str]]:
    """The names in the mapping, each with what it names: a template of individuals, a property, a class or an
    individual.
    """
    if is_template(mapping.name):
        yield "template", mapping.name
    yield from (("class", class_) for _, class_ in mapping.classes or ())
    yield from _names_in(mapping.properties)


def _names_in(properties: Sequence[tuple[str, Value]]) -> Iterator[tuple[str, str]]:
    for property_, value in properties:
        yield "property", property_
        match value:
            case Individual(name) if is_template(name):
                yield "template", name
            case Constant(name):
                yield "class" if property_ == "a" else "individual", name
            case Node(inner):
                yield from _names_in(inner)
