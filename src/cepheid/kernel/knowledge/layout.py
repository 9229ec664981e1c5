"""The arrays of what sessions know: facts, how they are found, and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.compile.arrays import NONE, Ints, Records
from cepheid.compile.knowledge.tables import LOOKUPS, MOST_PATTERNS, MOST_VARIABLES, RuleTables
from cepheid.kernel.arrays import FOREVER, Int32s, grown

NEVER = FOREVER
"""The time of what does not hold."""
IN_BASE = -2
"""A fact of the shared knowledge is `IN_BASE - number`; NONE is no fact."""

ClosureCursor: TypeAlias = Any
"""One record of CLOSURE_CURSOR."""

FACT = np.dtype(
    [
        ("session", np.int32),
        ("subject", np.int32),
        ("predicate", np.int32),
        ("object", np.int32),
        ("time", np.int64),  # the earliest time at which it follows, see SESSION.left
        ("stated", np.int64),  # the earliest time at which it is stated, NEVER if it only follows
        ("previous", np.int32),  # the fact of the session before it, NONE if it is the first
        ("kind", np.int32),  # number of its KIND
    ]
)
SESSION = np.dtype(
    [
        ("last", np.int64),  # its last fact, NONE if it has none
        ("count", np.int64),  # number of its facts
        ("slots", np.int64),  # the first of its slots
        ("room", np.int64),  # how many slots it has, a power of two: more than twice as many as facts
        ("bits", np.int64),  # which kinds of facts it has: the bits of these
        ("left", np.int64),  # whether its events say something of classes and properties: facts are only stored
        ("full", np.int64),  # whether an event passed a limit: nothing more is taken
        ("ended", np.int64),  # whether its facts are no longer needed
        ("contradicted", np.int64),  # the time of the first contradiction, NEVER if there is none
        ("contradiction", np.int64),  # the number of the rule
        ("brought", np.int64),  # the visit of its call that brought a contradiction first
    ]
)
CLOSURE_CURSOR = np.dtype(
    [
        ("visit", np.int64),  # the next visit
        ("stated", np.int64),  # the next fact that is stated
        ("waiting", np.int64),  # number of facts on the agenda
        ("shortage", np.int64),  # a ClosureStatus
        ("predicate", np.int64),  # what is not prepared
        ("object", np.int64),
        ("facts", np.int64),  # number of facts in the store
        ("storing", np.int64),  # whether what sessions say that are `left` is stored; otherwise they are passed over
        ("dropped", np.int64),  # number of facts that were not taken, as their sessions are full
        ("most_facts", np.int64),  # the most facts of a session
        ("most_names", np.int64),  # the most names of an individual
        ("slots", np.int64),  # number of slots that belong to sessions, or did so
    ]
)


class ClosureStatus(IntEnum):
    DONE = 0
    MORE_FACTS = 1
    MORE_AGENDA = 2
    UNPREPARED = 3
    """Facts of a kind came whose rules are not prepared."""
    MORE_SLOTS = 4
    TOO_MANY_FACTS = 5
    TOO_MANY_NAMES = 6


class Verdict(IntEnum):
    """What a program finds."""

    DOES_NOT_HOLD = 0
    HOLDS = 1
    UNDECIDED = 2
    """The filter has other atoms, or the session is not compiled."""


class Store(NamedTuple):
    """The facts of k sessions, n facts. Those of the shared knowledge are a store with one session."""

    facts: Records
    """(n,) FACT."""
    chains: Int32s
    """(n, 6) for each lookup the next fact with the same parts, NONE if it is the last."""
    wanted: Ints
    """For each kind of facts the lookups by which they may be asked for, as bits. Other chains do not have them."""
    slots: Int32s
    """(6, m) for each lookup the hash tables of sessions: the first fact with the parts. The first slot stays empty,
    for sessions that have none.
    """
    sessions: Records
    """(k,) SESSION."""
    linked: Int32s
    """(k, 6) the last fact that is in the chains of a lookup: they are made when they are asked for."""


class Agenda(NamedTuple):
    """Facts whose consequences are still to be found: a heap by time."""

    time: Ints
    fact: Ints
    """Twice its number; and one more if what follows from it alone is still to be found, too."""


class Matching(NamedTuple):
    """Scratch: how the patterns of a rule are matched, and by what the first contradiction of a session came."""

    values: Ints
    """The terms of the variables."""
    at: Ints
    """For each pattern the fact that matches it."""
    times: Ints
    """For each pattern the latest time of the facts up to its own. Only filters need it."""
    against: Ints
    """(k, 1 + patterns) for each session the facts that contradict each other, NONE after the last."""


class Knowing(NamedTuple):
    """What is known while filters are asked."""

    programs: Records
    """(f,) PROGRAM of each filter."""
    rules: RuleTables
    """With the patterns of the programs."""
    base: Store
    store: Store
    matching: Matching
    sessions: Int32s
    """(v,) the session of each visit."""
    individuals: Int32s
    """By position in the working set: the number of the event's individual."""


def new_store(sessions: int, facts: int, slots: int, wanted: Ints) -> Store:
    store = Store(
        np.empty(facts, FACT),
        np.empty((facts, LOOKUPS), np.int32),
        wanted,
        np.empty((LOOKUPS, slots), np.int32),
        new_sessions(sessions),
        np.full((sessions, LOOKUPS), NONE, np.int32),
    )
    store.slots[:, 0] = NONE
    return store


def new_sessions(count: int) -> Records:
    sessions = np.zeros(count, SESSION)
    sessions["last"], sessions["contradicted"], sessions["room"] = NONE, NEVER, 1
    return sessions


def with_facts(store: Store, count: int) -> Store:
    """The store with room for more facts."""
    return store._replace(facts=grown(store.facts, count), chains=grown(store.chains, count))


def with_slots(store: Store, count: int) -> Store:
    """The store with more slots."""
    larger = np.empty((LOOKUPS, count), np.int32)
    larger[:, : store.slots.shape[1]] = store.slots
    return store._replace(slots=larger)


def with_sessions(store: Store, count: int) -> Store:
    sessions = new_sessions(count)
    sessions[: len(store.sessions)] = store.sessions
    return store._replace(sessions=sessions, linked=grown(store.linked, count, NONE))


def new_agenda(capacity: int) -> Agenda:
    return Agenda(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64))


def new_matching(sessions: int) -> Matching:
    against = np.full((sessions, 1 + MOST_PATTERNS), NONE, np.int64)
    at, times = np.zeros(MOST_PATTERNS, np.int64), np.zeros(MOST_PATTERNS, np.int64)
    return Matching(np.zeros(MOST_VARIABLES, np.int64), at, times, against)


class Said(NamedTuple):
    """What events say in a call, by session; f facts."""

    subject: Int32s
    predicate: Int32s
    object: Int32s
    time: Ints
    """(f,) microseconds."""


def concatenated(parts: Sequence[Said]) -> Said:
    """All facts, one part after the other."""
    if not parts:
        none = np.zeros(0, np.int32)
        return Said(none, none.copy(), none.copy(), np.zeros(0, np.int64))
    return Said(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def new_closure_cursor() -> ClosureCursor:
    cursor: ClosureCursor = np.zeros(1, CLOSURE_CURSOR).view(np.recarray)[0]
    cursor.slots = 1
    return cursor
