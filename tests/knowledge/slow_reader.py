"""The definition of what a mapping says: one event after the other, from Python's values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value, readings_of
from cepheid.knowledge.events.names import TYPE, Template, encoded, is_template, name_of, property_of
from cepheid.knowledge.terms import XSD, Iri, Literal

Said: TypeAlias = "frozenset[tuple[Iri, Iri | Literal | Nameless]]"


@dataclass(frozen=True)
class Nameless:
    """A node of an event: what is said of it."""

    said: Said
    place: str


def said(mapping: EventMapping, row: Mapping[str, Any], prefixes: Mapping[str, str]) -> tuple[str, Said]:
    """The name of an event, and what is said of it."""
    (name,) = _individuals(mapping.name, row, prefixes)
    properties = list(mapping.properties)
    found = {(property_, one) for property_, one in _said(properties, row, prefixes, "")}
    if mapping.type is not None:
        known = dict(mapping.classes or ())
        for value in _values(row[mapping.type]):
            if mapping.classes is None or value in known:
                found.add((TYPE, name_of(known.get(value, value), prefixes)))
    return name.value, frozenset(found)


def _said(
    properties: Sequence[tuple[str, Value]], row: Mapping[str, Any], prefixes: Mapping[str, str], place: str
) -> Iterator[tuple[Iri, Iri | Literal | Nameless]]:
    for number, (property_, value) in enumerate(properties):
        for one in _objects(value, row, prefixes, f"{place}.{number}"):
            yield property_of(property_, prefixes), one


def _objects(
    value: Value, row: Mapping[str, Any], prefixes: Mapping[str, str], place: str
) -> Iterator[Iri | Literal | Nameless]:
    match value:
        case Individual(name):
            yield from _individuals(name, row, prefixes)
        case Constant(name):
            yield name_of(name, prefixes)
        case Node(properties):
            has = [[*_objects(one, row, prefixes, "")] for _, one in properties if any(readings_of([("", one)]))]
            if any(has) or not has:
                yield Nameless(frozenset(_said(properties, row, prefixes, place)), place)
        case _:
            yield from (Literal(_text(one), f"{XSD}{_type(one)}") for one in _values(row[value]))


def _individuals(written: str, row: Mapping[str, Any], prefixes: Mapping[str, str]) -> Iterator[Iri]:
    if not is_template(written):
        yield from (name_of(one, prefixes) for one in _values(row[written]))
        return
    parts = Template(written).whole(prefixes)
    columns = [text for text, is_column in parts if is_column]
    several = _values(row[columns[0]]) if len(columns) == 1 else [None]
    for one in several:
        values = {name: one if len(columns) == 1 else row[name] for name in columns}
        if None not in values.values():
            yield Iri("".join(encoded(_text(values[text])) if is_column else text for text, is_column in parts))


def _values(value: Any) -> list[Any]:
    return [one for one in (value if isinstance(value, list) else [value]) if one is not None]


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            shown = value.replace(tzinfo=None).isoformat()
            return (shown.rstrip("0") if "." in shown else shown) + ("Z" if value.tzinfo else "")
        case Decimal():
            whole, _, fraction = f"{value:f}".partition(".")
            return f"{whole}.{fraction.rstrip('0') or '0'}"
    return str(value)


def _type(value: Any) -> str:
    types = [(bool, "boolean"), (int, "integer"), (str, "string"), (datetime, "dateTime"), (date, "date")]
    return next((name for type_, name in types if isinstance(value, type_)), "decimal")
