"""What is wrong with a mapping of events: its columns and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa

from cepheid.errors import KnowledgeError, Problem, did_you_mean
from cepheid.knowledge.closure.rules import name as known_name
from cepheid.knowledge.events.literals import fits
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value
from cepheid.knowledge.events.names import TYPE, Template, is_template, name_of, property_of
from cepheid.knowledge.filters.syntax import Atom
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.unknown import mistaken_name, unknown_names
from cepheid.plan.conditions.types import sql_name

WHERE = "mapping"
_Kind: TypeAlias = OneOf["template", "property", "class", "individual"]
"""What a name of the mapping is of."""


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
            where = f"{WHERE}, {written!r}"
            yield from unknown_names(knowledge, [name], where)
            yield from mistaken_name(knowledge, Atom(kind, name, ()), where)


def mistaken_values(mapping: EventMapping, knowledge: Knowledge) -> Iterator[str]:
    """Warnings for columns of literals as values of properties that relate individuals, and the other way round.

    The names of the mapping must have no problems.
    """
    stated = {fact for fact in knowledge.facts if fact[1] == TYPE}
    for written, value in dict.fromkeys(_properties(mapping.properties)):
        own = property_of(written, knowledge.prefixes)
        is_literal = isinstance(value, str)
        declared = {kind for kind in (_OF_INDIVIDUALS, _OF_LITERALS) if (own, TYPE, kind) in stated}
        if declared == {_OF_INDIVIDUALS if is_literal else _OF_LITERALS}:
            yield f"{WHERE}, {written!r}: {_COLUMN.format(own, value) if is_literal else _INDIVIDUAL.format(own)}"


_OF_INDIVIDUALS, _OF_LITERALS = known_name("owl:ObjectProperty"), known_name("owl:DatatypeProperty")
_COLUMN = "{0} relates individuals (owl:ObjectProperty), and a column has literals. Write individual({1!r})"
_INDIVIDUAL = "{0} has literals (owl:DatatypeProperty), and is given an individual. Write the name of a column alone"


def _properties(given: Sequence[tuple[str, Value]]) -> Iterator[tuple[str, Value]]:
    for written, value in given:
        if written != "a":
            yield written, value
        if isinstance(value, Node):
            yield from _properties(value.properties)


def _names(mapping: EventMapping) -> Iterator[tuple[_Kind, str]]:
    """The names in the mapping, each with what it names: a template of individuals, a property, a class or an
    individual.
    """
    if is_template(mapping.name):
        yield "template", mapping.name
    yield from (("class", class_) for _, class_ in mapping.classes or ())
    yield from _names_in(mapping.properties)


def _names_in(properties: Sequence[tuple[str, Value]]) -> Iterator[tuple[_Kind, str]]:
    for property_, value in properties:
        yield "property", property_
        match value:
            case Individual(name) if is_template(name):
                yield "template", name
            case Constant(name):
                yield "class" if property_ == "a" else "individual", name
            case Node(inner):
                yield from _names_in(inner)
