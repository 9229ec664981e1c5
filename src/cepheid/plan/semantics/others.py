"""What remains of a filter when its atoms about events are columns: atoms about what events name, and built-ins.

The knowledge alone answers the atoms, once, and each answer is a row: names that events may have, and literals with
which built-ins compute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from cepheid.knowledge.events.mapping import Individual
from cepheid.knowledge.events.names import is_template
from cepheid.knowledge.filters.builtins import BUILTINS
from cepheid.knowledge.filters.solving import Solution, solutions
from cepheid.knowledge.filters.syntax import SWRLB, Argument, Atom, Variable
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri, Literal, Term
from cepheid.plan.semantics.builtins import computed, tested
from cepheid.plan.semantics.inert import Inert, NotLifted, Related
from cepheid.plan.semantics.names_sql import in_rows
from cepheid.plan.semantics.symbols import Event, Named, OwnNode, Valued, Way, shown
from cepheid.plan.semantics.values import SqlValue, of_column

MOST_LITERALS = 500
"""The most literals of the knowledge with which those of events are compared in one filter."""
Known: TypeAlias = Mapping[str, SqlValue | Literal]
"""The values of variables of built-ins."""


def conditions_of_others(knowledge: Knowledge, inert: Inert, way: Way) -> Iterator[str]:
    """The SQL of the remaining atoms of a way.

    Raises:
        NotLifted: events may matter for what the atoms ask, or something has no SQL.
    """
    others = _Others(knowledge, inert, way)
    for atoms in _connected(way):
        yield others.condition(atoms)


class _Others:
    def __init__(self, knowledge: Knowledge, inert: Inert, way: Way) -> None:
        self._knowledge, self._inert, self._way = knowledge, inert, way

    def condition(self, atoms: Sequence[Atom]) -> str:
        """The SQL of atoms that have variables in common."""
        if any(map(self._never_holds, atoms)):
            return "FALSE"
        computed_, asked = self._divided(atoms)
        self._check([atom for atom in asked if atom.kind != "builtin"])
        asked = [atom for atom in asked if not self._follows_from_event(atom)]
        bound, names = self._way.bound, _variables(asked)
        listed = {name: term for name in names if isinstance(term := bound.get(name), Named | Valued)}
        literals = [name for name in _variables(computed_) if name in names and name not in bound]
        rows = defaultdict[tuple[Term, ...], set[tuple[Term, ...]]](set)
        of_literals, of_events = _taken(literals), _taken([*listed])
        for one in self._answers(asked):
            rows[of_literals(one)].add(of_events(one))
        if len(rows) > MOST_LITERALS:
            raise NotLifted(f"literals of events are compared with more than {MOST_LITERALS} of the knowledge")
        ways = (
            self._both(computed_, dict(zip(literals, terms, strict=True)), [*listed.values()], some)
            for terms, some in rows.items()
        )
        return _either([one for one in ways if one is not None])

    def _never_holds(self, atom: Atom) -> bool:
        """Whether a literal stands for an individual in it, or the other way round."""
        terms = [self._way.term(argument) for argument in atom.arguments]
        if atom.kind == "builtin":
            return any(isinstance(term, Event | OwnNode | Named | Iri) for term in terms)
        return any(isinstance(term, Valued | Literal) for term in (terms[:1] if atom.kind == "property" else terms))

    def _divided(self, atoms: Sequence[Atom]) -> tuple[list[Atom], list[Atom]]:
        """The built-ins that need literals of events, and the other atoms."""
        computed_, asked = list[Atom](), [*atoms]
        of_events = {name for name, symbol in self._way.bound.items() if isinstance(symbol, Valued)}
        while more := [one for one in asked if one.kind == "builtin" and of_events.intersection(_variables([one]))]:
            computed_ += more
            asked = [atom for atom in asked if atom not in more]
            firsts = (one.arguments[0] for one in more if BUILTINS[_name(one)].computes)
            of_events |= {first.name for first in firsts if isinstance(first, Variable)}
        return computed_, asked

    def _answers(self, asked: Sequence[Atom]) -> Iterator[Solution]:
        """What makes the atoms true by the knowledge alone."""
        constants = {name: one for name, one in self._way.bound.items() if isinstance(one, Iri | Literal)}
        return solutions(asked, self._knowledge.closure, constants)

    def _both(
        self,
        builtins: Sequence[Atom],
        literals: Mapping[str, Term],
        listed: Sequence[Named | Valued],
        rows: set[tuple[Term, ...]],
    ) -> str | None:
        """SQL: whether the built-ins hold with these literals, and the terms of events are in one of the rows. None if
        not.
        """
        if any(isinstance(term, Iri) for term in literals.values()):
            return None  # a built-in needs values
        known = dict[str, SqlValue | Literal]()
        for name, term in {**self._way.bound, **literals}.items():
            if isinstance(term, Valued):
                known[name] = of_column(term.sql, term.type, term.prefix)
            elif isinstance(term, Literal):
                known[name] = term
        of_values = _of_values(builtins, known)
        of_rows = in_rows([one.among for one in listed], rows) if listed else "TRUE"
        if of_values is None or of_rows == "FALSE":
            return None
        return " AND ".join([*(one for one in (of_rows, *of_values) if one != "TRUE")]) or "TRUE"

    # What events may change

    def _follows_from_event(self, atom: Atom) -> bool:
        """Whether the atom holds because an event names the individual."""
        return atom.kind == "class" and self._is_given(atom)

    def _is_given(self, atom: Atom) -> bool:
        """Whether the event that names an individual says that it is of the class."""
        symbol = self._way.term(atom.arguments[0])
        return isinstance(symbol, Named) and atom.name in symbol.related.of_object

    def _check(self, atoms: Sequence[Atom]) -> None:
        """Raises NotLifted if events may matter for what these atoms ask."""
        anchored = {*_variables(atom for atom in atoms if self._is_known(atom))}
        anchored |= {name for name in self._way.bound if not self._may_be_event(Variable(name))}
        asked = _variables(atom for atom in atoms if atom.kind in ("class", "property"))
        for atom in atoms:
            if any(isinstance(self._way.term(argument), Event | OwnNode) for argument in atom.arguments):
                raise NotLifted(f"{shown(atom)} is about an event, and not of its columns")
            first = atom.arguments[0]
            free = first.name not in anchored if isinstance(first, Variable) else self._may_be_event(first)
            if atom.kind == "property" and atom.name in self._inert.all_properties and free:
                raise NotLifted(f"{shown(atom)}: any event may have the property")
            if atom.kind == "class" and atom.name in self._inert.all_classes and free and not self._has_members(atom):
                raise NotLifted(f"{shown(atom)}: any event may be of the class")
            if atom.kind == "class" and atom.name in self._inert.of_others and not self._is_given(atom):
                raise NotLifted(f"{shown(atom)}: other events may say so")
            if atom.kind == "different" and any(isinstance(self._way.term(one), Named) for one in atom.arguments):
                raise NotLifted(f"{shown(atom)} compares names of events")
            if atom.kind in ("same", "different") and any(name not in asked for name in _variables([atom])):
                raise NotLifted(f"{shown(atom)} has a variable that nothing else binds")

    def _has_members(self, atom: Atom) -> bool:
        """Whether an event names an individual in a column of names, and the knowledge has some of this class. Then
        these are meant, and no events (`EventMapping.linked`).
        """
        members = solutions([atom._replace(arguments=(Variable("member"),))], self._knowledge.closure, {})
        return isinstance(self._way.term(atom.arguments[0]), Named) and next(members, None) is not None

    def _may_be_event(self, argument: Argument) -> bool:
        """Whether the argument may be an event, as far as its names say."""
        match self._way.term(argument):
            case Named(related=Related(value=Individual(name))):
                return not is_template(name)  # the names that templates make are no names of events
            case Iri() as name:
                return self._inert.may_name(name)
            case Event() | OwnNode():
                return True
        return False

    def _is_known(self, atom: Atom) -> bool:
        """Whether only the knowledge says which individuals have the property."""
        return atom.kind == "property" and atom.name not in self._inert.all_properties


def _taken(names: Sequence[str]) -> Callable[[Solution], tuple[Term, ...]]:
    """Takes the terms of these variables from a solution."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda one: (one[names[0]],)) if names else lambda _: ()


def _of_values(builtins: Sequence[Atom], known: Known) -> list[str] | None:
    """SQL of built-ins over values of events; None if one never holds."""
    conditions, values, todo = list[str](), dict(known), [*builtins]
    while todo:
        atom = next((one for one in todo if _is_ready(one, values)), None)
        if atom is None:
            return None  # a variable has no value
        todo.remove(atom)
        first, *others = atom.arguments
        given = [_value(argument, values) for argument in others]
        if (result := _known(first, values)) is not None:
            found = next(tested(_name(atom), [result, *given]), None)
            if found is None:
                return None
            conditions.append(found)
        else:
            result = computed(_name(atom), given)
            if result is None:
                return None
            assert isinstance(first, Variable), atom
            values[first.name] = result
            conditions += result.conditions if isinstance(result, SqlValue) else ()
    return [*dict.fromkeys(conditions)]


def _is_ready(atom: Atom, values: Known) -> bool:
    """Whether the built-in can be computed or tested."""
    first, *others = (_known(argument, values) for argument in atom.arguments)
    return None not in others and (first is not None or BUILTINS[_name(atom)].computes)


def _known(argument: Argument, values: Known) -> SqlValue | Literal | None:
    if isinstance(argument, Variable):
        return values.get(argument.name)
    assert isinstance(argument, Literal), argument
    return argument


def _value(argument: Argument, values: Known) -> SqlValue | Literal:
    found = _known(argument, values)
    assert found is not None, argument
    return found


def _name(atom: Atom) -> str:
    """The name of a built-in."""
    return atom.name.value.removeprefix(SWRLB)


def _variables(atoms: Iterable[Atom]) -> list[str]:
    found = (argument.name for atom in atoms for argument in atom.arguments if isinstance(argument, Variable))
    return [*dict.fromkeys(found)]


def _connected(way: Way) -> list[list[Atom]]:
    """The remaining atoms in groups that have no variable in common. Literals of events do not connect atoms."""
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in way.remaining:
        names = {name for name in _variables([atom]) if not isinstance(way.bound.get(name), Valued)}
        mine = [group for group in groups if group[0] & names]
        groups = [group for group in groups if group not in mine]
        groups.append((names.union(*(group[0] for group in mine)), [*chain(*(group[1] for group in mine)), atom]))
    return [group for _, group in groups]


def _either(parts: Sequence[str]) -> str:
    """SQL: whether one of these is true."""
    if not parts or "TRUE" in parts:
        return "TRUE" if parts else "FALSE"
    return parts[0] if len(parts) == 1 else f"({' OR '.join(f'({part})' for part in dict.fromkeys(parts))})"
