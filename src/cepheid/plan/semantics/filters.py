"""Semantic filters and classes as the user writes them → atoms and names, with what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cepheid.errors import FilterError, KnowledgeError, Problem
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.filters.syntax import Atom, located, named
from cepheid.knowledge.filters.variables import never_holds
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri
from cepheid.knowledge.unknown import mistaken_name, unknown_in_filter, unknown_names
from cepheid.plan.semantics.mapping import column_problems, name_problems

_SIGN = re.compile(r"[=<>]|\w\.\w")
"""What SQL often has, and filters mostly have not."""


def mapping_problems(
    knowledge: Knowledge | None, mapping: EventMapping | None, columns: pa.Schema | None
) -> Iterator[Problem]:
    """The problems of the mapping, those of its columns only if these are known."""
    if mapping is None or knowledge is None:
        return
    yield from name_problems(mapping, knowledge)
    if columns is not None:
        yield from column_problems(mapping, columns)


@dataclass(frozen=True)
class FilterTexts:
    """Reads the semantic filters and classes of a pattern; adds what is wrong to `problems`."""

    knowledge: Knowledge | None
    mapping: EventMapping | None
    maker: str
    """The call that gives a pattern of this kind its knowledge."""
    problems: list[Problem]
    if_sql: str | None = None
    """The hint for a text that cannot be read and may be SQL."""
    warnings: list[str] = field(default_factory=list)
    """What is known to be odd, each once."""

    def atoms(self, text: str, where: str, given: Collection[str]) -> tuple[Atom, ...] | None:
        """The atoms of a filter, of which the pattern binds the variables `given`; None if it has problems."""
        if self.knowledge is None:
            hint = f"Give the pattern knowledge: {self.maker}."
            self.problems.append(Problem(f"the semantic filter {text!r} needs knowledge", where, hint=hint))
            return None
        try:
            places = located(text, self.knowledge.prefixes)
        except FilterError as error:
            self.problems.append(replace(error.problem, where=where, hint=self.if_sql if _SIGN.search(text) else None))
            return None
        atoms = tuple(atom for atom, _ in places)
        if why := never_holds(text, atoms, given):
            self.warn(why)
        return None if self._refused(unknown_in_filter(self.knowledge, text, places, where)) else atoms

    def class_of(self, name: str, where: str | None) -> Iri | None:
        """The class with this name; None if there is a problem. There must be knowledge."""
        assert self.knowledge is not None
        try:
            class_ = named(name, self.knowledge.prefixes)
        except KnowledgeError as error:
            self.problems.append(Problem(str(error), where))
            return None
        mistaken = mistaken_name(self.knowledge, Atom("class", class_, ()), where)
        return None if self._refused([*unknown_names(self.knowledge, [class_], where), *mistaken]) else class_

    def _refused(self, unknown: Iterable[Problem]) -> bool:
        """Whether names that the knowledge does not have are a problem. If events may bring them, with facts of their
        own, they are warned of instead.
        """
        found = [*unknown]
        if self.mapping is None or not found:
            return False
        if self.mapping.brings_any_facts:
            for one in found:
                self.warn(f"{one}\nEvents may bring it with their facts.")
            return False
        self.problems.extend(found)
        return True

    def warn(self, warning: str) -> None:
        """Adds a warning, if it is new."""
        if warning not in self.warnings:
            self.warnings.append(warning)
