"""The closures of all sessions: what their events say, beside shared knowledge, and all that follows.

It is the same as `knowledge.closure.Closure` finds for each session, which defines it. A session whose events say
something of classes and properties is closed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.knowledge.compiled import CompiledRules
from cepheid.compile.knowledge.programs import Filter, Programs, compile_programs
from cepheid.compile.knowledge.tables import LOOKUPS, Lookup
from cepheid.kernel.arrays import Int32s, grown
from cepheid.kernel.knowledge.asking import ask_each
from cepheid.kernel.knowledge.layout import (
    IN_BASE,
    NEVER,
    ClosureStatus,
    Knowing,
    Said,
    Store,
    Verdict,
    new_agenda,
    new_closure_cursor,
    new_matching,
    new_store,
    with_facts,
    with_sessions,
    with_slots,
)
from cepheid.kernel.knowledge.remaining import passing
from cepheid.kernel.knowledge.step import close_sessions, times_of
from cepheid.kernel.knowledge.store import mark_terms, room_for
from cepheid.kernel.knowledge.view import SessionView
from cepheid.kernel.knowledge.whole_stores import LEAST_ROOM, store_of, tidied
from cepheid.knowledge.closure.closure import Closure, Contradiction, Pattern
from cepheid.knowledge.closure.limits import FactLimits, TooManyFacts, WhichLimit
from cepheid.knowledge.filters.solving import Closed
from cepheid.knowledge.terms import Terms, Triple
from cepheid.plan.limits import Limits

_SESSIONS = 1 << 6
_PARTS = ("subject", "predicate", "object")


class SessionClosures:
    """The closures of sessions, by number. All have the same `terms`."""

    def __init__(self, base: Closure, filters: Sequence[Filter] = (), limits: Limits | None = None) -> None:
        """`filters` are those that are asked."""
        self._closure, self._filters = base, filters
        self._rules = CompiledRules(base)
        self.terms = Terms(base.terms)
        self._shared = len(base.terms)
        self._literal = np.array([base.terms.is_literal(number) for number in range(self._shared)], np.bool_)
        self._base = store_of(base)
        self._store = new_store(_SESSIONS, LEAST_ROOM, 4 * LEAST_ROOM, np.zeros(0, np.int64))
        self._agenda, self._matching = new_agenda(LEAST_ROOM), new_matching(_SESSIONS)
        self._cursor = new_closure_cursor()
        self._sessions = self._dead = 0
        """How many sessions have numbers, and how many facts those have that ended."""
        self._free: list[int] = []
        self._ended: list[int] = []
        """Numbers for new sessions, and those whose facts are still there."""
        self._left: dict[int, Closure] = {}
        """The sessions whose events say something of classes and properties."""
        self._programs: Programs | None = None
        self._renewed: dict[int, int] = {}
        """The numbers of sessions that have passed a limit, by their former numbers."""
        self._rules.want((-1, base.same, -2), Lookup.SUBJECT_PREDICATE)  # names are counted so
        self._rules.list_wanted()
        self.limit(limits or Limits())

    def limit(self, limits: Limits) -> None:
        """Sets the limits from now on."""
        self._limits = FactLimits(limits.max_facts, limits.max_same_as)
        for closure in self._left.values():
            closure.limits = self._limits
        self._drops = limits.on_limit == "drop"
        self._cursor.most_facts, self._cursor.most_names = limits.max_facts, limits.max_same_as

    def said(self, facts: Iterable[tuple[Triple, int]]) -> Said:
        """Facts as numbers, each with its time (microseconds)."""
        given = [*facts]
        parts = [self.terms.number(term) for triple, _ in given for term in triple]
        subject, predicate, object_ = map(np.ascontiguousarray, np.array(parts, np.int32).reshape(-1, 3).T)
        return Said(subject, predicate, object_, np.array([time for _, time in given], np.int64))

    def add(self, sessions: Int32s, end: Ints, said: Said) -> None:
        """Adds what events say, one after the other: for each its session, and the end of its facts.

        If a session passes a limit, and that is no error, the event says nothing, and neither do later ones of the
        session. It then has another number (`number_of`).

        Raises:
            TooManyFacts: a session passes a limit.
        """
        self._know_terms()
        sessions = sessions.copy()  # some may get other numbers
        self._close(sessions, end, said)
        self._close_left(sessions, end, said)

    def _close(self, sessions: Int32s, end: Ints, said: Said) -> None:
        cursor, numbers = self._cursor, np.empty(len(said.time), np.int32)
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
                numbers,
            )
            match ClosureStatus(status):
                case ClosureStatus.DONE:
                    break
                case ClosureStatus.MORE_FACTS:
                    self._store = with_facts(self._store, 2 * len(self._store.facts))
                case ClosureStatus.MORE_SLOTS:
                    self._store = with_slots(
                        self._store, 2 * self._store.slots.shape[1] + room_for(2 * int(cursor.facts))
                    )
                case ClosureStatus.MORE_AGENDA:
                    more = 2 * len(self._agenda.time)
                    self._agenda = self._agenda._replace(
                        time=grown(self._agenda.time, more), fact=grown(self._agenda.fact, more)
                    )
                case ClosureStatus.UNPREPARED:
                    self._rules.prepare(int(cursor.predicate), int(cursor.object))
                    self._take_wanted()
                case ClosureStatus.TOO_MANY_FACTS:
                    self._leave_out("max_facts", sessions, end)
                case ClosureStatus.TOO_MANY_NAMES:
                    self._leave_out("max_same_as", sessions, end)

    # Limits

    def number_of(self, session: int) -> int:
        """The number that a session has now."""
        return self._renewed.get(session, session)

    @property
    def dropped(self) -> int:
        """How many facts of events were not taken because of limits."""
        return int(self._cursor.dropped)

    @dropped.setter
    def dropped(self, count: int) -> None:
        self._cursor.dropped = count

    def takes_more(self, session: int) -> bool:
        """Whether no event of the session has passed a limit."""
        return not self._store.sessions[session]["full"]

    def fill(self, sessions: Sequence[int]) -> None:
        """From now on these sessions take nothing more."""
        self._store.sessions["full"][list(sessions)] = 1

    def _leave_out(self, which: WhichLimit, sessions: Int32s, end: Ints) -> None:
        """Leaves out the event of the current visit, which passes a limit. What follows from it is known already in
        part, so its session is closed again without it, under another number.
        """
        if not self._drops:
            raise TooManyFacts(which, int(self._cursor.visit))
        visit, cursor = int(self._cursor.visit), self._cursor
        session = int(sessions[visit])
        fresh = self._renewed[session] = self.begin()
        sessions[sessions == session] = fresh
        _, times, *parts = self.stated(np.array([session], np.int32))
        subject, predicate, object_ = (part.astype(np.int32) for part in parts)
        cursor.waiting = 0
        self._close(np.array([fresh], np.int32), np.array([len(times)]), Said(subject, predicate, object_, times))
        self._store.sessions[fresh]["full"] = 1
        self._store.sessions[fresh]["brought"] = self._store.sessions[session]["brought"]
        self.end(session)
        cursor.visit, cursor.stated = visit, end[visit - 1] if visit else 0  # the visit is passed over and counted

    def _take_wanted(self) -> None:
        """Makes chains anew where patterns ask for more facts than before."""
        store, wanted = self._store, self._rules.tables.kinds["wanted"].copy()
        gained = np.bitwise_or.reduce(wanted[: len(store.wanted)] & ~store.wanted)
        for lookup in range(LOOKUPS):
            if lookup and gained >> lookup & 1:
                store.slots[lookup] = store.linked[:, lookup] = NONE
        self._store = store._replace(wanted=wanted)

    def _with_chains(self, pattern: Pattern, lookup: Lookup) -> Store:
        """The store, with chains for a pattern."""
        if self._rules.want(pattern, lookup):
            self._rules.list_wanted()
            self._take_wanted()
        return self._store

    def _make_room(self, sessions: int) -> None:
        room = len(self._store.sessions)
        if sessions > room:
            while room < sessions:
                room *= 2
            self._store = with_sessions(self._store, room)
            self._matching = self._matching._replace(against=grown(self._matching.against, room, NONE))

    def _know_terms(self) -> None:
        new = self.terms.literals_since(len(self._literal))
        if new:
            self._literal = np.append(self._literal, np.array(new, np.bool_))

    # Sessions begin and end

    def begin(self) -> int:
        """The number of a new session."""
        if self._free:
            return self._free.pop()
        self._sessions += 1
        self._make_room(self._sessions)
        return self._sessions - 1

    def end(self, session: int) -> None:
        """Forgets a session."""
        ended = self._store.sessions[session]
        ended["ended"] = 1
        self._dead += int(ended["count"])
        self._ended.append(session)
        self._left.pop(session, None)

    @property
    def is_full(self) -> bool:
        """Whether `tidy` pays: sessions that ended have more facts than the others."""
        return self._dead > max(LEAST_ROOM, int(self._cursor.facts) - self._dead)

    def tidy(self, needed: Int32s) -> Int32s:
        """Takes out the facts of sessions that ended, and terms that no others have, but for those that are needed.
        Returns the new numbers of all terms; NONE: it has none.
        """
        count, shared, store = int(self._cursor.facts), self._shared, self._store
        used = np.zeros(len(self.terms), np.bool_)
        used[:shared], used[needed] = True, True
        mark_terms(store, count, used)
        terms = np.where(used, np.cumsum(used) - 1, NONE).astype(np.int32)
        self._know_terms()
        self.terms = self.terms.kept((shared + np.flatnonzero(used[shared:])).tolist())
        self._literal = self._literal[used]
        kept, moved = tidied(store, self._cursor, self._ended, terms, count - self._dead)
        against = self._matching.against
        own = against >= 0
        against[own] = moved[against[own]]
        self._store, self._dead = kept, 0
        if self._programs is not None and self._programs.of_sessions:
            self._programs = None
        self._free += self._ended
        for session in self._ended:
            self._renewed.pop(session, None)
        self._ended = []
        return terms

    # Sessions that say something of classes and properties

    def _close_left(self, sessions: Int32s, end: Ints, said: Said) -> None:
        """Adds what events of such sessions say."""
        known = self._store.sessions
        for visit in np.flatnonzero(known["left"][sessions] & ~known["full"][sessions].astype(bool)).tolist():
            session, place = int(sessions[visit]), slice(int(end[visit - 1]) if visit else 0, int(end[visit]))
            if self._store.sessions[session]["full"]:
                self._cursor.dropped += place.stop - place.start
                continue
            closure = self._left[session] = self._left.get(session) or self._closed(session)
            is_contradicted = closure.contradiction is not None
            try:
                for time, triples in groupby(self._said_at(said, place.start, place.stop), itemgetter(1)):
                    closure.add([triple for triple, _ in triples], time)
            except TooManyFacts as error:
                if not self._drops:
                    raise TooManyFacts(error.which, visit) from None
                self._cursor.dropped += place.stop - place.start
                self._store.sessions[session]["full"] = 1
                self._left[session] = self._closed(session)
                continue
            if closure.contradiction is not None and not is_contradicted:
                self._store.sessions[session]["brought"] = visit
            self._cursor.storing = 1
            part = Said(said.subject[place], said.predicate[place], said.object[place], said.time[place])
            self._close(sessions[visit : visit + 1], np.array([len(part.time)]), part)
            self._cursor.storing = 0

    def _said_at(self, said: Said, first: int, end: int) -> list[tuple[Triple, int]]:
        columns = (column[first:end].tolist() for column in said)
        return [(self._triple(s, p, o), time) for s, p, o, time in zip(*columns, strict=True)]

    def _closed(self, session: int) -> Closure:
        """The closure of what a session has stated."""
        closure = Closure(self._closure, self._limits)
        rows = self.stated(np.array([session], np.int32)).T.tolist()
        stated = [(self._triple(s, p, o), time) for _, time, s, p, o in rows]
        for time, facts in groupby(sorted(stated, key=itemgetter(1)), itemgetter(1)):
            closure.add([fact for fact, _ in facts], time)
        return closure

    def stated(self, sessions: Int32s) -> Ints:
        """What the events of sessions say (5, n): the place of the session in `sessions`, the earliest time
        (microseconds), and the numbers of subject, predicate and object.
        """
        facts = self._store.facts[: int(self._cursor.facts)]
        facts = facts[facts["stated"] != NEVER]
        facts = facts[np.argsort(facts["session"], kind="stable")]
        first, end = (np.searchsorted(facts["session"], sessions, side) for side in ("left", "right"))
        counts = end - first
        place = np.repeat(np.arange(len(sessions)), counts)
        own = facts[np.arange(len(place)) + np.repeat(end - np.cumsum(counts), counts)]
        return np.stack([place, own["stated"], *(own[part].astype(np.int64) for part in _PARTS)])

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

    def times(self, sessions: Int32s, facts: Int32s) -> Ints:
        """The earliest times (microseconds) of facts (3, n), each of a session; NEVER if they are not known."""
        found = np.zeros(len(sessions), np.int64)
        times_of(self._store, self._base, self._shared, sessions, facts, found)
        for at in np.flatnonzero(self._store.sessions["left"][sessions]).tolist():
            closure = self._left[int(sessions[at])]
            numbers = [closure.terms.find(term) for term in self._triple(*facts[:, at].tolist())]
            time = None if None in numbers else closure.facts.time(tuple(numbers))  # type: ignore[arg-type]
            found[at] = NEVER if time is None else time
        return found

    def of(self, session: int) -> Closed:
        """What a session knows, until something is added."""
        if (closure := self._left.get(session)) is not None:
            return closure
        return SessionView(self._closure, self.terms, self._with_chains, session)

    def knowing(self, sessions: Int32s, individuals: Int32s) -> Knowing:
        """What is known until something is added, for programs: the session of each visit, the individual of each
        event.
        """
        if self._programs is None:
            self._programs = compile_programs(self._filters, self._rules, self.terms)
            self._rules.list_wanted()
            self._take_wanted()
        programs = self._programs
        return Knowing(
            programs.programs, programs.rules, self._base, self._store, self._matching, sessions, individuals
        )

    def asked(self, number: int, sessions: Int32s, individuals: Int32s, times: Ints) -> Ints:
        """For each individual a Verdict on a filter, in the individual's session and at its time (microseconds).

        `number` is that of the filter. The filter has at most one bound variable, which is the individual.
        """
        found = np.zeros(len(times), np.int64)
        ask_each(self.knowing(sessions, individuals), number, times, found)
        open_ = np.flatnonzero(found == Verdict.UNDECIDED)
        bound = individuals[open_].reshape(-1, 1)[:, : len(self._filters[number].bound)]
        found[open_] = self.tested(number, sessions[open_], bound, times[open_])
        return found

    def tested(self, number: int, sessions: Int32s, bound: Int32s, times: Ints) -> Ints:
        """A Verdict on a filter for each question: its session, the terms (questions, variables) of the variables that
        are bound, and its time (microseconds).
        """
        knowing, found = self.knowing(sessions, sessions), np.full(len(times), Verdict.UNDECIDED, np.int64)
        assert self._programs is not None
        remaining = self._programs.remaining[number]
        if remaining is not None and len(times) and not self._store.sessions["left"][sessions].any():
            passes = passing(knowing, number, remaining, bound, times, self.of(int(sessions[0])))
            if passes is not None:
                found[:] = np.where(passes, Verdict.HOLDS, Verdict.DOES_NOT_HOLD)
        return found

    def brought_by(self, session: int) -> int:
        """The number of the event, of those added by one call, that first brought the session a contradiction."""
        return int(self._store.sessions[session]["brought"])

    def contradiction(self, session: int) -> Contradiction | None:
        """The earliest contradiction in what a session knows."""
        if (closure := self._left.get(session)) is not None:
            return closure.contradiction
        known = self._store.sessions[session]
        if known["contradicted"] == NEVER:
            return None
        rule, given = self._rules.sources[int(known["contradiction"])]
        shown: list[Triple] = []
        for number in self._matching.against[session].tolist():
            if number == NONE:
                break
            fact = self._store.facts[number] if number >= 0 else self._base.facts[IN_BASE - number]
            shown.append(self._triple(int(fact["subject"]), int(fact["predicate"]), int(fact["object"])))
        shown += [self._triple(*fact) for fact in given]
        return Contradiction(int(known["contradicted"]), rule, tuple(shown))
