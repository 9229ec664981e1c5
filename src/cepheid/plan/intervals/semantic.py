"""The semantic filters of an interval pattern as SQL over its events."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.knowledge.filters.variables import place_of, variables_of
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.semantic import FILTER
from cepheid.plan.semantics.conditions import LiftedConditions
from cepheid.plan.semantics.filters import FilterTexts
from cepheid.plan.semantics.names_sql import quoted


def given_filter(expression: Expression) -> str | None:
    """The text of the semantic filter that the expression is; None if it is another expression."""
    match expression:
        case Call(function, (Literal(str(text)),)) if function == FILTER:
            return text
    return None


@dataclass(frozen=True)
class SemanticConditions:
    """Makes SQL of semantic filters and classes, and adds what is wrong with them to the problems."""

    pattern: IntervalPattern
    lifted: LiftedConditions

    @staticmethod
    def of(pattern: IntervalPattern, columns: pa.Schema | None, problems: list[Problem]) -> SemanticConditions:
        """`columns` None: the columns are not known."""
        texts = FilterTexts(pattern.knowledge, pattern.mapping, "with_knowledge(knowledge, mapping)", problems)
        return SemanticConditions(pattern, LiftedConditions.of(texts, pattern.types, columns, "a match"))

    def filter(self, text: str, where: str, allowed: Collection[int]) -> str | None:
        """SQL of a filter, which may use the variables with the numbers `allowed`; None if there is none."""
        atoms = self.lifted.texts.atoms(text, where, self.pattern.variables)
        if atoms is None:
            return None
        used = variables_of(atoms)
        events = {name: number for number, name in enumerate(self.pattern.variables) if name in used}
        found = [*_negated([name for name, number in events.items() if number not in allowed], text, where)]
        self.lifted.texts.problems.extend(found)
        prefixes = {name: f"{quoted(name)}." for name in events}
        return None if found else self.lifted.filter(text, atoms, prefixes, where)


def _negated(names: Sequence[str], text: str, where: str) -> Iterator[Problem]:
    for name in names:
        hint = "A condition on a negated event belongs to its negation: (!D d WHERE …), without(…, where=…)."
        yield Problem(f"?{name} is negated", where, text, place_of(name, text), hint)
