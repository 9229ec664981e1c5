"""The individuals and the facts of events, read column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.errors import EventError, KnowledgeError
from cepheid.knowledge.events.literals import elements, literals, of_distinct, texts
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node, Value, readings_of
from cepheid.knowledge.events.names import TYPE, Template, encoded, is_template, name_of, property_of
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri, Term, Triple

Shown: TypeAlias = Callable[[int], Mapping[str, Any]]
"""The values of an event by its number, for messages."""
Pair: TypeAlias = tuple[Iri, Term]
"""A property and what it relates an individual to."""


class Objects(NamedTuple):
    """What a property relates individuals to; None: nothing, as a value is NULL."""

    terms: Sequence[Term | None]
    events: Sequence[int] | None = None
    """The number of each term's event; None: each event has one term."""


class EventFacts:
    """Reads the facts of events."""

    def __init__(self, mapping: EventMapping, prefixes: Mapping[str, str]) -> None:
        self._mapping, self._prefixes = mapping, prefixes
        # On one line with the text, so that errors have the right line.
        self._head = "".join(f"@prefix {name}: <{iri}> . " for name, iri in prefixes.items())

    def read(self, columns: Mapping[str, pa.Array], shown: Shown) -> list[tuple[Iri, list[Triple]]]:
        """For each event its individual and its facts; `columns` has those that the mapping reads.

        Raises:
            EventError: an event has no name, or a value that must be a name is none.
            KnowledgeError: an event's Turtle has an error.
        """
        mapping = self._mapping
        batch = _Batch(columns, shown, self._prefixes)
        names = batch.event_names(mapping.name)
        said: list[list[Triple]] = [[] for _ in names]
        for property_, objects in batch.related(mapping, names):
            if objects.events is None:
                for name, facts, term in zip(names, said, objects.terms, strict=True):
                    if term is not None:
                        facts.append((name, property_, term))
            else:
                for event, term in zip(objects.events, objects.terms, strict=True):
                    if term is not None:
                        said[event].append((names[event], property_, term))
        for event, facts in batch.of_nodes:
            said[event] += facts
        if mapping.turtle is not None:
            for name, facts, text in zip(names, said, columns[mapping.turtle].to_pylist(), strict=True):
                facts.extend([] if text is None else self._stated(name.value, text))
        return [*zip(names, said, strict=True)]

    def _stated(self, name: str, text: str) -> list[Triple]:
        # The same event has the same nodes when it comes again, as in a replay.
        return triples(self._head + text, "turtle", f"the facts of the event {name}", _digest(f"{name}\n{text}"))


class _Batch:
    """Columns of events as terms."""

    def __init__(self, columns: Mapping[str, pa.Array], shown: Shown, prefixes: Mapping[str, str]) -> None:
        self._columns, self._shown, self._prefixes = columns, shown, prefixes
        self.of_nodes: list[tuple[int, list[Triple]]] = []
        """The facts about nodes, each with the number of its event. `related` adds them."""

    def event_names(self, written: str) -> list[Iri]:
        """The name of each event; EventError if one has none."""
        found = self._individuals(written).terms
        names = [term for term in found if isinstance(term, Iri)]
        if len(names) < len(found):
            columns = Template(written).columns if is_template(written) else (written,)
            event = found.index(None)
            null = " and ".join(repr(one) for one in columns if not self._columns[one][event].is_valid)
            message = f"an event needs a name to be an individual, and {null} is NULL"
            raise EventError(f"{message}: {self._shown(event)}. Leave such events out, or map another column")
        return names

    def related(self, mapping: EventMapping, names: Sequence[Iri]) -> list[tuple[Iri, Objects]]:
        """What the events are related to, by property."""
        found = [] if mapping.type is None else [(TYPE, self._classes(mapping.type, mapping.classes))]
        return found + self._properties(mapping.properties, names, "")

    def _properties(
        self, properties: Sequence[tuple[str, Value]], names: Sequence[Iri], place: str
    ) -> list[tuple[Iri, Objects]]:
        return [
            (property_of(name, self._prefixes), self._objects(value, names, f"{place}.{number}"))
            for number, (name, value) in enumerate(properties)
        ]

    def _objects(self, value: Value, names: Sequence[Iri], place: str) -> Objects:
        match value:
            case Individual(name):
                return self._individuals(name)
            case Constant(name):
                return Objects([name_of(name, self._prefixes)] * len(names))
            case Node(properties):
                return self._nodes(properties, names, place)
        found = elements(self._columns[value])
        return Objects(literals(found.values), found.events)

    def _classes(self, column: str, classes: Sequence[tuple[str, str]] | None) -> Objects:
        if classes is None:
            return self._individuals(column)
        known = {value: name_of(class_, self._prefixes) for value, class_ in classes}
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
            made = of_distinct(
                found.values, lambda some: [Iri(f"{before}{encoded(one)}{after}") for one in texts(some)]
            )
            return Objects(made, found.events)
        values = {name: of_distinct(self._columns[name], lambda some: [*map(encoded, texts(some))]) for name in columns}
        count = len(next(iter(values.values())))
        rows = zip(*(values[text] if is_column else [text] * count for text, is_column in parts), strict=True)
        return Objects([None if None in row else Iri("".join(map(str, row))) for row in rows])

    def _named(self, column: str) -> Objects:
        found = elements(self._columns[column])

        def named(some: pa.Array) -> list[Iri]:
            return [name_of(text, self._prefixes) for text in some.to_pylist()]

        try:
            return Objects(of_distinct(found.values, named), found.events)
        except KnowledgeError:
            self._refuse(column, found.values.to_pylist(), found.events)
            raise

    def _refuse(self, column: str, values: Sequence[str | None], events: Sequence[int] | None) -> None:
        """Raises EventError for the first event with a value that is no name."""
        for event, text in zip(range(len(values)) if events is None else events, values, strict=True):
            try:
                if text is not None:
                    name_of(text, self._prefixes)
            except KnowledgeError as error:
                raise EventError(f"{column!r} must hold names: {error} (event {self._shown(event)})") from None

    # Nodes

    def _nodes(self, properties: Sequence[tuple[str, Value]], names: Sequence[Iri], place: str) -> Objects:
        """A node for each event that has a value for it."""
        by_event: list[list[Pair]] = [[] for _ in names]
        said: list[list[str]] = [[name.value] for name in names]
        is_there = [not any(readings_of(properties))] * len(names)
        for (_, value), (property_, objects) in zip(
            properties, self._properties(properties, names, place), strict=True
        ):
            counts = any(readings_of([("", value)]))
            events = range(len(names)) if objects.events is None else objects.events
            texts = _texts(property_, objects.terms)
            for event, term in zip(events, objects.terms, strict=True):
                if term is not None:
                    by_event[event].append((property_, term))
                    said[event].append(texts[id(term)])
                    is_there[event] |= counts
        nodes: list[Iri | None] = [None] * len(names)
        for event, pairs in enumerate(by_event):
            if is_there[event]:
                nodes[event] = node = _node(said[event], place)
                self.of_nodes.append((event, [(node, property_, term) for property_, term in pairs]))
        return Objects(nodes)


def _texts(property_: Iri, terms: Iterable[Term | None]) -> dict[int, str]:
    """The text of the property with each term, by the identity of the term: events have most of them in common."""
    known = {id(term): term for term in terms}
    return {key: f"{property_}\n{term}" for key, term in known.items()}


def _node(said: Sequence[str], place: str) -> Iri:
    """The name of an event's node. It depends on the event and what is said of the node: two events may say different
    things under one name, and the same event has the same nodes when it comes again.
    """
    digest = _digest("\n".join(said))
    return Iri(f"_:{digest}.c{place}")


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
