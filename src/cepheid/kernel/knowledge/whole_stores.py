"""Whole stores: that of shared knowledge, and one without the facts of sessions that ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.knowledge.layout import NEVER, ClosureCursor, Store, new_closure_cursor, new_sessions, new_store
from cepheid.kernel.knowledge.store import keep_facts, place_all, room_for
from cepheid.knowledge.closure.closure import ALWAYS, Closure

LEAST_ROOM = 1 << 12


def store_of(closure: Closure) -> Store:
    """The facts of shared knowledge, with all their chains."""
    facts = np.array([*closure.facts], np.int32).reshape(-1, 3)
    store = new_store(1, len(facts), 1 + room_for(len(facts)), np.full(1, -1, np.int64))
    store.facts["subject"], store.facts["predicate"], store.facts["object"] = facts.T
    store.facts["time"], store.facts["stated"] = ALWAYS, NEVER
    store.facts["session"] = store.facts["kind"] = 0
    store.facts["previous"] = np.arange(-1, len(facts) - 1)
    store.sessions["last"], store.sessions["count"] = len(facts) - 1, len(facts)
    place_all(store, new_closure_cursor(), len(facts))
    return store


def tidied(
    store: Store, cursor: ClosureCursor, ended: Sequence[int], terms: Int32s, living: int
) -> tuple[Store, Int32s]:
    """The store without the facts of sessions that ended, and the new number of each fact. `cursor` then fits it.

    Args:
        store: The facts of all sessions.
        cursor: How far the store is filled.
        ended: The sessions that ended.
        terms: The new numbers of terms; NONE: it has none.
        living: How many facts the other sessions have.
    """
    count, sessions = int(cursor.facts), store.sessions.copy()
    slots = sum(map(room_for, sessions["count"][(sessions["count"] > 0) & (sessions["ended"] == 0)].tolist()))
    room = max(LEAST_ROOM, count, 2 * living)
    kept = new_store(0, room, max(int(cursor.slots), 2 * slots) + 1, store.wanted)._replace(
        sessions=sessions, linked=np.full_like(store.linked, NONE)
    )
    sessions["last"], sessions["count"], sessions["slots"], sessions["room"] = NONE, 0, 0, 1
    cursor.slots = 1
    moved = np.zeros(len(store.facts), np.int32)
    keep_facts(store, count, kept, cursor, terms, moved)
    for session in ended:
        kept.sessions[session : session + 1] = new_sessions(1)
    return kept, moved
