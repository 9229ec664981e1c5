"""Semantic filters → SQL over the columns of events, where each event says all that matters (`Inert`).

An atom about an event becomes a condition on its columns. What remains is about individuals that events name and those
that the knowledge knows: it is asked once, of the knowledge alone, and becomes a list of names. If atoms can be true in
several ways, one of these must be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import pyarrow as pa

from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.events.literals import is_array
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node
from cepheid.knowledge.events.names import name_of
from cepheid.knowledge.events.written import written_names
from cepheid.knowledge.filters.syntax import Argument, Atom, Variable
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.question import Question
from cepheid.knowledge.terms import Iri, Literal
from cepheid.lang.expression import Expression
from cepheid.lang.parameters import string_literal
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.absence import follows
from cepheid.plan.semantics.builtins import tested
from cepheid.plan.semantics.inert import Inert, NotLifted, Related, inert
from cepheid.plan.semantics.names_sql import Names, quoted
from cepheid.plan.semantics.others import conditions_of_others
from cepheid.plan.semantics.symbols import Event, Named, OwnNode, Symbol, Valued, Way
from cepheid.plan.semantics.values import of_column

MOST_WAYS = 100
"""The most ways in which a filter may be true."""


class Lifting:
    """Makes SQL of the filters and classes over the events of one mapping."""

    def __init__(self, knowledge: Knowledge, mapping: EventMapping, columns: pa.Schema) -> None:
        """
        Raises:
            NotLifted: what events mean does not follow from each alone.
        """
        self._knowledge, self._mapping, self._columns = knowledge, mapping, columns
        self._inert: Inert = inert(knowledge, mapping)
        self.questions: dict[str, Question] = {}
        """The questions that SQL depends on, by the names of the columns with their answers."""
        self._trees: dict[str, Expression] = {}
        for name in mapping.columns:
            if name in columns.names and is_array(columns.field(name).type):
                raise NotLifted(f"the column {name!r} has arrays")

    def condition(self, atoms: Sequence[Atom], events: Mapping[str, str]) -> str:
        """SQL that is true if the filter holds; `events` has the variables that are events, each with what stands
        before the names of its columns.

        Raises:
            NotLifted: other events may matter, or something has no SQL.
        """
        start = Way(bound={variable: Event(prefix) for variable, prefix in events.items()}, remaining=tuple(atoms))
        found = [*map(self._needed, islice(self._about_events(start), MOST_WAYS + 1))]
        if len(found) > MOST_WAYS:
            raise NotLifted(f"there are more than {MOST_WAYS} ways in which it may be true")
        ways = [*dict.fromkeys(" AND ".join(way) or "TRUE" for way in found if "FALSE" not in way)]
        if not ways:
            return "FALSE"
        return ways[0] if len(ways) == 1 else " OR ".join(f"({way})" for way in ways)

    def _needed(self, way: Way) -> list[str]:
        """The SQL of a way: all of it must be true."""
        conditions = (*way.conditions, *conditions_of_others(self._knowledge, self._inert, way, self._ask))
        needed = [one for one in dict.fromkeys(conditions) if one != "TRUE"]
        trees = [*map(self._tree, needed)]
        return [one for one, tree in zip(needed, trees, strict=True) if not follows(tree, trees)]

    def _tree(self, sql: str) -> Expression:
        """The condition; ways often share some."""
        if sql not in self._trees:
            self._trees[sql] = parse_expression(sql)
        return self._trees[sql]

    def _ask(self, question: Question, prefix: str) -> str:
        """SQL of the question about the event whose columns are written after `prefix`."""
        self.questions[question.name] = question
        return f"{prefix}{quoted(question.name)}"

    # Atoms about events

    def _about_events(self, way: Way) -> Iterator[Way]:
        """The ways in which all atoms about events, their nodes and equality are true."""
        # What events relate to is bound first, so that the order in which atoms are written does not count.
        for atom in sorted(way.remaining, key=lambda atom: atom.kind == "same"):
            found = self._ways_of(atom, way)
            if found is not None:
                yield from self._each(found)
                return
        yield way

    def _ways_of(self, atom: Atom, way: Way) -> Iterator[Way] | None:
        """The ways in which an atom about events is true; None: it is not about events, or not yet."""
        rest = Way(way.conditions, way.bound, tuple(one for one in way.remaining if one is not atom))
        first, *others = (way.term(argument) for argument in atom.arguments)
        match atom.kind:
            case "class" if isinstance(first, Event | OwnNode):
                return (rest.so(sql) for sql in self._is_of(first, atom.name))
            case "property" if isinstance(first, Event | OwnNode):
                return self._related(rest, first, atom.name, atom.arguments[1])
            case "same" if self._decides(first, *others):
                return self._same(rest, atom.arguments, [first, *others])
        return None

    def _decides(self, one: Symbol | None, other: Symbol | None) -> bool:
        """Whether at least one of two individuals that must be the same is known, and none is an event."""
        return not (one is None and other is None) and not any(isinstance(o, Event | OwnNode) for o in (one, other))

    def _each(self, ways: Iterator[Way]) -> Iterator[Way]:
        return chain.from_iterable(map(self._about_events, ways))

    def _is_of(self, one: Event | OwnNode, class_: Iri) -> Iterator[str]:
        """SQL for each way in which it is of the class."""
        if isinstance(one, OwnNode):
            if class_ in one.related.by_range:
                yield "TRUE"
            else:
                related = one.related.inner
                yield from (self._exists(one.prefix, inner) for inner in related if class_ in inner.of_subject)
            return
        mapping, prefixes = self._mapping, self._knowledge.prefixes
        if mapping.type is not None:
            column = f"{one.prefix}{quoted(mapping.type)}"
            if mapping.classes is None:
                named = [name for name, classes in self._inert.of_class.items() if class_ in classes]
                values = [value for name in named for value in written_names(name, prefixes)]
            else:
                of_class = self._inert.of_class
                values = [value for value, name in mapping.classes if class_ in of_class[name_of(name, prefixes)]]
            if values:
                yield f"{column} IN ({', '.join(map(string_literal, sorted(values)))})"
        yield from (self._exists(one.prefix, each) for each in self._inert.related if class_ in each.of_subject)

    def _exists(self, prefix: str, related: Related) -> str:
        """SQL: whether the event has the property."""
        match related.value:
            case Constant():
                return "TRUE"
            case Node():
                # A node whose columns are all NULL is not there.
                of_columns = [inner for inner in related.inner if not isinstance(inner.value, Constant)]
                parts = [self._exists(prefix, inner) for inner in of_columns]
                return f"({' OR '.join(parts)})" if len(parts) > 1 else "".join(parts) or "TRUE"
            case Individual(written):
                names = Names(written, self._columns, self._knowledge.prefixes)
                return " AND ".join(f"{prefix}{quoted(column)} IS NOT NULL" for column in names.columns)
        return f"{prefix}{quoted(str(related.value))} IS NOT NULL"

    def _related(self, way: Way, one: Event | OwnNode, property_: Iri, object_: Argument) -> Iterator[Way]:
        """The ways in which it has the property, and what that relates it to."""
        if property_ == TYPE:
            raise NotLifted("a variable stands for a class")
        for related in self._inert.related if isinstance(one, Event) else one.related.inner:
            if property_ not in related.kinds:
                continue
            there = way.so(self._exists(one.prefix, related))
            yield from self._bound(there, object_, self._value(one.prefix, related))

    def _value(self, prefix: str, related: Related) -> Symbol:
        match related.value:
            case Constant(written):
                return name_of(written, self._knowledge.prefixes)
            case Node():
                return OwnNode(prefix, related)
            case Individual(written):
                return Named(prefix, related, Names(written, self._columns, self._knowledge.prefixes))
        column = str(related.value)
        return Valued(prefix, column, self._columns.field(column).type)

    def _bound(self, way: Way, argument: Argument, symbol: Symbol) -> Iterator[Way]:
        """The way in which the argument is the symbol, if there is one."""
        known = way.term(argument)
        if known is None and isinstance(argument, Variable):
            yield way.so(**{argument.name: symbol})
        elif known is not None:
            by_value = isinstance(argument, Literal)
            yield from (way.so(sql) for sql in self._equal(known, symbol, by_value=by_value))

    # Equality

    def _same(self, way: Way, arguments: Sequence[Argument], terms: Sequence[Symbol | None]) -> Iterator[Way]:
        one, other = terms
        if isinstance(one, Valued | Literal) or isinstance(other, Valued | Literal):
            return  # literals are no individuals
        if one is None or other is None:
            free, known = (0, other) if one is None else (1, one)
            argument = arguments[free]
            assert isinstance(argument, Variable)
            assert known is not None
            yield way.so(**{argument.name: known})
        elif isinstance(one, Iri) and isinstance(other, Iri):
            mentioned = self._knowledge.names
            if self._aliases.get(one, one) == self._aliases.get(other, other) and {one, other} <= mentioned:
                yield way
        else:
            yield from (way.so(sql) for sql in self._equal(one, other, by_value=False))

    def _equal(self, one: Symbol, other: Symbol, *, by_value: bool) -> Iterator[str]:
        """SQL: whether both are the same."""
        match one, other:
            case (Named() as named, Iri() as name) | (Iri() as name, Named() as named):
                yield named.names.among(self._names_of(name), named.prefix)
            case Named(), Named():
                yield one.names.equal(one.prefix, other.names, other.prefix, self._aliases)
            case Iri(), Iri():
                if self._aliases.get(one, one) == self._aliases.get(other, other):
                    yield "TRUE"
            case (Valued() as valued, Literal() as literal) | (Literal() as literal, Valued() as valued):
                if not by_value:
                    yield valued.among([literal])
                    return
                yield from tested("equal", [of_column(valued.sql, valued.type, valued.prefix), literal])
            case Valued(), Valued():
                if one.type == other.type and not (pa.types.is_floating(one.type) or pa.types.is_decimal(one.type)):
                    yield f"{one.sql} = {other.sql}"
                elif one.prefix == other.prefix:
                    yield self._ask(Question((("value", one.column), ("value", other.column)), ()), one.prefix)
                else:
                    raise NotLifted("literals of different columns are compared")
            case (Event() | OwnNode(), _) | (_, Event() | OwnNode()):
                raise NotLifted("an event is compared with another individual")

    def _names_of(self, name: Iri) -> list[Iri]:
        """All names of the individual."""
        stands = self._aliases.get(name, name)
        return [*dict.fromkeys([name, stands, *(one for one, known in self._aliases.items() if known == stands)])]

    @property
    def _aliases(self) -> Mapping[Iri, Iri]:
        """For each name of an individual with several, the least of these."""
        return self._knowledge.aliases
