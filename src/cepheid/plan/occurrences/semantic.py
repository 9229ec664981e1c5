"""Semantic filters and classes: text → atoms over the variables of a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cepheid.errors import Problem
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri
from cepheid.lang.occurrences.expression import RestrictedType
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.semantic import SemanticFilter
from cepheid.plan.semantics.exclusive import exclusive_classes
from cepheid.plan.semantics.filters import FilterTexts
from cepheid.plan.semantics.mapping import mistaken_values

_MAKER = "OccurrencePattern.of(…, knowledge=…, mapping=…)"
_HINT = "In a pattern with knowledge brackets have semantic filters; SQL is written [sql: …]."


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
        hint = f"Give the pattern knowledge: {_MAKER}."
        yield Problem(
            "inconsistent is asked for, and nothing is known that events could contradict", "outputs", hint=hint
        )


@dataclass(frozen=True)
class SemanticTexts:
    """Reads the semantic filters and classes of a pattern with knowledge; adds what is wrong to the problems."""

    pattern: OccurrencePattern
    variables: Sequence[str]
    problems: list[Problem]
    _classes: set[Iri] = field(default_factory=set)
    """Those of leaves."""

    @property
    def warnings(self) -> Iterator[str]:
        """What is odd in the mapping, which has no problems, and in the texts read so far, each once."""
        yield from self._texts.warnings
        knowledge, mapping = self.pattern.knowledge, self.pattern.mapping
        if knowledge is not None and mapping is not None:
            yield from mistaken_values(mapping, knowledge)
            yield from exclusive_classes(knowledge, mapping, self._classes)

    def filter(self, given: SemanticFilter, visible: Iterable[int], where: str) -> PlannedFilter | None:
        """The filter, which may use the variables with the numbers `visible`; None if it has problems."""
        atoms = self._texts.atoms(given.text, where, [self.variables[number] for number in visible])
        if atoms is None:
            return None
        used = {argument.name for atom in atoms for argument in atom.arguments if isinstance(argument, Variable)}
        bound = ((self.variables[number], number) for number in sorted(visible))
        return PlannedFilter(atoms, tuple(one for one in bound if one[0] in used))

    def type(self, base: str, restricted: Iterable[RestrictedType]) -> PlannedType | None:
        """The class `base`, with the semantic filters of restricted types; None if there are problems."""
        before = len(self.problems)
        filters = tuple(
            (one.variable, self._texts.atoms(one.condition.text, f"type {one.name!r}", [one.variable or ""]) or ())
            for one in restricted
            if isinstance(one.condition, SemanticFilter)
        )
        class_ = self._texts.class_of(base, f"type {base!r}")
        if class_ is not None:
            self._classes.add(class_)
        return None if class_ is None or len(self.problems) > before else PlannedType(class_, filters)

    @cached_property
    def _texts(self) -> FilterTexts:
        return FilterTexts(self.pattern.knowledge, self.pattern.mapping, _MAKER, self.problems, _HINT)
