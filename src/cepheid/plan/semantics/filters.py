"""Semantic filters and classes as the user writes them → atoms and names, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import KnowledgeError, Problem
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.filters.syntax import Atom, named, parsed
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri
from cepheid.knowledge.unknown import unknown_names
from cepheid.plan.semantics.mapping import column_problems, name_problems


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

    def atoms(self, text: str, where: str) -> tuple[Atom, ...] | None:
        """The atoms of a filter; None if it has problems."""
        if self.knowledge is None:
            hint = f"Give the pattern knowledge: {self.maker}(…, knowledge=…, mapping=…)."
            self.problems.append(Problem(f"the semantic filter {text!r} needs knowledge", where, hint=hint))
            return None
        try:
            atoms = parsed(text, self.knowledge.prefixes)
        except KnowledgeError as error:
            self.problems.append(Problem(str(error), where))
            return None
        unknown = [*self._unknown([atom.name for atom in atoms if atom.kind in ("class", "property")], where)]
        self.problems.extend(unknown)
        return None if unknown else atoms

    def class_of(self, name: str, where: str | None) -> Iri | None:
        """The class with this name; None if there is a problem. There must be knowledge."""
        assert self.knowledge is not None
        try:
            class_ = named(name, self.knowledge.prefixes)
        except KnowledgeError as error:
            self.problems.append(Problem(str(error), where))
            return None
        unknown = [*self._unknown([class_], where)]
        self.problems.extend(unknown)
        return None if unknown else class_

    def _unknown(self, names: Iterable[Iri], where: str | None) -> Iterator[Problem]:
        """Names of classes and properties that neither the knowledge nor the mapping has. Events with facts of their
        own may bring others.
        """
        if self.knowledge is not None and self.mapping is not None and not self.mapping.brings_any_facts:
            yield from unknown_names(self.knowledge, names, where)
