"""What the events of each key say, and what follows from it: the sessions of a pattern with knowledge.

A key has a session: what its events say, beside the knowledge that all keys share. Each fact has the earliest time at
which it holds. So events are added as soon as they are there, and an answer is the time from which it is true.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.knowledge.programs import Filter
from cepheid.errors import LimitExceeded, SnapshotError
from cepheid.events.batch import TIME, Batch
from cepheid.kernel.arrays import NO_TIME, Flags, Int32s, Visits
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.kernel.knowledge.layout import Said, Verdict, concatenated
from cepheid.kernel.knowledge.numbering import Numbering
from cepheid.kernel.occurrences.kernel import Answering
from cepheid.kernel.occurrences.layout import NEVER, UNBOUND
from cepheid.knowledge.closure.closure import Contradiction
from cepheid.knowledge.closure.limits import TooManyFacts
from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.events.facts import EventFacts, Shown
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom
from cepheid.knowledge.terms import Term
from cepheid.matchers.occurrences.session_state import facts_of, facts_state
from cepheid.output.values import columns_text, event_text
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plans import OccurrencePlans

_AT_ONCE = 1 << 12
"""How many events are added to sessions at once. What they know then fits into the processor's cache, and sessions that
end make room for the next ones: measured 60 k events/s with all events of a call at once, and 90 k with these.
"""


def in_parts(visits: Visits, first: int) -> list[Visits]:
    """The visits in parts of few events, but no visit is divided; their events begin at position `first`."""
    borders = np.flatnonzero(np.diff((visits.end - first) // _AT_ONCE)) + 1
    return [Visits(*part) for part in zip(*(np.split(field, borders) for field in visits), strict=True)]


@contextmanager
def not_collecting() -> Iterator[None]:
    """Within the block Python does not look for rings of objects to free. Facts are in none, and there are so many that
    it would look all the time: reading took 38 microseconds an event, and takes 11.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _filter_of_type(variable: str | None, atoms: tuple[Atom, ...]) -> Filter:
    """A filter of a restricted type, whose variable is the event."""
    return Filter(atoms, () if variable is None else (variable,))


class Session:
    """What the events of one key say, and what follows, is in the closures under a number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.times: list[int] = []
        """The times (microseconds) of its events, ascending, each once."""
        self.waiting: list[int] = []
        """The positions of its latest events: others of the same time may still say something about them."""
        self.latest = NO_TIME
        """The time of these."""
        self.is_reported = False
        """Whether it is known that the events contradict what is known."""
        self.keys = 1
        """How many keys have it."""

    def take(self, times: Iterable[int]) -> None:
        """Notes the times of events."""
        for time in times:
            if not self.times or time > self.times[-1]:
                self.times.append(time)
            elif self.times[(place := bisect_left(self.times, time))] != time:
                self.times.insert(place, time)


class Sessions:
    """The sessions of all keys, and what each event of the working set means."""

    def __init__(self, plans: OccurrencePlans) -> None:
        assert plans.semantics is not None
        self._semantics = plans.semantics
        self._facts = EventFacts(plans.semantics.mapping, plans.semantics.knowledge.prefixes)
        self._meanings, self._filters, self._bits = plans.meanings, plans.filters, len(plans.bits)
        filters = [Filter(one.atoms, tuple(name for name, _ in one.variables)) for one in plans.filters]
        of_types = [_filter_of_type(*one) for meaning in plans.meanings for one in meaning.type.filters]
        self._asked: list[Filter] = [*filters, *of_types]
        """The filters of patterns, then those of restricted types."""
        self._closures = SessionClosures(plans.semantics.knowledge.closure, self._asked, plans.limits)
        self._limits = plans.limits
        self.of_key: dict[int, Session] = {}
        self._of_visit: list[Session] = []
        self._ended: list[Session] = []
        """Those that nobody asks any more after this call."""
        self._individuals = np.zeros(0, np.int32)
        """By position in the working set."""
        self._masks = np.zeros(0, np.int64)
        """By position: the bits of the meanings that an event has."""
        self._over = np.zeros(0, np.bool_)
        """By position: whether the key is closed. Then nobody asks for the individual after the call."""
        self.inconsistent = 0
        """The number of sessions whose events contradict what is known."""
        self.contradictions: list[tuple[int, Contradiction]] = []
        """Those that the events added last have brought: the position of the event, and the first one of its session.
        """
        self._written = 0
        """How many of the masks are in the working set's."""

    def add(self, events: Batch, visits: Visits) -> None:
        """Adds what the events say, which come after those of the working set, and finds out what they mean.

        Raises:
            LimitExceeded: a session passes a limit.
        """
        self._tidy()
        first, times = len(self._individuals), events.column(TIME).view(pa.int64()).to_numpy()
        individuals, ends, said = self._numbered(events, times)
        self._individuals = np.append(self._individuals, individuals)
        self._masks = np.append(self._masks, np.zeros(len(individuals), np.int64))
        self._of_visit = [self._session_of(key, closes) for key, closes in zip(visits.key, visits.closes, strict=True)]
        numbers = np.array([session.number for session in self._of_visit], np.int32)
        counts = np.diff(visits.end, prepend=first)
        of_event = np.repeat(numbers, counts)
        self._over = np.append(self._over, np.repeat(visits.closes, counts))
        try:
            self._closures.add(of_event, ends, said)
        except TooManyFacts as error:
            raise self._passed(error, events) from None
        self._follow_renewed(self._of_visit)
        self._report(first)
        self._take(first, times, visits.end)

    def _passed(self, error: TooManyFacts, events: Batch) -> LimitExceeded:
        most = getattr(self._limits, error.which)
        what = "facts for" if error.which == "max_facts" else "names for one individual of"
        key = ", ".join(repr(values[error.visit].as_py()) for values in events.keys)
        where = ", ".join([*([key] if key else []), f"at {event_text(columns_text(events.shown(error.visit)))}"])
        advice = "Choose a key that ends, raise the limit, or leave out what passes it with on_limit='drop'"
        return LimitExceeded(f"more than {most:,} {what} one key ({error.which}), {where}. {advice}")

    def _follow_renewed(self, sessions: Iterable[Session]) -> None:
        """Sessions that have passed a limit have other numbers since then."""
        for session in sessions:
            session.number = self._closures.number_of(session.number)

    @property
    def dropped(self) -> int:
        """How many facts of events were not taken because of limits."""
        return self._closures.dropped

    def limit(self, limits: Limits) -> None:
        """Sets the limits from now on."""
        self._limits = limits
        self._closures.limit(limits)

    def _report(self, first: int) -> None:
        """Notes the contradictions that the new events, which begin at position `first`, have brought."""
        self.contradictions = []
        for session in self._of_visit:
            if session.is_reported or (found := self._closures.contradiction(session.number)) is None:
                continue
            session.is_reported = True
            self.contradictions.append((first + self._closures.brought_by(session.number), found))
            self.inconsistent += 1

    def _session_of(self, key: int, closes: bool) -> Session:  # noqa: FBT001 - as Visits has it
        session = self.of_key.get(int(key))
        if session is None:
            session = self.of_key[int(key)] = Session(self._closures.begin())
        if closes:
            self._leave(int(key))
        return session

    def _leave(self, key: int) -> None:
        """The key has no session any more."""
        session = self.of_key.pop(key)
        session.keys -= 1
        if not session.keys:
            self._ended.append(session)

    def _tidy(self) -> None:
        """Forgets the sessions that ended."""
        for session in self._ended:
            self._closures.end(session.number)
        self._ended = []
        if self._closures.is_full:
            self._individuals[self._over] = 0  # any term of the shared knowledge
            self._individuals = self._closures.tidy(self._individuals)[self._individuals]

    def _take(self, first: int, times: Ints, ends: Ints) -> None:
        """Finds out what the new events mean, and earlier ones with the same time."""
        asked, sessions, when = list[int](), list[int](), list[int]()
        begin = first
        for session, end in zip(self._of_visit, ends.tolist(), strict=True):
            own = times[begin - first : end - first].tolist()
            session.take(own)
            again = session.waiting if own and own[0] == session.latest else []
            asked += [*again, *range(begin, end)]
            when += [session.latest] * len(again) + own
            sessions += [session.number] * (len(again) + len(own))
            for position, time in enumerate(own, begin):
                if time != session.latest:
                    session.latest, session.waiting = time, []
                session.waiting.append(position)
            begin = end
        if asked:
            self._written = min(self._written, *asked)
            self._mean(np.array(asked, np.int64), np.array(sessions, np.int32), np.array(when, np.int64))

    def _mean(self, positions: Ints, sessions: Int32s, times: Ints) -> None:
        """Sets the masks of events, whose time is given."""
        number, individuals = self._closures.terms.number, self._individuals[positions]
        masks = np.zeros(len(positions), np.int64)
        for bit, meaning in enumerate(self._meanings):
            facts = np.full((3, len(positions)), number(TYPE), np.int32)
            facts[0], facts[2] = individuals, number(meaning.type.class_)
            has = self._closures.times(sessions, facts) <= times
            for filter_ in meaning.type.filters:
                at = np.flatnonzero(has)
                has[at] = self._pass(_filter_of_type(*filter_), sessions[at], individuals[at], times[at])
            masks |= has.astype(np.int64) << bit
        self._masks[positions] = masks

    def _pass(self, filter_: Filter, sessions: Int32s, individuals: Int32s, times: Ints) -> Flags:
        """For which individuals the filter of a restricted type holds, in their sessions and at their times."""
        found = self._closures.asked(self._asked.index(filter_), sessions, individuals, times)
        for at in np.flatnonzero(found == Verdict.UNDECIDED).tolist():
            event = self._closures.terms.term(int(individuals[at]))
            found[at] = self._holds(int(sessions[at]), filter_.atoms, dict.fromkeys(filter_.bound, event), times[at])
        holds: Flags = found == Verdict.HOLDS
        return holds

    def _holds(self, session: int, atoms: Sequence[Atom], bindings: Mapping[str, Term], time: int) -> bool:
        return next(solutions(atoms, self._closures.of(session), bindings, time), None) is not None

    def write(self, mask: Ints) -> None:
        """Writes the bits of what events mean to the masks of the working set."""
        new = slice(self._written, len(self._masks))
        own, lifted = self._masks[new], mask[new] & ((1 << self._bits) - 1)
        for number, meaning in enumerate(self._meanings):
            has = own >> number & 1 if meaning.bit < 0 else own >> number & lifted >> meaning.bit & 1
            lifted |= has << self._bits + number
        mask[new] = lifted
        self._written = new.stop

    @property
    def answering(self) -> Answering:
        """Who answers the questions of the visits added last."""
        sessions = np.array([session.number for session in self._of_visit], np.int32)
        return Answering(self._closures.knowing(sessions, self._individuals), self._answered)

    def _answered(self, questions: Ints, now: int) -> Ints:
        return np.array([self._answer(now, *question) for question in questions.tolist()], np.int64)

    def _answer(self, now: int, number: int, visit: int, *individuals: int) -> int:
        asked, session = self._filters[number], self._of_visit[visit]
        bound = [position for position in individuals[: len(asked.variables)] if position != UNBOUND]
        if len(bound) == len(asked.variables):
            terms = self._individuals[bound].reshape(1, -1)
            (verdict,) = self._closures.tested(number, np.array([session.number], np.int32), terms, np.array([now]))
            if verdict == Verdict.HOLDS:
                return now  # it is asked for no earlier instant
        bindings = {
            name: self._closures.terms.term(int(self._individuals[position]))
            for (name, _), position in zip(asked.variables, individuals, strict=False)
            if position != UNBOUND
        }
        if self._holds(session.number, asked.atoms, bindings, now):
            return now
        if not self._holds(session.number, asked.atoms, bindings, NEVER):
            return NEVER
        # What holds once holds from then on, so halving finds the first of the times.
        holds = partial(self._holds, session.number, asked.atoms, bindings)
        later = session.times[bisect_left(session.times, now) :]
        return later[bisect_left(later, 1, key=lambda time: int(holds(time)))]

    def _numbered(self, events: Batch, times: Ints) -> tuple[Int32s, Ints, Said]:
        """The individuals of events; where the facts of each event end; the facts."""
        individuals, ends, parts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], list[Said]()
        for first in range(0, len(times), _AT_ONCE):
            numbering = Numbering(self._closures.terms)
            with not_collecting():
                names, columns = self._facts.said(*self._read(events, first, _AT_ONCE))
            individuals.append(numbering.of(names))
            own, said = numbering.said(columns, times[first : first + _AT_ONCE])
            ends.append(own + (ends[-1][-1] if first else 0))
            parts.append(said)
        return np.concatenate(individuals), np.concatenate(ends), concatenated(parts)

    def _read(self, events: Batch, first: int, count: int) -> tuple[dict[str, pa.Array], Shown]:
        """The columns of some events that the mapping reads, and how messages show these events."""
        columns = {name: events.values[number].slice(first, count) for name, number in self._semantics.columns}
        return columns, lambda event: events.shown(first + event)

    # Snapshots

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state as arrays; `hold` must have been called before."""
        waiting = [(key, position) for key, session in self.of_key.items() for position in session.waiting]
        latest = [(key, session.latest) for key, session in self.of_key.items()]
        keys = np.array([*self.of_key], np.int64)
        full = [key for key, session in self.of_key.items() if not self._closures.takes_more(session.number)]
        facts = self._closures.stated(np.array([session.number for session in self.of_key.values()], np.int32))
        return {
            **facts_state(np.stack([keys[facts[0]], *facts[1:]]), self._closures.terms),
            "latest": np.array(latest, np.int64).reshape(-1, 2),
            "waiting": np.array(waiting, np.int64).reshape(-1, 2),
            "masks": self._masks,
            "inconsistent": np.array(self.inconsistent),
            "dropped": np.array(self.dropped),
            "full": np.array(full, np.int64),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Continues from what `state` returned, with the events that were held.

        Raises:
            SnapshotError: the arrays and the events do not belong together.
        """
        numbering, terms = Numbering(self._closures.terms), self._closures.terms
        self._individuals, self._masks = np.zeros(0, np.int32), arrays["masks"].copy()
        if held is not None:
            self._individuals = numbering.of(self._facts.names(*self._read(held, 0, len(held))))
        self._over = np.zeros(len(self._individuals), np.bool_)
        if len(self._masks) != len(self._individuals):
            raise SnapshotError("the snapshot's facts are not those of its events")
        for key, latest in arrays["latest"].tolist():
            session = self.of_key[key] = Session(self._closures.begin())
            session.latest = latest
        (keys, times, subject, predicate, object_), texts = facts_of(arrays)
        numbers = np.array(terms.numbers(texts), np.int32)
        known, first = np.unique(keys, return_index=True)
        ends = np.searchsorted(keys, known, "right")
        sessions = [self.of_key[key] for key in known.tolist()]
        for session, begin, end in zip(sessions, first.tolist(), ends.tolist(), strict=True):
            session.take(np.unique(times[begin:end]).tolist())
        said = Said(numbers[subject], numbers[predicate], numbers[object_], times)
        self._closures.add(np.array([session.number for session in sessions], np.int32), ends, said)
        self._follow_renewed(sessions)
        for key, position in arrays["waiting"].tolist():
            self.of_key[key].waiting.append(position)
        for session in self.of_key.values():
            session.is_reported = self._closures.contradiction(session.number) is not None
        self.inconsistent = int(arrays["inconsistent"])
        self._closures.fill([self.of_key[key].number for key in arrays["full"].tolist()])
        self._closures.dropped = int(arrays["dropped"])

    # Keys and events

    def hold(self, positions: Int32s) -> None:
        """From now on there are only the events at these positions, which ascend."""
        self._individuals = self._individuals[positions]
        self._masks = self._masks[positions]
        self._over = self._over[positions]
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
                session = self.of_key[other] = self.of_key[one]
                session.keys += 1

    def drop(self, keys: Int32s) -> None:
        for key in keys.tolist():
            if key in self.of_key:
                self._leave(key)

    def renumber(self, before: Int32s) -> None:
        kept = before.tolist()
        for key in self.of_key.keys() - set(kept):
            self._leave(key)
        self.of_key = {number: self.of_key[key] for number, key in enumerate(kept) if key in self.of_key}
