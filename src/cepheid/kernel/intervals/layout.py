"""What the interval kernel works on: events, their stores, the matches that are open, and what is told."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.compile.stages.tables import Ints, Records
from cepheid.kernel.intervals.lists import LIST, PLACES_PER_ENTRY
from cepheid.kernel.stages.layout import Flags, Int32s
from cepheid.plan.intervals.bounds import FREE

JoinCursor: TypeAlias = Any
"""One record of JOIN_CURSOR."""

BEGINNING = -FREE
"""The clock before the first event."""
LATE, INSERTION, RETRACTION = 0, 1, -1


class IntervalEvents(NamedTuple):
    """The working set; n events, c lifted columns."""

    start: Ints
    """(n,) microseconds since 1970 UTC."""
    end: Ints
    key: Ints
    """(n,) number of the event's key."""
    mask: Ints
    twin: Flags
    """(n,) set by the kernel: whether another stored event of the same variable and key has both of its times."""
    values: Ints
    """(c, n) as in kernel.layout.Events."""
    missing: Flags


class Stores(NamedTuple):
    """The accepted events of each key and variable, t variables."""

    by_start: Int32s
    """(capacity,) positions, those of a list in order of their starts; JoinCursor.stored places are used."""
    by_end: Int32s
    """(capacity,) the same lists in order of ends."""
    lists: Records
    """(keys, t) LIST."""


OPEN = np.dtype(
    [
        ("start", np.int64),  # of the match
        ("end", np.int64),
        ("until", np.int64),  # the greatest key of an event that could forbid it
        ("alive", np.int64),  # 0: it is forbidden, or final and told
        ("out", np.int64),  # 1: it is told
    ]
)


class OpenMatches(NamedTuple):
    """Matches that are not final, and those that are over since the last compaction; JoinCursor.matches of them."""

    rows: Records
    """(capacity,) OPEN."""
    events: Int32s
    """(capacity, n) the position of each variable's event."""
    heap: Ints
    """(capacity,) rows as a heap, the one that is final first on top; JoinCursor.heap of them."""
    scopes: Ints
    """(capacity, g, 4) for each of g negations the least and the greatest start, and the least and the greatest end, of
    an event that may forbid the match; a least start above the greatest: none can.
    """
    by_scope: Int32s
    """(PLACES_PER_ENTRY * capacity * g,) rows, those of a list by the greatest start in their scope, perhaps
    also some that are over. JoinCursor.scoped places are used.
    """
    lists: Records
    """(keys, g) LIST."""


def new_open_matches(capacity: int, positives: int, negations: int, keys: int) -> OpenMatches:
    """Room for so many, of a pattern with so many events and negations, and of so many keys."""
    return OpenMatches(
        rows=np.zeros(capacity, OPEN),
        events=np.zeros((capacity, positives), np.int32),
        heap=np.zeros(capacity, np.int64),
        scopes=np.zeros((capacity, negations, 4), np.int64),
        by_scope=np.zeros(PLACES_PER_ENTRY * capacity * negations, np.int32),
        lists=np.zeros((keys, negations), LIST),
    )


TOLD = np.dtype(
    [
        ("event", np.int64),  # position of the arrival
        ("sign", np.int64),  # LATE, INSERTION or RETRACTION
        ("row", np.int64),  # of OpenMatches; of what is late none
        ("clock", np.int64),  # then
    ]
)


class ToldIntervals(NamedTuple):
    """What is told, in order: of each arrival first what is taken back, then what is new, each by (end, start)."""

    event: Ints
    """(m,) the position of the arrival."""
    sign: Ints
    """(m,) LATE, INSERTION or RETRACTION."""
    clock: Ints
    """(m,) then."""
    start: Ints
    """(m,) of the match; of a late event nothing is said."""
    end: Ints
    match: Int32s
    """(m, n) the position of each variable's event."""


class Scratch(NamedTuple):
    """Room for one join."""

    slots: Ints
    """(1, t) the position of the event of each variable, where scripts look for it."""
    stack: Ints
    null: Flags
    levels: Ints
    """(n, 7) of each level of the join: next candidate, end of the candidates, whether they are those by end, and the
    bounds of start and end.
    """


JOIN_CURSOR = np.dtype(
    [
        (name, np.int64)
        for name in (
            "event",  # the next event
            "clock",  # the latest end of an accepted event
            "realtime",  # 1: matches are told at once
            "k_slack",  # 1: and otherwise only when time is the delay past their end, not as soon as they are certain
            "matches",  # in OpenMatches
            "heap",
            "stored",  # places of Stores that are used
            "scoped",  # places of OpenMatches.by_scope that are used
            "told",
            "late",  # events that were late so far
            "dropped",  # matches that were over the limit so far
            "failure",  # what made a condition fail, see interpret
            "failed_script",
        )
    ]
)


def new_join_cursor() -> JoinCursor:
    """A cursor before the first event."""
    cursor = np.zeros(1, JOIN_CURSOR).view(np.recarray)[0]
    cursor.clock = BEGINNING
    return cursor
