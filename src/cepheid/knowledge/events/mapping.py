"""How events become individuals of an ontology: which facts the columns of an event are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from cepheid.errors import KnowledgeError, PatternError
from cepheid.knowledge.events.names import Template, is_template


class Reading(Enum):
    """How a column is read, and so which types it may have."""

    TEXT = "STRING"
    TEXTS = "STRING or an array of STRING"
    VALUE = "a number, a text, a time, a duration or a boolean"
    VALUES = "a number, a text, a time, a duration or a boolean, or an array of these"


@dataclass(frozen=True)
class Individual:
    """An individual that an event names."""

    name: str
    """A column with names, or a template with columns in braces. Names are written as in `EventMapping.name`."""


@dataclass(frozen=True)
class Constant:
    """An individual, the same for all events."""

    name: str


@dataclass(frozen=True)
class Node:
    """An individual of the event's own, without a name. An event for which all columns of a node are NULL has none."""

    properties: tuple[tuple[str, Value], ...]


Value: TypeAlias = "str | Individual | Constant | Node"
"""What a property relates an individual to. A text is the column with the literal."""
Properties: TypeAlias = Mapping[str, "Value | Sequence[Value]"]
"""Values by the names of properties; `a` is the property of classes, as in Turtle."""


def individual(name: str) -> Individual:
    """An individual that an event names: a column with names, as in `individual("seller")`, or a template with columns
    in braces, as in `individual("shop:item/{item}")`.
    """
    return Individual(_text("individual", name))


def constant(name: str) -> Constant:
    """An individual or a class, the same for all events, as in `constant("shop:Item")`."""
    return Constant(_text("constant", name))


def node(properties: Properties) -> Node:
    """An individual of the event's own, without a name, as in `node({"a": constant("Binding"), "value": "price"})`."""
    if not properties:
        raise PatternError("mapping: a node has properties, as in node({'value': 'price'})")
    return Node(_pairs(properties))


@dataclass(frozen=True, init=False)
class EventMapping:
    """How the columns of an event become its name and its facts."""

    name: str
    """The name (IRI) of the event's individual."""
    type: str | None
    """The column with the event's class."""
    classes: tuple[tuple[str, str], ...] | None
    """The class by the value of that column; None: its values are the names of classes."""
    properties: tuple[tuple[str, Value], ...]
    """What the event's individual is related to, by properties. A property may have several."""
    turtle: str | None
    """The column with the event's facts as Turtle. Nodes without a name are the event's own."""
    repeated: bool
    """Whether several events of a key may have one name, and so be one individual."""

    def __init__(
        self,
        name: str,
        *,
        type: str | None = None,  # noqa: A002 - the type of the event
        classes: Mapping[str, str] | None = None,
        properties: Properties | None = None,
        turtle: str | None = None,
        repeated: bool = False,
    ) -> None:
        """
        Args:
            name: The name (IRI) of the event's individual: a column with names, or a template such as
                "http://shop.example/event/{id}" with columns in braces, whose values are percent-encoded. Names are
                written as `http://…`, `urn:…`, `<any IRI>`, `prefix:name`, or `name` in the prefix "".
            type: The column with the event's class: the name of a class.
            classes: The names of classes by the values of that column, where these are no names of classes. Events with
                other values have no class.
            properties: What the event's individual is related to, by the names of properties: a column, which becomes a
                literal of its type; `individual(…)`, `constant(…)` or `node(…)`; or a list of these. An array gives one
                fact for each element, NULL gives none.
            turtle: The column with facts as Turtle, which may say anything of anything. Nodes without a name are the
                event's own.
            repeated: Whether several events of a key may have one name. They are then one individual: what the earlier
                ones say holds for the later ones, too. By default each event must have a name of its own, as only then
                filters can become SQL.

        Raises:
            PatternError: an argument is not of this form.
        """
        fields = {
            "name": _text("name", name),
            "type": None if type is None else _text("type", type),
            "classes": None if classes is None else tuple(sorted(_classes(type, classes))),
            "properties": _pairs(properties or {}),
            "turtle": None if turtle is None else _text("turtle", turtle),
            "repeated": _flag("repeated", repeated),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        return tuple(self.readings)

    @property
    def readings(self) -> Mapping[str, Sequence[Reading]]:
        """The columns that it reads, each with the ways in which it is read."""
        found: dict[str, dict[Reading, None]] = {}
        for column, reading in self._each_reading():
            found.setdefault(column, {})[reading] = None
        return {column: [*ways] for column, ways in found.items()}

    def _each_reading(self) -> Iterator[tuple[str, Reading]]:
        if is_template(self.name):
            yield from ((column, Reading.VALUE) for column in Template(self.name).columns)
        else:
            yield self.name, Reading.TEXT
        if self.type is not None:
            yield self.type, Reading.TEXTS
        yield from readings_of(self.properties)
        if self.turtle is not None:
            yield self.turtle, Reading.TEXT

    @property
    def brings_any_facts(self) -> bool:
        """Whether events may say anything of anything; otherwise only the mapped properties of themselves."""
        return self.turtle is not None


def _flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise PatternError(f"mapping: {name} is True or False, got {given!r}")
    return given


def readings_of(properties: Sequence[tuple[str, Value]]) -> Iterator[tuple[str, Reading]]:
    """The columns that these properties read, each with every way in which it is read."""
    for _, value in properties:
        match value:
            case str(column):
                yield column, Reading.VALUES
            case Individual(name) if is_template(name):
                columns = Template(name).columns
                yield from ((column, Reading.VALUES if len(columns) == 1 else Reading.VALUE) for column in columns)
            case Individual(column):
                yield column, Reading.TEXTS
            case Node(inner):
                yield from readings_of(inner)


def _text(argument: str, given: object) -> str:
    """The name of a column, or a template."""
    if not isinstance(given, str) or not given:
        raise PatternError(f"mapping: {argument}: text is expected, got {given!r}")
    if is_template(given):
        try:
            columns = Template(given).columns
        except KnowledgeError as error:
            raise PatternError(f"mapping: {argument} {given!r}: {error}") from None
        if argument not in ("name", "individual") or not columns:
            raise PatternError(f"mapping: {argument} {given!r} has no columns in braces")
    return given


def _classes(column: str | None, given: object) -> Iterator[tuple[str, str]]:
    if column is None:
        raise PatternError("mapping: classes: they belong to the values of a column. Name it with type=")
    if not isinstance(given, Mapping) or not given:
        raise PatternError(f"mapping: classes: classes by the values of {column!r} are expected, got {given!r}")
    for value, class_ in given.items():
        if not isinstance(value, str) or not isinstance(class_, str):
            raise PatternError(f"mapping: classes: texts are expected, got {value!r}: {class_!r}")
        yield value, class_


def _pairs(properties: object) -> tuple[tuple[str, Value], ...]:
    """The values of properties one by one."""
    if not isinstance(properties, Mapping):
        raise PatternError(f"mapping: properties: values by the names of properties are expected, got {properties!r}")
    return tuple(
        (_property(name), _value(name, one))
        for name, given in properties.items()
        for one in (given if isinstance(given, list | tuple) else [given])
    )


def _property(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise PatternError(f"mapping: the name of a property is expected, got {name!r}")
    return name


def _value(name: str, given: object) -> Value:
    if isinstance(given, Individual | Constant | Node):
        return given
    if not isinstance(given, str) or not given:
        known = "a column, individual(…), constant(…) or node(…)"
        raise PatternError(f"mapping: {name}: {known} is expected, got {given!r}")
    if is_template(given):
        raise PatternError(f"mapping: {name}: {given!r} names an individual: write individual({given!r})")
    if name == "a":
        raise PatternError(f"mapping: a: classes are named: write individual({given!r}), or constant(…)")
    return given
