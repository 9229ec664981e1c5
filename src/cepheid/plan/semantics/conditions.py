"""Semantic filters and classes as SQL, in patterns whose matches know their own events and nothing else of the key.

So only what follows from these events alone can be asked; what needs all that the key's events say is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.knowledge.question import Question
from cepheid.lang.taxonomy import Taxonomy
from cepheid.plan.semantics.explain import Answer, with_questions
from cepheid.plan.semantics.filters import FilterTexts, mapping_problems
from cepheid.plan.semantics.inert import NotLifted, inert
from cepheid.plan.semantics.lifted import Lifting
from cepheid.plan.semantics.mapping import mistaken_values

_EVENT = "event"


@dataclass(frozen=True)
class LiftedConditions:
    """Makes SQL of semantic filters and classes, and adds what is wrong with them to the problems of `texts`."""

    texts: FilterTexts
    lifting: Lifting | None
    """None: the columns of the events are not known, or there are problems already. Then there is no SQL."""
    knower: str
    """What the conditions are asked of, for messages."""
    answers: list[Answer] = field(default_factory=list)
    """The filters so far, each with its SQL."""

    @staticmethod
    def of(texts: FilterTexts, types: Taxonomy | None, columns: pa.Schema | None, knower: str) -> LiftedConditions:
        """`types` is the pattern's taxonomy, which it must not have beside knowledge. `columns` None: the columns are
        not known.
        """
        knowledge, mapping = texts.knowledge, texts.mapping
        if knowledge is None or mapping is None:
            return LiftedConditions(texts, None, knower)
        found = [*mapping_problems(knowledge, mapping, columns), *_two_meanings(types)]
        texts.problems.extend(found)
        if found:
            return LiftedConditions(texts, None, knower)
        for warning in mistaken_values(mapping, knowledge):
            texts.warn(warning)
        try:
            if columns is not None:
                return LiftedConditions(texts, Lifting(knowledge, mapping, columns), knower)
            inert(knowledge, mapping)
        except NotLifted as reason:
            what = "the mapping does not say all about an event by itself"
            texts.problems.append(_refused(what, "mapping", reason))
        return LiftedConditions(texts, None, knower)

    def classes(self, asked: Sequence[tuple[str, str]]) -> Mapping[str, str]:
        """Class → SQL for an event that is of it; `asked` has each class with its place. Classes with problems are left
        out.
        """
        found = {}
        for where, name in asked:
            class_ = self.texts.class_of(name, where)
            if class_ is not None:
                atom = Atom("class", class_, (Variable(_EVENT),))
                sql = self.sql((atom,), {_EVENT: ""}, f"the class {name!r}", where)
                if sql is not None:
                    found[name] = sql
        return found

    def filter(self, text: str, atoms: tuple[Atom, ...], events: Mapping[str, str], where: str) -> str | None:
        """SQL of the filter with this text and these atoms; None if there is none."""
        sql = self.sql(atoms, events, f"the semantic filter {text!r}", where)
        if sql is not None:
            self.answers.append(Answer(text, with_questions(sql, self.questions)))
        return sql

    @property
    def questions(self) -> Sequence[Question]:
        """What is asked because it has no SQL."""
        return () if self.lifting is None else [*self.lifting.questions.values()]

    def sql(self, atoms: tuple[Atom, ...], events: Mapping[str, str], what: str, where: str) -> str | None:
        """The atoms as SQL; None if there is none. `events` is as for `Lifting.condition`; `what` names the atoms in
        messages.
        """
        if self.lifting is None:
            return None
        try:
            return self.lifting.condition(atoms, events)
        except NotLifted as reason:
            self.texts.problems.append(
                _refused(f"{what} asks more than the events of {self.knower} say", where, reason)
            )
            return None


def _two_meanings(types: Taxonomy | None) -> Sequence[Problem]:
    if types is None:
        return ()
    hint = "Leave the taxonomy out: the mapping says which column has the class, and the knowledge what is below it."
    return (Problem("a pattern with knowledge has no taxonomy", "taxonomy", hint=hint),)


def _refused(what: str, where: str, reason: NotLifted) -> Problem:
    hint = "OccurrencePattern.of(…, knowledge=…, mapping=…) can ask it: it knows all that the events of a key say."
    return Problem(f"{what}: {reason}", where, hint=hint)
