"""The definition of what events mean: for each question, all that the events up to a time say is closed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri, Triple
from cepheid.plan.occurrences.semantic import PlannedType


class Said(NamedTuple):
    """What an event says at its time (microseconds)."""

    individual: Iri
    time: int
    facts: Sequence[Triple]


class Known:
    """What is known in the session of one key; `events` by position."""

    def __init__(self, knowledge: Knowledge, events: Mapping[int, Said]) -> None:
        self._knowledge, self._events = knowledge, events

    def is_of(self, event: int, type_: PlannedType, time: int) -> bool:
        """Whether the event is of the type."""
        of_class = Atom("class", type_.class_, (Variable("event"),))
        return self.holds((of_class,), {"event": event}, time) and all(
            self.holds(atoms, {} if variable is None else {variable: event}, time) for variable, atoms in type_.filters
        )

    def holds(self, atoms: Sequence[Atom], events: Mapping[str, int], time: int) -> bool:
        """Whether the filter holds at the time; `events` has the positions of the events that variables are."""
        closure = Closure(self._knowledge.closure)
        for said in self._events.values():
            if said.time <= time:
                closure.add(said.facts)
        individuals = {name: self._events[position].individual for name, position in events.items()}
        return next(solutions(atoms, closure, individuals), None) is not None
