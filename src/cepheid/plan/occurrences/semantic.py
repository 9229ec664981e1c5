"""Semantic filters and classes: text → atoms over the variables of a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import KnowledgeError, Problem
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.filters.syntax import Atom, Variable, named, parsed
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri
from cepheid.knowledge.unknown import unknown_names
from cepheid.lang.occurrences.expression import RestrictedType, SemanticFilter
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.plan.occurrences.mapping import column_problems, name_problems


@dataclass(frozen=True)
class PlannedFilter:
    """A semantic filter over occurrences. A variable that is bound to one event is this event's individual."""

    atoms: tuple[Atom, ...]
    variables: tuple[tuple[str, int], ...]
    """The variables of the filter that the pattern binds, each with its number in the pattern, ascending. All others
    stand for anything that is known.
    """


@dataclass(frozen=True)
class PlannedType:
    """Which events a leaf takes: individuals of a class for which filters hold at the event's own time."""

    class_: Iri
    filters: tuple[tuple[str | None, tuple[Atom, ...]], ...] = ()
    """Each with the variable that is the event."""

    def __str__(self) -> str:
        return f"{self.class_}{' with filters' if self.filters else ''}"


@dataclass(frozen=True)
class Semantics:
    """What a host needs to know what events mean."""

    knowledge: Knowledge
    mapping: EventMapping
    why: str
    """Why SQL on each event alone does not say what events mean."""
    columns: tuple[tuple[str, int], ...]
    """The columns that the mapping reads, each with the number of its lifted column."""


def outputs_problems(pattern: OccurrencePattern, outputs: Sequence[str] | None) -> Iterator[Problem]:
    """A problem if contradictions are asked for, and there is no knowledge."""
    if pattern.knowledge is None and "inconsistent" in (outputs or ()):
        hint = "Give the pattern knowledge: OccurrencePattern.of(…, knowledge=…, mapping=…)."
        yield Problem(
            "inconsistent is asked for, and nothing is known that events could contradict", "outputs", hint=hint
        )


def semantic_problems(pattern: OccurrencePattern, columns: pa.Schema | None) -> Iterator[Problem]:
    """The problems of the mapping, those of its columns only if these are known."""
    if pattern.mapping is None or pattern.knowledge is None:
        return
    yield from name_problems(pattern.mapping, pattern.knowledge)
    if columns is not None:
        yield from column_problems(pattern.mapping, columns)


@dataclass(frozen=True)
class SemanticTexts:
    """Reads the semantic filters and classes of a pattern with knowledge; adds what is wrong to the problems."""

    pattern: OccurrencePattern
    variables: Sequence[str]
    problems: list[Problem]

    def filter(self, given: SemanticFilter, visible: Iterable[int], where: str) -> PlannedFilter | None:
        """The filter, which may use the variables with the numbers `visible`; None if it has problems."""
        atoms = self._atoms(given, where)
        if atoms is None:
            return None
        used = {argument.name for atom in atoms for argument in atom.arguments if isinstance(argument, Variable)}
        bound = ((self.variables[number], number) for number in sorted(visible))
        return PlannedFilter(atoms, tuple(one for one in bound if one[0] in used))

    def type(self, base: str, restricted: Iterable[RestrictedType]) -> PlannedType | None:
        """The class `base`, with the semantic filters of restricted types; None if there are problems."""
        assert self.pattern.knowledge is not None
        before = len(self.problems)
        filters = tuple(
            (one.variable, self._atoms(one.condition, f"type {one.name!r}") or ())
            for one in restricted
            if isinstance(one.condition, SemanticFilter)
        )
        try:
            class_ = named(base, self.pattern.knowledge.prefixes)
        except KnowledgeError as error:
            self.problems.append(Problem(str(error)))
            return None
        self.problems.extend(self._unknown([class_], None))
        return None if len(self.problems) > before else PlannedType(class_, filters)

    def _atoms(self, given: SemanticFilter, where: str) -> tuple[Atom, ...] | None:
        if self.pattern.knowledge is None:
            hint = "Give the pattern knowledge: OccurrencePattern.of(…, knowledge=…, mapping=…)."
            self.problems.append(Problem(f"the semantic filter {given.text!r} needs knowledge", where, hint=hint))
            return None
        try:
            atoms = parsed(given.text, self.pattern.knowledge.prefixes)
        except KnowledgeError as error:
            self.problems.append(Problem(str(error), where))
            return None
        names = [atom.name for atom in atoms if atom.kind in ("class", "property")]
        found = [*self._unknown(names, where)]
        self.problems.extend(found)
        return None if found else atoms

    def _unknown(self, names: Iterable[Iri], where: str | None) -> Iterator[Problem]:
        """Names of classes and properties that neither the knowledge nor the mapping has. Events with facts of their
        own may bring others.
        """
        knowledge, mapping = self.pattern.knowledge, self.pattern.mapping
        if knowledge is None or mapping is None or mapping.brings_any_facts:
            return
        yield from unknown_names(knowledge, names, where)
