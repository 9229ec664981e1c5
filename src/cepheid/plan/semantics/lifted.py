"""Semantic filters → SQL over the columns of events, where each event says all that matters (`Inert`).

An atom about an event becomes a condition on its columns. What remains is about individuals that events name and those
that the knowledge knows: it is asked once, of the knowledge alone, and becomes a list of names. If atoms can be true in
several ways, one of these must be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.events.literals import is_array
from cepheid.knowledge.events.mapping import Constant, EventMapping, Individual, Node
from cepheid.knowledge.events.names import name_of
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Argument, Atom, Variable
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri, Literal, Term
from cepheid.lang.parameters import string_literal
from cepheid.plan.semantics.comparisons import compared_sql
from cepheid.plan.semantics.inert import Inert, NotLifted, Related, inert
from cepheid.plan.semantics.names_sql import Names, quoted, written_names

_NOT_NULL = " IS NOT NULL"
MOST_NAMES = 20_000
"""The most names in the lists of a condition."""


@dataclass(frozen=True)
class Event:
    """The individual of an event, whose columns are written after `prefix`."""

    prefix: str


@dataclass(frozen=True)
class OwnNode:
    """A node of an event."""

    prefix: str
    related: Related


@dataclass(frozen=True, eq=False)
class Named:
    """An individual that an event names."""

    prefix: str
    related: Related
    names: Names


@dataclass(frozen=True)
class Valued:
    """A literal of an event."""

    prefix: str
    column: str
    type: pa.DataType

    @property
    def sql(self) -> str:
        return f"{self.prefix}{quoted(self.column)}"


Symbol: TypeAlias = Event | OwnNode | Named | Valued | Iri | Literal
"""What a variable is, or a constant."""


@dataclass(frozen=True)
class Way:
    """One way in which a filter may be true."""

    conditions: tuple[str, ...] = ()
    """SQL, all of which must be true."""
    bound: Mapping[str, Symbol] = field(default_factory=dict)
    remaining: tuple[Atom, ...] = ()

    def so(self, *conditions: str, **bound: Symbol) -> Way:
        return Way((*self.conditions, *conditions), {**self.bound, **bound}, self.remaining)


class Lifting:
    """Makes SQL of the filters and classes over the events of one mapping."""

    def __init__(self, knowledge: Knowledge, mapping: EventMapping, columns: pa.Schema) -> None:
        """
        Raises:
            NotLifted: what events mean does not follow from each alone.
        """
        self._knowledge, self._mapping, self._columns = knowledge, mapping, columns
        self._inert: Inert = inert(knowledge, mapping)
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
        ways = [" AND ".join(self._of_others(way) or ("TRUE",)) for way in self._about_events(start)]
        ways = [*dict.fromkeys(way for way in ways if "FALSE" not in way.split(" AND "))]
        if not ways:
            return "FALSE"
        return ways[0] if len(ways) == 1 else " OR ".join(f"({way})" for way in ways)

    # Atoms about events

    def _about_events(self, way: Way) -> Iterator[Way]:
        """The ways in which all atoms about events, their nodes and equality are true."""
        for number, atom in enumerate(way.remaining):
            rest = Way(way.conditions, way.bound, (*way.remaining[:number], *way.remaining[number + 1 :]))
            terms = [self._term(argument, way) for argument in atom.arguments]
            if atom.kind == "class" and isinstance(terms[0], Event | OwnNode):
                yield from self._each(rest.so(sql) for sql in self._is_of(terms[0], atom.name))
                return
            if atom.kind == "property" and isinstance(terms[0], Event | OwnNode):
                yield from self._each(self._related(rest, terms[0], atom.name, atom.arguments[1]))
                return
            if atom.kind == "same" and not any(isinstance(term, Event | OwnNode) for term in terms):
                yield from self._each(self._same(rest, atom.arguments, terms))
                return
        yield way

    def _each(self, ways: Iterator[Way]) -> Iterator[Way]:
        return chain.from_iterable(map(self._about_events, ways))

    def _term(self, argument: Argument, way: Way) -> Symbol | None:
        """What the argument is; None: a free variable."""
        return way.bound.get(argument.name) if isinstance(argument, Variable) else argument

    def _is_of(self, one: Event | OwnNode, class_: Iri) -> Iterator[str]:
        """SQL for each way in which it is of the class."""
        if isinstance(one, OwnNode):
            if class_ in one.related.of_object:
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
                return " OR ".join(self._exists(prefix, inner) for inner in of_columns) or "TRUE"
            case Individual(written):
                column = Names(written, self._columns, self._knowledge.prefixes).column
                return f"{prefix}{quoted(column)}{_NOT_NULL}"
        return f"{prefix}{quoted(str(related.value))}{_NOT_NULL}"

    def _related(self, way: Way, one: Event | OwnNode, property_: Iri, object_: Argument) -> Iterator[Way]:
        """The ways in which it has the property, and what that relates it to."""
        if property_ == TYPE:
            raise NotLifted("a variable stands for a class")
        for related in self._inert.related if isinstance(one, Event) else one.related.inner:
            if property_ not in related.kinds:
                continue
            exists = self._exists(one.prefix, related)
            there = way.so(f"({exists})" if " OR " in exists else exists)
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
        known = self._term(argument, way)
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
        if one is None and other is None:
            raise NotLifted("sameAs has two variables that nothing binds")
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
                    raise NotLifted("a literal of the knowledge is compared with one of an event")
                yield from compared_sql("equal", (valued.sql, valued.type), literal)
            case Valued(), Valued():
                if one.type != other.type or pa.types.is_floating(one.type) or pa.types.is_decimal(one.type):
                    raise NotLifted("literals of different columns are compared")
                yield f"{one.sql} = {other.sql}"
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

    # What is known of others

    def _of_others(self, way: Way) -> tuple[str, ...]:
        """The SQL of a way, with that of its atoms about other individuals than events, and of built-ins."""
        conditions, asked = [*way.conditions], list[Atom]()
        for atom in way.remaining:
            terms = [self._term(argument, way) for argument in atom.arguments]
            if atom.kind == "builtin" and any(isinstance(term, Valued) for term in terms):
                conditions.append(self._compared(atom, terms))
            elif any(isinstance(term, Event | OwnNode | Valued) for term in terms):
                if atom.kind in ("class", "property") and isinstance(terms[0], Valued):
                    return ("FALSE",)  # a literal is no individual
                raise NotLifted(f"{_shown(atom)} is about an event, and not of its columns")
            else:
                asked.append(atom)
        conditions += [self._asked(group, way) for group in _connected(asked)]
        needed = [one for one in dict.fromkeys(conditions) if one != "TRUE"]
        return tuple(one for one in needed if not _follows(one, needed))

    def _compared(self, atom: Atom, terms: Sequence[Symbol | None]) -> str:
        """SQL of a comparison with a literal of an event."""
        name = atom.name.value.rpartition("#")[2]
        values = [(term.sql, term.type) if isinstance(term, Valued) else term for term in terms]
        match values:
            case [(tuple() | Literal()) as one, (tuple() | Literal()) as other]:
                return next(compared_sql(name, one, other), "FALSE")
        raise NotLifted(f"{_shown(atom)} has no SQL")

    def _asked(self, atoms: Sequence[Atom], way: Way) -> str:
        """SQL of atoms that the knowledge answers alone: lists of the names for which they hold."""
        self._check_others(atoms, way)
        named = {
            argument.name: symbol
            for atom in atoms
            for argument in atom.arguments
            if isinstance(argument, Variable) and isinstance(symbol := way.bound.get(argument.name), Named)
        }
        constants = {name: symbol for name, symbol in way.bound.items() if isinstance(symbol, Iri | Literal)}
        if any(symbol.related.of_object for symbol in named.values()):
            atoms = [atom for atom in atoms if not self._follows_from_event(atom, named)]
        found = solutions(tuple(atoms), self._knowledge.closure, constants)
        if not named:
            return "TRUE" if not atoms or next(found, None) is not None else "FALSE"
        used = {a.name for atom in atoms for a in atom.arguments if isinstance(a, Variable)}
        named = {name: symbol for name, symbol in named.items() if name in used}
        if not named:
            return "TRUE" if not atoms or next(found, None) is not None else "FALSE"
        rows = {tuple(one[name] for name in named) for one in found}
        return self._among([*named.values()], rows)

    def _follows_from_event(self, atom: Atom, named: Mapping[str, Named]) -> bool:
        """Whether the atom holds because an event names the individual."""
        argument = atom.arguments[0]
        if atom.kind != "class" or not isinstance(argument, Variable) or argument.name not in named:
            return False
        return atom.name in named[argument.name].related.of_object

    def _check_others(self, atoms: Sequence[Atom], way: Way) -> None:
        """Raises NotLifted if events may matter for what these atoms ask."""
        anchored = {
            argument.name
            for atom in atoms
            if atom.kind == "property" and atom.name not in self._inert.all_properties
            for argument in atom.arguments
            if isinstance(argument, Variable)
        } | {name for name, symbol in way.bound.items() if not isinstance(symbol, Event | OwnNode)}
        asked = {
            argument.name
            for atom in atoms
            if atom.kind in ("class", "property")
            for argument in atom.arguments
            if isinstance(argument, Variable)
        }
        for atom in atoms:
            first = atom.arguments[0]
            free = isinstance(first, Variable) and first.name not in anchored
            if atom.kind == "property" and atom.name in self._inert.all_properties and free:
                raise NotLifted(f"{_shown(atom)}: any event may have the property")
            if atom.kind == "class" and free and atom.name in self._inert.all_classes:
                raise NotLifted(f"{_shown(atom)}: any event may be of the class")
            if atom.kind == "class" and atom.name in self._inert.of_others and not self._is_given(atom, way):
                raise NotLifted(f"{_shown(atom)}: other events may say so")
            if atom.kind in ("same", "different") and any(
                isinstance(one, Variable) and one.name not in asked for one in atom.arguments
            ):
                raise NotLifted(f"{_shown(atom)} has a variable that nothing else binds")

    def _is_given(self, atom: Atom, way: Way) -> bool:
        """Whether the event that names an individual says that it is of the class."""
        symbol = self._term(atom.arguments[0], way)
        return isinstance(symbol, Named) and atom.name in symbol.related.of_object

    def _among(self, named: Sequence[Named], rows: set[tuple[Term, ...]]) -> str:
        """SQL: whether the names are together in one of the rows."""
        if sum(map(len, rows)) > MOST_NAMES:
            raise NotLifted(f"more than {MOST_NAMES:,} names make it true")
        first, *others = named
        if not others:
            return first.names.among([one for (one,) in rows if isinstance(one, Iri)], first.prefix)
        rest = defaultdict[Iri, set[tuple[Term, ...]]](set)
        for one, *more in rows:
            if isinstance(one, Iri):
                rest[one].add(tuple(more))
        groups = defaultdict[frozenset[tuple[Term, ...]], list[Iri]](list)
        for one, tails in rest.items():
            groups[frozenset(tails)].append(one)
        parts = [
            f"({first.names.among(heads, first.prefix)} AND ({self._among(others, {*tails})}))"
            for tails, heads in groups.items()
        ]
        return f"({' OR '.join(sorted(parts))})" if parts else "FALSE"


def _follows(condition: str, others: Sequence[str]) -> bool:
    """Whether it says that a column is not NULL, and another condition is not true for NULL there."""
    column = condition.removesuffix(_NOT_NULL)
    return column != condition and any(column in other and _NOT_NULL not in other for other in others)


def _connected(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """The atoms in groups that have no variable in common."""
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in atoms:
        names = {argument.name for argument in atom.arguments if isinstance(argument, Variable)}
        mine = [group for group in groups if group[0] & names]
        groups = [group for group in groups if group not in mine]
        groups.append((names.union(*(group[0] for group in mine)), [*chain(*(group[1] for group in mine)), atom]))
    return [group for _, group in groups]


def _shown(atom: Atom) -> str:
    name = atom.name.value.rpartition("#")[2].rpartition("/")[2]
    arguments = ", ".join(f"?{one.name}" if isinstance(one, Variable) else str(one) for one in atom.arguments)
    return f"{name}({arguments})"
