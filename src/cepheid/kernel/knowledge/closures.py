"""The closures of all sessions: what their events say, beside shared knowledge, and all that follows.

It is the same as `knowledge.closure.Closure` finds for each session, which defines it. A session whose events say
something of classes and properties is closed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.knowledge.compiled import CompiledRules
from cepheid.kernel.arrays import NO_TIME, Int32s, grown
from cepheid.kernel.jit import compiling_alone
from cepheid.kernel.knowledge.layout import (
    new_closure_cursor,
    IN_BASE,
    NEVER,
    ClosureStatus,
    Said,
    Store,
    new_agenda,
    new_matching,
    new_store,
    with_facts,
    with_sessions,
)
from cepheid.kernel.knowledge.step import close_sessions, times_of
from cepheid.kernel.knowledge.store import place_all
from cepheid.knowledge.closure.closure import ALWAYS, Closure, Contradiction
from cepheid.knowledge.terms import Literal, Terms, Triple

_ROOM = 1 << 12
_SESSIONS = 1 << 6


class SessionClosures:
    """The closures of sessions, by number. All have the same `terms`."""

    def __init__(self, base: Closure) -> None:
        self._closure = base
        self._rules = CompiledRules(base)
        self.terms = Terms(base.terms)
        self._shared = len(base.terms)
        self._literal = np.array([base.terms.is_literal(number) for number in range(self._shared)], np.bool_)
        self._base = _stored(base)
        self._store = new_store(_SESSIONS, _ROOM)
        self._agenda, self._matching = new_agenda(_ROOM), new_matching(_SESSIONS)
        self._cursor = new_closure_cursor()
        self._left: dict[int, Closure] = {}
        """The sessions whose events say something of classes and properties."""

    def said(self, facts: Iterable[tuple[Triple, int]]) -> Said:
        """Facts as numbers, each with its time (microseconds)."""
        number = self.terms.number
        rows = [(number(s), number(p), number(o), time) for (s, p, o), time in facts]
        subject, predicate, object_, time = np.array(rows, np.int64).reshape(-1, 4).T
        return Said(subject.astype(np.int32), predicate.astype(np.int32), object_.astype(np.int32), time.copy())

    def add(self, sessions: Int32s, end: Ints, said: Said) -> None:
        """Adds what events say: the facts of each session end before `end`. No session comes twice."""
        self._make_room(int(sessions.max(initial=-1)) + 1)
        self._know_terms()
        cursor = self._cursor
        cursor.visit = cursor.stated = 0
        while True:
            status = close_sessions(
                self._rules.tables,
                self._base,
                self._store,
                self._agenda,
                self._matching,
                self._literal,
                cursor,
                said,
                sessions,
                end,
            )
            match ClosureStatus(status):
                case ClosureStatus.DONE:
                    break
                case ClosureStatus.MORE_FACTS:
                    self._store = with_facts(self._store, 2 * len(self._store.facts))
                    place_all(self._store, int(cursor.facts))
                case ClosureStatus.MORE_AGENDA:
                    more = 2 * len(self._agenda.time)
                    self._agenda = self._agenda._replace(
                        time=grown(self._agenda.time, more), fact=grown(self._agenda.fact, more)
                    )
                case ClosureStatus.UNPREPARED:
                    self._rules.prepare(int(cursor.predicate), int(cursor.object))
        self._close_left(sessions, end, said)

    def _make_room(self, sessions: int) -> None:
        room = len(self._store.sessions)
        if sessions > room:
            while room < sessions:
                room *= 2
            self._store = with_sessions(self._store, room)
            self._matching = self._matching._replace(against=grown(self._matching.against, room, NONE))

    def _know_terms(self) -> None:
        known, count = len(self._literal), len(self.terms)
        if known < count:
            new = [self.terms.is_literal(number) for number in range(known, count)]
            self._literal = np.append(self._literal, np.array(new, np.bool_))

    # Sessions that say something of classes and properties

    def _close_left(self, sessions: Int32s, end: Ints, said: Said) -> None:
        left = np.flatnonzero(self._store.sessions["left"][sessions])
        for visit in left.tolist():
            session = int(sessions[visit])
            if (closure := self._left.get(session)) is None:
                closure = self._left[session] = Closure(self._closure)
                for time, facts in self.stated(session).items():
                    closure.add(facts, time)
                continue
            first = int(end[visit - 1]) if visit else 0
            for at in range(first, int(end[visit])):
                fact = said.subject[at], said.predicate[at], said.object[at]
                closure.add([self._triple(*map(int, fact))], int(said.time[at]))

    def stated(self, session: int) -> dict[int, list[Triple]]:
        """What the session's events say, by time."""
        found: dict[int, list[Triple]] = {}
        for fact in self._facts_of(session):
            if fact["stated"] != NEVER:
                triple = self._triple(int(fact["subject"]), int(fact["predicate"]), int(fact["object"]))
                found.setdefault(int(fact["stated"]), []).append(triple)
        return found

    def _triple(self, subject: int, predicate: int, object_: int) -> Triple:
        return self.terms.term(subject), self.terms.term(predicate), self.terms.term(object_)

    def _facts_of(self, session: int) -> Iterator[np.void]:
        number = int(self._store.sessions["last"][session])
        while number != NONE:
            fact = self._store.facts[number]
            yield fact
            number = int(fact["previous"])

    # Questions

    def facts(self, session: int) -> Iterator[tuple[Triple, int]]:
        """The facts of a session that are not shared, each with the earliest time at which it holds."""
        closure = self._left.get(session)
        if closure is not None:
            yield from closure.own_facts()
            return
        for fact in self._facts_of(session):
            yield self._triple(int(fact["subject"]), int(fact["predicate"]), int(fact["object"])), int(fact["time"])

    def contradiction(self, session: int) -> Contradiction | None:
        """The earliest contradiction in what a session knows."""
        if (closure := self._left.get(session)) is not None:
            return closure.contradiction
        known = self._store.sessions[session]
        if known["contradicted"] == NEVER:
            return None
        source = self._rules.sources[int(known["contradiction"])]
        shown: list[Triple] = []
        for number in self._matching.against[session].tolist():
            if number == NONE:
                break
            fact = self._store.facts[number] if number >= 0 else self._base.facts[IN_BASE - number]
            shown.append(self._triple(int(fact["subject"]), int(fact["predicate"]), int(fact["object"])))
        shown += [self._triple(*fact) for fact in source.given]
        return Contradiction(int(known["contradicted"]), source.name, tuple(shown))


def _stored(closure: Closure) -> Store:
    """The facts of shared knowledge, with all their chains."""
    facts = np.array([*closure.facts], np.int32).reshape(-1, 3)
    store = new_store(1, len(facts))
    store.facts["subject"], store.facts["predicate"], store.facts["object"] = facts.T
    store.facts["time"], store.facts["stated"] = ALWAYS, NEVER
    store.facts["previous"] = np.arange(-1, len(facts) - 1)
    store.sessions["last"], store.sessions["count"] = len(facts) - 1, len(facts)
    place_all(store, len(facts))
    return store
