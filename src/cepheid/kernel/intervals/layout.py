"""The arrays of the interval kernel: events, stored events, open matches, and emitted rows."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.kernel.arrays import Flags, Int32s, Stack, integers
from cepheid.kernel.intervals.lists import LIST, PLACES_PER_ENTRY
from cepheid.plan.intervals.constants import FREE

JoinCursor: TypeAlias = Any
"""One record of JOIN_CURSOR."""

BEGINNING = -FREE
"""The clock before the first event."""
OPEN_END = FREE // 4
"""The end of an event that is still open: after all times."""
LATE, INSERTION, RETRACTION, COMPLETION = 0, 1, -1, 2


class IntervalEvents(NamedTuple):
    """The working set; n events, c lifted columns."""

    start: Ints
    """(n,) microseconds since 1970 UTC."""
    end: Ints
    key: Ints
    """(n,) number of the event's key."""
    mask: Ints
    twin: Flags
    """(n,) set by the kernel: whether another stored event of the same variable and key has the same start and end."""
    values: Ints
    """(c, n) as in `kernel.arrays.Events`."""
    missing: Flags


class Stores(NamedTuple):
    """The accepted events by key and variable; t variables."""

    by_start: Int32s
    """(capacity,) positions; within a list they are ordered by start. The first JoinCursor.stored places are used."""
    by_end: Int32s
    """(capacity,) the same lists, ordered by end."""
    lists: Records
    """(keys, t) LIST."""
    by_value: Int32s
    """(capacity,) positions; within a list they have one value and are ordered by start. The first JoinCursor.valued
    places are used.
    """
    value_lists: Records
    """(capacity,) LIST; JoinCursor.value_lists of them."""
    values: Records
    """(capacity,) VALUE: what each of these lists is of."""
    recent: Ints
    """(settings.buffer,) the greatest lateness times as a heap with the least on top; JoinCursor.recent of them."""
    buckets: Int32s
    """(a power of two,) a hash table: the number of a value's list plus 1, or 0. At most half of it is used."""


VALUE = np.dtype(
    [
        ("index", np.int64),  # of IntervalTables.indexes
        ("key", np.int64),
        ("word", np.int64),  # the value
    ]
)


def new_stores(variables: int, capacity: int, buffer: int) -> Stores:
    """Arrays with room for `capacity` places, for one key, and for the lateness times of `buffer` events."""
    return Stores(
        by_start=np.zeros(capacity, np.int32),
        by_end=np.zeros(capacity, np.int32),
        lists=np.zeros((1, variables), LIST),
        by_value=np.zeros(0, np.int32),
        value_lists=np.zeros(0, LIST),
        values=np.zeros(0, VALUE),
        recent=np.zeros(max(buffer, 0), np.int64),
        buckets=np.zeros(1, np.int32),
    )


OPEN = np.dtype(
    [
        ("start", np.int64),  # of the match
        ("end", np.int64),
        ("until", np.int64),  # the greatest lateness time of an event that could forbid it
        ("alive", np.int64),  # 0: it is forbidden, or final and emitted
        ("out", np.int64),  # 1: it is emitted
    ]
)


class OpenMatches(NamedTuple):
    """The open matches, and matches that finished since the last compaction; JoinCursor.matches of them."""

    rows: Records
    """(capacity,) OPEN."""
    events: Int32s
    """(capacity, n) the position of each variable's event."""
    heap: Ints
    """(capacity,) rows as a heap, with the one that becomes final first on top; JoinCursor.heap of them."""
    scopes: Ints
    """(capacity, g, 4) for each of g negations, the least and the greatest start, and the least and the greatest end,
    of an event that may forbid the match. If the least start is above the greatest, no event can.
    """
    by_scope: Int32s
    """(PLACES_PER_ENTRY * capacity * g,) rows; within a list they are ordered by the greatest start in their scope.
    Some of them may be finished. The first JoinCursor.scoped places are used.
    """
    lists: Records
    """(keys, g) LIST."""


def new_open_matches(capacity: int, positives: int, negations: int, keys: int) -> OpenMatches:
    """Arrays with room for `capacity` matches of a pattern with `positives` events and `negations` negations, and for
    `keys` keys.
    """
    return OpenMatches(
        rows=np.zeros(capacity, OPEN),
        events=np.zeros((capacity, positives), np.int32),
        heap=np.zeros(capacity, np.int64),
        scopes=np.zeros((capacity, negations, 4), np.int64),
        by_scope=np.zeros(PLACES_PER_ENTRY * capacity * negations, np.int32),
        lists=np.zeros((keys, negations), LIST),
    )


EMITTED = np.dtype(
    [
        ("event", np.int64),  # position of the arrival
        ("sign", np.int64),  # LATE, INSERTION or RETRACTION
        ("end", np.int64),  # of the match; without meaning for a late event
        ("start", np.int64),
        ("clock", np.int64),  # the clock at that time
    ]
)
"""The fields are in the order in which they sort rows, and all rows of an arrival have one clock."""


class Emitted(NamedTuple):
    """Rows that are emitted and not returned yet; JoinCursor.emitted of them."""

    rows: Records
    """(capacity,) EMITTED."""
    match: Int32s
    """(capacity, n) the position of each variable's event."""


def new_emitted(capacity: int, positives: int) -> Emitted:
    return Emitted(np.zeros(capacity, EMITTED), np.zeros((capacity, positives), np.int32))


class EmittedIntervals(NamedTuple):
    """What is emitted, in order: for each arrival first the retractions, then the insertions, each by (end, start)."""

    event: Ints
    """(m,) the position of the arrival."""
    sign: Ints
    """(m,) LATE, INSERTION, RETRACTION or COMPLETION."""
    clock: Ints
    """(m,) the clock at that time."""
    start: Ints
    """(m,) the start of the match; without meaning for a late event."""
    end: Ints
    match: Int32s
    """(m, n) the position of each variable's event."""


class Scratch(NamedTuple):
    """Scratch arrays for one join."""

    slots: Ints
    """(1, t) the position of each variable's event, where scripts read it."""
    stack: Stack
    levels: Ints
    """(n, 7) for each level of the join: the next candidate, the end of the candidates, 1 if they are in the list by
    end or 2 if they are in a list by value, the least and greatest start, and the least and greatest end.
    """


JOIN_CURSOR = integers(
    "event",  # the next event
    "clock",  # the latest end of an accepted event
    "horizon",  # with a buffer: events before this lateness time are late
    "recent",  # in Stores.recent
    "realtime",  # 1: matches are emitted at once
    "k_slack",  # 1: matches wait until the clock is after their end plus the delay; 0: until they are certain
    "matches",  # in OpenMatches
    "heap",
    "stored",  # used places of Stores.by_start and by_end
    "valued",  # used places of Stores.by_value
    "value_lists",  # in Stores
    "scoped",  # used places of OpenMatches.by_scope
    "emitted",  # emitted rows that are not returned yet
    "late",  # events that were late so far
    "dropped",  # matches that were over the limit so far
    "failure",  # what made a condition fail, see kernel.scripts.interpreter
    "failed_script",
)


def new_join_cursor() -> JoinCursor:
    """A cursor before the first event."""
    cursor = np.zeros(1, JOIN_CURSOR).view(np.recarray)[0]
    cursor.clock = cursor.horizon = BEGINNING
    return cursor
