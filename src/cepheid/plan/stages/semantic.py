"""The semantic filters and classes of a pattern of stages as SQL over its events.

A partial match knows the events that it has taken, and nothing else of its key. So only what follows from these events
alone can be asked; what needs all that the key's events say is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.semantics.filters import FilterTexts, mapping_problems
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.lifted import Lifting
from cepheid.plan.semantics.names_sql import quoted
from cepheid.plan.stages.names import always_one

_EVENT = "event"


@dataclass(frozen=True)
class SemanticConditions:
    """Makes SQL of semantic filters and classes, and adds what is wrong with them to `problems`."""

    pattern: Pattern
    lifting: Lifting | None
    """None: the columns of the events are not known, or there are problems already. Then there is no SQL."""
    problems: list[Problem]

    @staticmethod
    def of(pattern: Pattern, columns: pa.Schema | None, problems: list[Problem]) -> SemanticConditions:
        """`columns` None: the columns are not known."""
        if pattern.knowledge is None or pattern.mapping is None:
            return SemanticConditions(pattern, None, problems)
        found = [*mapping_problems(pattern.knowledge, pattern.mapping, columns), *_two_meanings_of_types(pattern)]
        problems += found
        if found or columns is None:
            return SemanticConditions(pattern, None, problems)
        try:
            return SemanticConditions(pattern, Lifting(pattern.knowledge, pattern.mapping, columns), problems)
        except NotLifted as reason:
            problems.append(_refused("the mapping does not say all about an event by itself", "mapping", reason))
            return SemanticConditions(pattern, None, problems)

    def classes(self, asked: Sequence[tuple[str, str]]) -> Mapping[str, str]:
        """Class → SQL for an event that is of it; `asked` has each class with its place."""
        found = {}
        for where, name in asked:
            class_ = self._texts.class_of(name, where)
            if class_ is not None:
                atom = Atom("class", class_, (Variable(_EVENT),))
                sql = self._sql((atom,), {_EVENT: ""}, f"the class {name!r}", where)
                if sql is not None:
                    found[name] = sql
        return found

    def filter(self, text: str, where: str, current: str | None, visible: int) -> str | None:
        """SQL of a filter; None if there is none.

        Args:
            text: The filter.
            where: Its place, for messages.
            current: The name under which it has the current event; None: it has no name there.
            visible: How many stages come before or are the current one.
        """
        atoms = self._texts.atoms(text, where, [leaf.name for leaf in self.pattern.leaves])
        if atoms is None:
            return None
        used = {argument.name for atom in atoms for argument in atom.arguments if isinstance(argument, Variable)}
        found = [*self._stage_problems(used, text, where, current, visible)]
        self.problems.extend(found)
        if found:
            return None
        events = {leaf.name: f"{quoted(leaf.name)}." for leaf in self.pattern.leaves if leaf.name in used}
        events |= {} if current is None else {current: ""}
        return self._sql(atoms, events, f"the semantic filter {text!r}", where)

    @property
    def _texts(self) -> FilterTexts:
        return FilterTexts(self.pattern.knowledge, self.pattern.mapping, "Pattern.begin", self.problems)

    def _sql(self, atoms: tuple[Atom, ...], events: Mapping[str, str], what: str, where: str) -> str | None:
        if self.lifting is None:
            return None
        try:
            return self.lifting.condition(atoms, events)
        except NotLifted as reason:
            self.problems.append(_refused(f"{what} asks more than the events of a partial match say", where, reason))
            return None

    def _stage_problems(
        self, used: set[str], text: str, where: str, current: str | None, visible: int
    ) -> Iterator[Problem]:
        """Problems of variables with the names of stages that are not one event here."""
        for number, (leaf, one) in enumerate(zip(self.pattern.leaves, always_one(self.pattern), strict=True)):
            if leaf.name not in used or leaf.name == current or (one and number < visible):
                continue
            why = "comes later" if one else "does not always take exactly one event"
            hint = "Use another name for a variable that may be anything, or only stages that take one event before."
            at = text.find(f"?{leaf.name}")
            span = (at, at + len(leaf.name) + 1)
            yield Problem(f"?{leaf.name} has the name of a stage that {why}", where, text, span, hint)


def _two_meanings_of_types(pattern: Pattern) -> Iterator[Problem]:
    if pattern.types is not None:
        hint = (
            "Leave the taxonomy out: the mapping says which column has the class, and the knowledge what is below it."
        )
        yield Problem("a pattern with knowledge has no taxonomy", "taxonomy", hint=hint)


def _refused(what: str, where: str, reason: NotLifted) -> Problem:
    hint = "OccurrencePattern.of(…, knowledge=…, mapping=…) can ask it: it knows all that the events of a key say."
    return Problem(f"{what}: {reason}", where, hint=hint)
