"""The arrays of the compiled kernel: NamedTuples, with the shape, dtype and unit of each array.

The working set is the events from earlier batches that partial matches may hold, followed by the batch. Events are
named by their position in it. The kernel loads one key at a time. Everything open for other keys is parked.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.compile.arrays import NONE, Ints, Records
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, Flags, Int32s, integers

Cursor: TypeAlias = Any
"""One record of CURSOR. NumPy's types do not describe the fields of a record."""

ALL_VISITED = -1
"""The candidates of an event that visits all live partial matches."""

GROWN = -1
"""The `holders` of a node whose match was continued by another match."""


START_ROW = 0
"""The row of the start state: it holds no events, is never live and never ends. In the ring of live rows it stands
before the first one, which is also after the last one.
"""


MATCHED, TIMED_OUT, NEGATED = 0, 1, 2
"""What becomes of a partial match. NEGATED and more: an event of the negated stage with the number `outcome` - NEGATED
has ended it without a match.
"""


ROW = np.dtype(
    [
        ("state", np.int64),  # index into Tables.states
        ("start", np.int64),  # position of the first event
        ("node", np.int64),  # the last event taken, index into the nodes; -1 none
        ("length", np.int64),  # number of events taken
        ("whole", np.int64),  # with SETTINGS.longest, the last node of the match that this one may continue; -1 none
    ]
)
NODE = np.dtype(
    [
        ("event", np.int32),  # position of the event
        ("stage", np.int32),  # the stage that took it
        ("parent", np.int32),  # the node of the event taken before it, -1 for none
        ("holders", np.int32),  # number of partial matches, live or parked, that have it as `whole`; or GROWN
    ]
)
LINK = integers(
    "next",  # the live row with the same start or the next later one
    "previous",
)
COMPLETED = np.dtype(
    [
        ("step", np.int64),  # the step that completed the match, or at which it timed out
        ("timeout", np.int64),  # its outcome; those in snapshots are MATCHED
        ("start", np.int64),  # position of the first event
        ("node", np.int64),  # the last event
        ("length", np.int64),  # number of events
    ]
)
KEY = np.dtype(
    [
        ("live", np.int64),  # its partial matches are Parked.live from here to live_end, in order of their start
        ("live_end", np.int64),
        ("completed", np.int64),  # its waiting matches are Parked.completed from here to completed_end, as a heap
        ("completed_end", np.int64),
        ("wake", np.int64),  # see CURSOR
        ("deadline", np.int64),  # the earliest deadline of its partial matches, or a time before it
        ("reached", np.int64),  # the time of its last event
    ]
)


class Parked(NamedTuple):
    """Everything open for the keys that are not loaded. Parking a key appends its entries; its former entries are then
    unused.
    """

    keys: Records
    """(any,) KEY, by number of the key."""
    due: Ints
    """(any,) KEY.deadline by number of the key, FOREVER if nothing is open for the key. It is an array of its own,
    because all deadlines are read at every call.
    """
    live: Ints
    """(any,) rows, the first Cursor.parked_live of them."""
    completed: Records
    """(any,) COMPLETED, the first Cursor.parked_completed of them."""


PLACE = integers(
    "root",  # the number of the chain or heap in which the row is; NOWHERE if it is in none
    "key",  # what the row is looked up by: see `index`
    "left",  # rows below it in a heap; START_ROW for none
    "right",  # in a chain, the row after it
    "above",  # the row above it in a heap, or before it in a chain; START_ROW if it is the root
)
NOWHERE = -1


class Index(NamedTuple):
    """Finds the live partial matches that an event can change, and those that run out of time first. It is made for the
    key that is loaded, once that pays, and forgotten when the key is parked. See `index`.
    """

    places: Records
    """(capacity,) PLACE."""
    deadlines: Records
    """(capacity,) PLACE in the heap of deadlines, used if states have windows."""
    roots: Ints
    """(any,) the first row of each chain, the top row of each heap; START_ROW for none."""
    found: Ints
    """(capacity,) the rows that the event at the cursor visits, the first Cursor.candidates of them."""


NO_END, MATCHED_START = -1, -2
"""In place of the fate of a start: none of its partial matches has ended yet; it has a match."""

START_END = np.dtype(
    [
        ("moment", np.int64),  # Starts.moment when the partial match ended
        ("fate", np.int32),  # a FateCode, NO_END or MATCHED_START
        ("reached", np.int32),  # the last of the pattern's stages that had taken an event
        ("by", np.int32),  # the number of the condition of the negated stage, or of the `until`; -1 for none
    ]
)


class FateCode(IntEnum):
    """How a partial match has ended without a match. Of several ends at one moment the first in this list counts."""

    FORBIDDEN = 0
    UNTIL = 1
    GAP = 2
    OUT_OF_TIME = 3
    BROKEN = 4
    SKIPPED = 5
    OVER_LIMIT = 6
    STILL_OPEN = 7


class Starts(NamedTuple):
    """What becomes of the events that a partial match has taken first, by their position in the working set."""

    ends: Records
    """(events,) START_END: the end of the partial match that came furthest; of equally far ones, of the last to end."""
    taken: Flags
    """(events, stages) whether the stage has taken an event of a partial match with this start."""
    moment: Ints
    """(1,) the number of events and deadlines that the kernel has processed."""
    untils: Ints
    """(states, loops) `Untils.masks`."""


class PartialMatches(NamedTuple):
    """Partial matches and the events they took. Events are stored as trees, so branches share their past."""

    rows: Records
    """(capacity,) ROW."""
    slots: Ints
    """(capacity, slots) of the row: see compile.script."""
    links: Records
    """(capacity,) LINK: the live rows in order of their start, as a ring that begins and ends at START_ROW. So a row in
    the middle can be taken out, or another one put before it.
    """
    free: Ints
    """(capacity,) rows not in use, the first Cursor.free of them."""
    nodes: Records
    """(any,) NODE; a parent has a smaller index than its child."""
    completed: Records
    """(any,) COMPLETED: a heap of Cursor.completed matches that wait to be emitted, the next one on top."""
    parked: Parked
    lookup: Index
    negated: Ints
    """(stages,) the number of partial matches that an event of a negated stage has ended without a match."""


EARLIER = integers(
    "first",  # the key's events are Earlier.events from here to end, in order; none if they are equal
    "end",
)


class Earlier(NamedTuple):
    """With `begin_without`: the events of each key that may keep a later event from starting a partial match. A key
    that changes gets new entries at the end; its former entries are then unused.
    """

    keys: Records
    """(any,) EARLIER, by number of the key."""
    due: Ints
    """(any,) microseconds: when the first of the key's events is too long ago; FOREVER if there is none."""
    events: Ints
    """(any,) positions of events."""


class Output(NamedTuple):
    """Emitted matches as flat arrays, and room after them."""

    end: Ints
    """(any,) the events of a match are those from the end of the previous match (0 for the first) to here."""
    detected_at: Ints
    """(any,) microseconds since 1970 UTC, NO_TIME for none."""
    outcome: Int32s
    """(any,) MATCHED, TIMED_OUT, or NEGATED and more."""
    event: Int32s
    """(any,) position of an event of a match."""
    stage: Int32s
    """(any,) the stage that took it."""


CURSOR = integers(
    "event",  # next event of the working set to process
    "visit",  # the visit under way, or the next one
    "loaded",  # 1: it is under way
    "parked",  # partial matches that are parked, of all keys
    "parked_live",  # used places of Parked.live
    "parked_completed",  # used places of Parked.completed
    "reached",  # the time of the key's last event
    "now",  # time of the step that is being released
    "step",  # steps done
    "live",  # rows in the ring of PartialMatches.links
    "wake",  # all truth bits that can change a live partial match; it may have more bits
    "earliest",  # the earliest deadline of the live ones, or a time before it; used if states have windows
    "buckets",  # chains of the index for values: a power of two; 0: there is no index
    "candidates",  # rows in Index.found; ALL_VISITED
    "walks",  # events of this visit that visited all of at least SETTINGS.index_least partial matches
    "visited",  # how often an event visited a live partial match
    "free",
    "needed",  # rows, with a node each, that the next step may make
    "needed_matches",  # matches that the next step may make
    "nodes",
    "completed",
    "found",  # matches that the last step completed
    "dropped",  # partial matches dropped because of a limit, see SETTINGS
    "dropped_matches",
    "matches",  # in Output
    "match_events",  # in Output
    "fanout",  # the most edges that a state has
    "states",  # the number of states
    "windows",  # see SETTINGS
    "failure",  # what made a condition fail, see kernel.scripts.interpreter
    "failed_script",
)


def new_cursor(tables: Tables, partials: PartialMatches) -> Cursor:
    """A cursor before the first event."""
    cursor = np.zeros(1, CURSOR).view(np.recarray)[0]
    cursor.fanout = fanout(tables)
    cursor.states, cursor.windows = len(tables.states), tables.settings["windows"][0]
    cursor.free = len(partials.free) - 1
    cursor.earliest = FOREVER
    return cursor


def fanout(tables: Tables) -> int:
    """The most edges that a state has, but at least 1. A partial match has at most so many successors at an event."""
    return max(1, int((tables.states["edges_end"] - tables.states["edges"]).max()))


def new_partial_matches(tables: Tables, capacity: int) -> PartialMatches:
    """Room for `capacity` - 1 partial matches, and at least for the successors of the start state. Row START_ROW is
    filled in.
    """
    capacity = max(capacity, fanout(tables) + 1)
    rows = np.zeros(capacity, ROW)
    rows[START_ROW] = (tables.settings["start"][0], 0, -1, 0, -1)
    return PartialMatches(
        rows=rows,
        slots=np.tile(tables.slots["initial"], (capacity, 1)),
        links=np.zeros(capacity, LINK),
        free=np.arange(capacity, 0, -1) - 1,
        nodes=np.zeros(4 * capacity, NODE),
        completed=np.zeros(2 * capacity, COMPLETED),
        parked=Parked(
            np.zeros(1, KEY), np.full(1, FOREVER), np.zeros(capacity, np.int64), np.zeros(capacity, COMPLETED)
        ),
        lookup=new_index(tables, capacity),
        negated=np.zeros(len(tables.stage_slots) - 1, np.int64),
    )


def new_index(tables: Tables, capacity: int) -> Index:
    """Room to index the rows, if any state has a lookup."""
    if tables.settings["index_least"][0] == NONE:
        capacity = 1
    # Heaps and chains of the states, the heap of deadlines, and up to two chains for values a row.
    roots = 2 * len(tables.states) + 1 + 2 * capacity
    return Index(
        np.zeros(capacity, PLACE), np.zeros(capacity, PLACE), np.zeros(roots, np.int64), np.zeros(capacity, np.int64)
    )


def new_output(matches: int, events: int) -> Output:
    """Room for `matches` emitted matches with `events` events together."""
    times = np.empty(matches, np.int64), np.empty(matches, np.int64)
    return Output(*times, np.empty(matches, np.int32), np.empty(events, np.int32), np.empty(events, np.int32))
