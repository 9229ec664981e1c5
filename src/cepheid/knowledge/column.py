"""Columns of the answers to a filter, which events get by what other columns of theirs name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from cepheid.errors import KnowledgeError, did_you_mean
from cepheid.knowledge.events.mapping import Individual, Reading, readings_of
from cepheid.knowledge.events.names import Template, is_template
from cepheid.knowledge.filters.syntax import Atom, Variable, parsed
from cepheid.knowledge.filters.variables import never_bound, variables_of
from cepheid.knowledge.unknown import unknown_names

if TYPE_CHECKING:
    from cepheid.knowledge.knowledge import Knowledge

Source: TypeAlias = str | Individual
"""What binds a variable: a column, whose values are literals, or the individual that columns name."""


@dataclass(frozen=True)
class AnswerColumn:
    """The answers to a filter for one of its variables, where others are bound by the columns of an event. It is made
    by `Knowledge.column` and added to events by `cepheid.add_column`.
    """

    knowledge: Knowledge
    filter: str
    variable: str
    bindings: tuple[tuple[str, Source], ...]

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The filter."""
        return parsed(self.filter, self.knowledge.prefixes)

    @property
    def readings(self) -> Mapping[str, Sequence[Reading]]:
        """The columns of events that it reads, each with the ways in which it is read: one value for each event."""
        found: dict[str, list[Reading]] = {}
        for _, source in self.bindings:
            for column, reading in readings_of([("", source)]):
                single = {Reading.TEXTS: Reading.TEXT, Reading.VALUES: Reading.VALUE}.get(reading, reading)
                if single not in (ways := found.setdefault(column, [])):
                    ways.append(single)
        return found

    @property
    def tested(self) -> tuple[str, ...]:
        """The bound variables that stand in built-ins only: what the knowledge has does not say which values of them
        have answers.
        """
        asked = variables_of([atom for atom in self.atoms if atom.kind != "builtin"])
        return tuple(name for name, _ in self.bindings if name not in asked)


def answer_column(
    knowledge: Knowledge,
    filter: str,  # noqa: A002 - it is one
    variable: str,
    bindings: Mapping[str, Source],
) -> AnswerColumn:
    """
    Raises:
        KnowledgeError: the filter cannot be read, or names do not fit it; the message has all such faults.
    """
    if not bindings or not hasattr(bindings, "items"):
        example = "{'point': individual('bldg:{point}')}"
        raise KnowledgeError(f"bindings: what variables are for an event is expected, as {example}, got {bindings!r}")
    given = tuple((name.removeprefix("?"), source) for name, source in bindings.items())
    column = AnswerColumn(knowledge, filter, variable.removeprefix("?"), given)
    if faults := [*_faults(column)]:
        raise KnowledgeError("\n".join(faults))
    return column


def _faults(column: AnswerColumn) -> Iterator[str]:
    atoms, known = column.atoms, variables_of(column.atoms)
    names = (atom.name for atom in atoms if atom.kind in ("class", "property"))
    yield from map(str, unknown_names(column.knowledge, dict.fromkeys(names), f"the filter {column.filter!r}"))
    if column.variable not in known:
        hint = did_you_mean(column.variable, known, if_none="It has none.")
        yield f"variable: the filter has no variable {column.variable!r}\n{hint}"
    for name in never_bound(atoms, [name for name, _ in column.bindings]):
        yield f"the filter never holds, as nothing binds ?{name}: it stands in built-ins only. Bind it, or ask for it"
    for name, source in column.bindings:
        if name not in known:
            hint = did_you_mean(name, known, if_none="It has none.")
            yield f"bindings: the filter has no variable {name!r}\n{hint}"
        else:
            yield from (f"bindings: {name!r}: {fault}" for fault in _source_faults(column, name, source))


def _source_faults(column: AnswerColumn, name: str, source: object) -> Iterator[str]:
    """What is wrong with what binds a variable of the filter."""
    match source:
        case Individual(written):
            if is_template(written):
                try:
                    Template(written).whole(column.knowledge.prefixes)
                except KnowledgeError as error:
                    yield str(error)
            if name in column.tested:
                yield "built-ins take values, and this is an individual. Give a column of values"
        case str(written) if written and not is_template(written):
            if any(_needs_individual(atom, name) for atom in column.atoms):
                yield f"the filter needs an individual, and a column is a value. Write individual({written!r})"
        case str(written) if written:
            yield f"{written!r} names an individual: write individual({written!r})"
        case _:
            yield f"a column or individual(…) is expected, got {source!r}"


def _needs_individual(atom: Atom, name: str) -> bool:
    """Whether the atom holds only if the variable is an individual."""
    places = [at for at, one in enumerate(atom.arguments) if one == Variable(name)]
    if atom.kind == "property":
        return 0 in places
    return atom.kind != "builtin" and bool(places)
