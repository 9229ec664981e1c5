"""The individuals and the facts of events, read column by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError, KnowledgeError
from cepheid.knowledge.events.coded import NOTHING, Coded, FactColumn, Numbers, same
from cepheid.knowledge.events.literals import elements, joined, literal_terms, of_distinct, texts
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value, readings_of
from cepheid.knowledge.events.names import TYPE, Template, is_template, name_of, percent_encoded, property_of
from cepheid.knowledge.events.nodes import NodeNames
from cepheid.knowledge.reading import triple_texts
from cepheid.knowledge.terms import Iri, Triple, term_of

Shown: TypeAlias = Callable[[int], Mapping[str, Any]]
"""The values of an event by its number, for messages."""


class Objects(NamedTuple):
    """What a property relates individuals to."""

    terms: Coded
    events: Numbers | None = None
    """The number of each term's event, ascending; None: each event has one term."""


class EventsSaid(NamedTuple):
    """The individuals of events, and their facts."""

    names: Coded
    columns: Sequence[FactColumn]


class EventFacts:
    """Reads the facts of events."""

    def __init__(self, mapping: EventMapping, prefixes: Mapping[str, str]) -> None:
        self._mapping, self._prefixes = mapping, prefixes
        # On one line with the text, so that errors have the right line.
        self._head = "".join(f"@prefix {name}: <{iri}> . " for name, iri in prefixes.items())

    def names(self, columns: Mapping[str, pa.Array], shown: Shown) -> Coded:
        """The individual of each event; `columns` has those that the mapping reads.

        Raises:
            EventError: an event has no name, or a value that must be a name is none.
        """
        return _Batch(columns, shown, self._prefixes).event_names(self._mapping.name)

    def said(self, columns: Mapping[str, pa.Array], shown: Shown) -> EventsSaid:
        """The individuals and the facts of events; `columns` has those that the mapping reads.

        Raises:
            EventError: an event has no name, or a value that must be a name is none.
            KnowledgeError: an event's Turtle has an error.
        """
        batch = _Batch(columns, shown, self._prefixes)
        names = batch.event_names(self._mapping.name)
        facts = batch.related(self._mapping, names)
        if self._mapping.turtle is not None:
            facts.append(self._stated(names, columns[self._mapping.turtle]))
        return EventsSaid(names, facts)

    def read(self, columns: Mapping[str, pa.Array], shown: Shown) -> list[tuple[Iri, list[Triple]]]:
        """The same as terms: for each event its individual and its facts."""
        names, facts = self.said(columns, shown)
        found: list[list[Triple]] = [[] for _ in names.codes]
        for column in facts:
            for event, triple in _triples(column):
                found[event].append(triple)
        return [(Iri(names.texts[code]), own) for code, own in zip(names.codes.tolist(), found, strict=True)]

    def _stated(self, names: Coded, column: pa.Array) -> FactColumn:
        """The facts that events bring as Turtle."""
        codes: defaultdict[str, int] = defaultdict(lambda: len(codes))
        found, events = list[int](), list[int]()
        for event, (name, text) in enumerate(zip(names.codes.tolist(), column.to_pylist(), strict=True)):
            if text is not None:
                before = len(found)
                for triple in self._texts(names.texts[name], text):
                    found += map(codes.__getitem__, triple)
                events += [event] * ((len(found) - before) // 3)
        numbers, known = np.array(found, np.int32).reshape(-1, 3).T, [*codes]
        subjects, predicates, objects = (Coded(part, known) for part in numbers)
        return FactColumn(subjects, predicates, objects, np.array(events, np.int64))

    def _texts(self, name: str, text: str) -> list[tuple[str, str, str]]:
        # The same event has the same nodes when it comes again, as in a replay.
        scope = blake2b(f"{name}\n{text}".encode(), digest_size=8).hexdigest()
        return triple_texts(self._head + text, "turtle", f"the facts of the event {name}", scope, self._head)


def _triples(column: FactColumn) -> list[tuple[int, Triple]]:
    """The facts, each with the number of its event."""
    events = range(len(column.objects.codes)) if column.events is None else column.events.tolist()
    parts = [(part.codes.tolist(), [*map(term_of, part.texts)]) for part in column[:3]]
    rows = zip(events, *(codes for codes, _ in parts), strict=True)
    (_, subjects), (_, predicates), (_, objects) = parts
    return [(event, (subjects[s], predicates[p], objects[o])) for event, s, p, o in rows if NOTHING not in (s, o)]


def terms_of_events(source: str | Individual, columns: Mapping[str, pa.Array], prefixes: Mapping[str, str]) -> Coded:
    """For each event the literal of a column, or the individual that columns name. A value that is no name has none.
    No column has arrays.
    """
    if isinstance(source, Individual) and not is_template(source.name):

        def named(texts_: pa.Array) -> list[str | None]:
            return [_name_or_none(text, prefixes) for text in texts_.to_pylist()]

        return of_distinct(columns[source.name], named)
    return _Batch(columns, lambda _: {}, prefixes).objects(source).terms


def _name_or_none(text: str, prefixes: Mapping[str, str]) -> str | None:
    try:
        return name_of(text, prefixes).value
    except KnowledgeError:
        return None


class _Batch:
    """Columns of events as terms."""

    def __init__(self, columns: Mapping[str, pa.Array], shown: Shown, prefixes: Mapping[str, str]) -> None:
        self._columns, self._shown, self._prefixes = columns, shown, prefixes
        self._of_nodes: list[FactColumn] = []
        """The facts about nodes."""

    def event_names(self, written: str) -> Coded:
        """The name of each event; EventError if one has none."""
        found = self._individuals(written).terms
        if NOTHING in found.codes:
            columns = Template(written).columns if is_template(written) else (written,)
            event = found.codes.tolist().index(NOTHING)
            null = " and ".join(repr(one) for one in columns if not self._columns[one][event].is_valid)
            message = f"an event needs a name to be an individual, and {null} is NULL"
            raise EventError(f"{message}: {self._shown(event)}. Leave such events out, or map another column")
        return found

    def related(self, mapping: EventMapping, names: Coded) -> list[FactColumn]:
        """What events say by columns."""
        found = [] if mapping.type is None else [(TYPE, self._classes(mapping.type, mapping.classes))]
        found += self._properties(mapping.properties, NodeNames(names), "")
        return [_facts(names, *one) for one in found] + self._of_nodes

    def _properties(
        self, properties: Sequence[tuple[str, Value]], names: NodeNames, place: str
    ) -> list[tuple[Iri, Objects]]:
        return [
            (property_of(name, self._prefixes), self._objects(value, names, f"{place}.{number}"))
            for number, (name, value) in enumerate(properties)
        ]

    def _objects(self, value: Value, names: NodeNames, place: str) -> Objects:
        match value:
            case Constant(name):
                return Objects(same(name_of(name, self._prefixes).value, len(names)))
            case Node(properties):
                return Objects(self._nodes(properties, names, place))
        return self.objects(value)

    def objects(self, source: str | Individual) -> Objects:
        """The literals of a column, or the individuals that columns name."""
        if isinstance(source, Individual):
            return self._individuals(source.name)
        found = elements(self._columns[source])
        return Objects(literal_terms(found.values), found.events)

    def _classes(self, column: str, classes: Sequence[tuple[str, str]] | None) -> Objects:
        if classes is None:
            return self._individuals(column)
        known = {value: name_of(class_, self._prefixes).value for value, class_ in classes}
        found = elements(self._columns[column])
        return Objects(of_distinct(found.values, lambda some: [*map(known.get, some.to_pylist())]), found.events)

    # Names

    def _individuals(self, written: str) -> Objects:
        """The names in a column, or those that a template makes."""
        if not is_template(written):
            return self._named(written)
        parts = Template(written).whole(self._prefixes)
        columns = [text for text, is_column in parts if is_column]
        if len(columns) == 1:
            at = next(number for number, (_, is_column) in enumerate(parts) if is_column)
            before, after = ("".join(text for text, _ in some) for some in (parts[:at], parts[at + 1 :]))
            found = elements(self._columns[columns[0]])
            made = of_distinct(found.values, lambda some: joined(before, percent_encoded(texts(some)), after))
            return Objects(made, found.events)
        values = {name: _each(self._columns[name]) for name in columns}
        rows = joined(*(values[text] if is_column else text for text, is_column in parts))
        return Objects(of_distinct(rows, lambda some: some))

    def _named(self, column: str) -> Objects:
        found = elements(self._columns[column])

        def named(some: pa.Array) -> list[str]:
            return [name_of(text, self._prefixes).value for text in some.to_pylist()]

        try:
            return Objects(of_distinct(found.values, named), found.events)
        except KnowledgeError:
            self._refuse(column, found.values.to_pylist(), found.events)
            raise

    def _refuse(self, column: str, values: Sequence[str | None], events: Numbers | None) -> None:
        """Raises EventError for the first event with a value that is no name."""
        for event, text in zip(range(len(values)) if events is None else events.tolist(), values, strict=True):
            try:
                if text is not None:
                    name_of(text, self._prefixes)
            except KnowledgeError as error:
                raise EventError(f"{column!r} must hold names: {error} (event {self._shown(event)})") from None

    # Nodes

    def _nodes(self, properties: Sequence[tuple[str, Value]], names: NodeNames, place: str) -> Coded:
        """A node for each event that has a value for it."""
        related = self._properties(properties, names, place)
        depends = [any(readings_of([one])) for one in properties]
        said = names.of_nodes([objects for _, objects in related], depends, place)
        self._of_nodes += [_facts(said, property_, objects) for property_, objects in related]
        return said


def _each(column: pa.Array) -> pa.Array:
    """The texts of a column for a name."""
    codes, found = of_distinct(column, lambda some: percent_encoded(texts(some)))
    return pa.array(found, pa.string()).take(pa.array(codes, mask=codes == NOTHING))


def _facts(subjects: Coded, property_: Iri, objects: Objects) -> FactColumn:
    events = objects.events
    own = subjects if events is None else subjects.take(events)
    return FactColumn(own, same(property_.value, len(own.codes)), objects.terms, events)
