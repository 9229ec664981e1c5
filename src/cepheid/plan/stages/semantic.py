"""The semantic filters of a pattern of stages as SQL over its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.knowledge.filters.syntax import is_word
from cepheid.knowledge.filters.variables import place_of, variables_of
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.semantics.conditions import LiftedConditions
from cepheid.plan.semantics.filters import FilterTexts
from cepheid.plan.semantics.names_sql import quoted
from cepheid.plan.stages.names import always_one


@dataclass(frozen=True)
class SemanticConditions:
    """Makes SQL of semantic filters and classes, and adds what is wrong with them to the problems."""

    pattern: Pattern
    lifted: LiftedConditions

    @staticmethod
    def of(pattern: Pattern, columns: pa.Schema | None, problems: list[Problem]) -> SemanticConditions:
        """`columns` None: the columns are not known."""
        texts = FilterTexts(pattern.knowledge, pattern.mapping, "Pattern.begin(…, knowledge=…, mapping=…)", problems)
        return SemanticConditions(pattern, LiftedConditions.of(texts, pattern.types, columns, "a partial match"))

    def filter(self, text: str, where: str, current: str | None, visible: int) -> str | None:
        """SQL of a filter; None if there is none.

        Args:
            text: The filter.
            where: Its place, for messages.
            current: The name under which it has the current event; None: it has no name there.
            visible: How many stages come before or are the current one.
        """
        atoms = self.lifted.texts.atoms(text, where, [current or "", *(leaf.name for leaf in self.pattern.leaves)])
        if atoms is None:
            return None
        used = variables_of(atoms)
        found = [*self._stage_problems(used, text, where, current, visible)]
        self.lifted.texts.problems.extend(found)
        if found:
            return None
        events = {leaf.name: f"{quoted(leaf.name)}." for leaf in self.pattern.leaves if leaf.name in used}
        events |= {} if current is None else {current: ""}
        sql = self.lifted.filter(text, atoms, events, where)
        unnamed = [leaf.name for leaf in self.pattern.leaves[:visible] if not is_word(leaf.name)]
        if sql is None and unnamed and (problems := self.lifted.texts.problems):
            problems[-1] = _with_hint(problems[-1], f"{unnamed[0]!r} is no word, so no variable can have its name.")
        return sql

    def _stage_problems(
        self, used: Sequence[str], text: str, where: str, current: str | None, visible: int
    ) -> Iterator[Problem]:
        """Problems of variables with the names of stages that are not one event here."""
        for number, (leaf, one) in enumerate(zip(self.pattern.leaves, always_one(self.pattern), strict=True)):
            if leaf.name not in used or leaf.name == current or (one and number < visible):
                continue
            why = "comes later" if one else "does not always take exactly one event"
            hint = "Use another name for a variable that may be anything, or only stages that take one event before."
            message = f"?{leaf.name} has the name of a stage that {why}"
            yield Problem(message, where, text, place_of(leaf.name, text), hint)


def _with_hint(problem: Problem, hint: str) -> Problem:
    return replace(problem, hint=hint if problem.hint is None else f"{problem.hint}\n{hint}")
