"""What the events of each key say, and what follows from it: the sessions of a pattern with knowledge.

A key has a session: what its events say, beside the knowledge that all keys share. Each fact has the earliest time at
which it holds. So events are added as soon as they are there, and an answer is the time from which it is true.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.errors import SnapshotError
from cepheid.events.batch import TIME, Batch
from cepheid.kernel.arrays import NO_TIME, Int32s, Visits
from cepheid.kernel.occurrences.layout import NEVER, UNBOUND
from cepheid.knowledge.closure.closure import ALWAYS, Closure, Contradiction
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.knowledge.terms import Iri, Term, Triple
from cepheid.matchers.occurrences.session_state import facts_of, facts_state
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.occurrences.semantic import PlannedType


class Session:
    """What the events of one key say, and what follows."""

    def __init__(self, base: Closure) -> None:
        self._closure = Closure(base)
        self._times: list[int] = []
        """The times (microseconds) of what its events say, ascending, each once."""
        self.stated: dict[Triple, int] = {}
        """What its events say, each with the earliest time; for snapshots."""
        self.waiting: list[int] = []
        """The positions of its latest events: others of the same time may still say something about them."""
        self.latest = NO_TIME
        """The time of these."""
        self.is_reported = False
        """Whether it is known that the events contradict what is known."""

    def add(self, facts: Iterable[Triple], time: int) -> None:
        """Adds what an event says at its time."""
        new = [fact for fact in facts if time < self.stated.get(fact, NEVER)]
        if not new:
            return
        place = bisect_left(self._times, time)
        if self._times[place : place + 1] != [time]:
            self._times.insert(place, time)
        self.stated.update(dict.fromkeys(new, time))
        self._closure.add(new, time)

    def is_of(self, event: Iri, type_: PlannedType, time: int) -> bool:
        """Whether the event is of the type, by what is known at a time (microseconds)."""
        asked = Atom("class", type_.class_, (Variable("event"),))
        return self._holds((asked,), {"event": event}, time) and all(
            self._holds(atoms, {} if variable is None else {variable: event}, time) for variable, atoms in type_.filters
        )

    def holds_from(self, atoms: Sequence[Atom], bindings: Mapping[str, Term]) -> int:
        """The time (microseconds) from which a filter holds by what is known; NEVER if it does not."""
        if not self._holds(atoms, bindings, NEVER):
            return NEVER
        # What holds once holds from then on, so halving finds the first of the times. Before all: by knowledge alone.
        times = [ALWAYS, *self._times]
        return times[bisect_left(times, 1, key=lambda time: int(self._holds(atoms, bindings, time)))]

    def _holds(self, atoms: Sequence[Atom], bindings: Mapping[str, Term], time: int) -> bool:
        return next(solutions(atoms, self._closure, bindings, time), None) is not None

    @property
    def contradiction(self) -> Contradiction | None:
        """The earliest contradiction in what is known."""
        return self._closure.contradiction


class Sessions:
    """The sessions of all keys, and what each event of the working set means."""

    def __init__(self, plans: OccurrencePlans) -> None:
        assert plans.semantics is not None
        self._semantics = plans.semantics
        self._facts = EventFacts(plans.semantics.mapping, plans.semantics.knowledge.prefixes)
        self._meanings, self._filters, self._bits = plans.meanings, plans.filters, len(plans.bits)
        self.of_key: dict[int, Session] = {}
        self._of_visit: list[Session] = []
        self._individuals: list[Iri] = []
        """By position in the working set."""
        self._masks = np.zeros(0, np.int64)
        """By position: the bits of the meanings that an event has."""
        self.inconsistent = 0
        """The number of sessions whose events contradict what is known."""
        self.contradictions: list[tuple[int, Contradiction]] = []
        """Those that the events added last have brought: the position of the event, and the first one of its session.
        """
        self._written = 0
        """How many of the masks are in the working set's."""

    def add(self, events: Batch, visits: Visits) -> None:
        """Adds what the events say, which come after those of the working set, and finds out what they mean."""
        first = len(self._individuals)
        times = events.column(TIME).view(pa.int64()).to_pylist()
        said = self._said(events)
        self._individuals += [name for name, _ in said]
        self._masks = np.append(self._masks, np.zeros(len(said), np.int64))
        self._of_visit, self.contradictions = [], []
        begin = first
        for key, end, closes in zip(visits.key.tolist(), visits.end.tolist(), visits.closes.tolist(), strict=True):
            session = self.of_key.get(key)
            if session is None:
                session = self.of_key[key] = Session(self._semantics.knowledge.closure)
            self._of_visit.append(session)
            if closes:
                del self.of_key[key]
            for time, positions in groupby(range(begin, end), lambda position: times[position - first]):
                self._take(session, [*positions], time, said, first)
            begin = end

    def _take(
        self, session: Session, positions: list[int], time: int, said: Sequence[tuple[Iri, list[Triple]]], first: int
    ) -> None:
        """Takes events of one time."""
        for position in positions:
            session.add(said[position - first][1], time)
            if not session.is_reported and (found := session.contradiction) is not None:
                session.is_reported = True
                self.contradictions.append((position, found))
                self.inconsistent += 1
        if time != session.latest:
            session.latest, session.waiting = time, []
        session.waiting += positions
        self._written = min(self._written, session.waiting[0])
        for position in session.waiting:
            self._masks[position] = self._mask(session, self._individuals[position], time)

    def _mask(self, session: Session, event: Iri, time: int) -> int:
        return sum(
            1 << number for number, meaning in enumerate(self._meanings) if session.is_of(event, meaning.type, time)
        )

    def write(self, mask: Ints) -> None:
        """Writes the bits of what events mean to the masks of the working set."""
        new = slice(self._written, len(self._masks))
        own, lifted = self._masks[new], mask[new] & ((1 << self._bits) - 1)
        for number, meaning in enumerate(self._meanings):
            has = own >> number & 1 if meaning.bit < 0 else own >> number & lifted >> meaning.bit & 1
            lifted |= has << self._bits + number
        mask[new] = lifted
        self._written = new.stop

    def answered(self, questions: Ints) -> Ints:
        """The times of the answers to the kernel's questions (`Answers`)."""
        return np.array([self._answer(*question) for question in questions.tolist()], np.int64)

    def _answer(self, number: int, visit: int, *individuals: int) -> int:
        asked = self._filters[number]
        bindings = {
            name: self._individuals[position]
            for (name, _), position in zip(asked.variables, individuals, strict=False)
            if position != UNBOUND
        }
        return self._of_visit[visit].holds_from(asked.atoms, bindings)

    def _said(self, events: Batch) -> list[tuple[Iri, list[Triple]]]:
        values = events.values
        return self._facts.read({name: values[number] for name, number in self._semantics.columns}, events.shown)

    # Snapshots

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state as arrays; `hold` must have been called before."""
        waiting = [(key, position) for key, session in self.of_key.items() for position in session.waiting]
        latest = [(key, session.latest) for key, session in self.of_key.items()]
        return {
            **facts_state((key, session.stated) for key, session in self.of_key.items()),
            "latest": np.array(latest, np.int64).reshape(-1, 2),
            "waiting": np.array(waiting, np.int64).reshape(-1, 2),
            "masks": self._masks,
            "inconsistent": np.array(self.inconsistent),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Continues from what `state` returned, with the events that were held.

        Raises:
            SnapshotError: the arrays and the events do not belong together.
        """
        said = [] if held is None else self._said(held)
        self._individuals, self._masks = [name for name, _ in said], arrays["masks"].copy()
        if len(self._masks) != len(said):
            raise SnapshotError("the snapshot's facts are not those of its events")
        for key, latest in arrays["latest"].tolist():
            session = self.of_key[key] = Session(self._semantics.knowledge.closure)
            session.latest = latest
        facts = sorted(facts_of(arrays), key=itemgetter(0, 1))
        for (key, time), group in groupby(facts, itemgetter(0, 1)):
            self.of_key[key].add([fact for _, _, fact in group], time)
        for key, position in arrays["waiting"].tolist():
            self.of_key[key].waiting.append(position)
        for session in self.of_key.values():
            session.is_reported = session.contradiction is not None
        self.inconsistent = int(arrays["inconsistent"])

    # Keys and events

    def hold(self, positions: Int32s) -> None:
        """From now on there are only the events at these positions, which ascend."""
        self._individuals = [self._individuals[position] for position in positions.tolist()]
        self._masks = self._masks[positions]
        self._written = 0
        place = {position: number for number, position in enumerate(positions.tolist())}
        for session in self.of_key.values():
            session.waiting = [place[position] for position in session.waiting if position in place]

    @property
    def keys(self) -> Int32s:
        """The numbers of the keys that have a session, ascending."""
        return np.array(sorted(self.of_key), np.int32)

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Key target[i] gets the session of key source[i]. They may share it: a session only learns, and what it knows
        has the time from which it is known.
        """
        for one, other in zip(source.tolist(), target.tolist(), strict=True):
            if one in self.of_key:
                self.of_key[other] = self.of_key[one]

    def drop(self, keys: Int32s) -> None:
        for key in keys.tolist():
            self.of_key.pop(key, None)

    def renumber(self, before: Int32s) -> None:
        self.of_key = {number: self.of_key[key] for number, key in enumerate(before.tolist()) if key in self.of_key}
