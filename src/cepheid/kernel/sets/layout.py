"""The arrays of the kernel of sets: records and NamedTuples, with the shape, dtype and unit of each array.

A set of partial matches is the number of a node; NO_SET is the empty set. A node with an event represents the partial
matches of the set `before`, each with the event added, and the partial matches of the set `beside`. If `before` is
NO_SET, the event is the first of a partial match. A node without an event represents the partial matches of `before`
and `beside`. Nodes never change, so sets share them: adding an event to a whole set makes one node. This is the tECS of
Bucchi, Grez, Quintana, Riveros and Vansummeren, CORE: a Complex Event Recognition Engine, PVLDB 2022, with output and
union node in one if possible.

The latest start in `before` is never earlier than that in `beside`, and `start` is this latest start. If it is out of
the window, everything in the node is, and a walk over the nodes can turn back.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, NO_TIME, Int32s, integers
from cepheid.kernel.stages.layout import Cursor

Numbers: TypeAlias = npt.NDArray[np.uint32]
"""Numbers that are never negative. For signed indices Numba checks whether they count from the end."""

NO_SET = -1
NO_EVENT = -1
NOTHING_TAKEN = -1

MANY_OPEN = 1 << 50
"""Counts stop here, so that sums over thousands of keys do not overflow."""

SET_NODE = np.dtype(
    [
        ("event", np.int32),  # position of the event, or NO_EVENT
        ("stage", np.int32),  # the stage that took it
        ("before", np.int32),  # a set, or NO_SET; its nodes have smaller numbers
        ("beside", np.int32),  # a set, or NO_SET; its nodes have smaller numbers
        ("start", np.int64),  # microseconds: the latest start of its partial matches
    ]
)
MOVING = np.dtype(
    [
        ("state", np.int32),
        ("set", np.int32),  # NO_SET in the start state
        ("goes_on", np.int32),  # 0: the event may complete matches, but no partial match continues
    ]
)
ROOT = np.dtype([("set", np.int32), ("stage", np.int32)])  # the stage that takes the completing event, or IGNORED
VERTEX = np.dtype(
    [
        ("taken", np.int64),  # event and stage in one, see `taken_of`
        ("lengths", np.int64),  # bit i: a match may have i more vertices; bit 63: 63 or more
        ("matches", np.int64),  # number of matches that continue from here, at most MANY_OPEN
        ("longest", np.int32),  # the most vertices that follow in a match
        ("node", np.int32),  # the node with its event and stage
        ("event", np.int32),
        ("starts", np.int32),  # 1: its event is the first of a match
        ("before", np.int32),  # where its part of Graph.before begins; it ends where that of the next vertex begins
        ("after", np.int32),  # where its part of Graph.after begins
        ("after_end", np.int32),
    ]
)
STEP = np.dtype([("after", np.int32), ("after_end", np.int32)])  # the part of Graph.after that is still to be tried


class Sets(NamedTuple):
    """The open partial matches of all keys."""

    heads: Int32s
    """(keys, states) the set of each state."""
    now: Ints
    """(keys,) microseconds: the time that the key has reached, NO_TIME before its first event."""
    due: Ints
    """(keys,) microseconds: when all open partial matches of the key are out of time. FOREVER if that is never, or if
    none is open.
    """
    nodes: Records
    """(any,) SET_NODE, the first SetCursor.nodes of them in use. The nodes of a key are in the order of their
    events.
    """
    paths: Ints
    """(any,) the number of partial matches that the node represents, at most MANY_OPEN. It counts those that were in
    time when the node was made or counted, so there may be fewer now. Empty unless SetCursor.limited.
    """
    vertex: Numbers
    """(any,) scratch: the number of a node's vertex. It is valid only if that vertex exists and names the node."""


class Graph(NamedTuple):
    """The matches that one event completes. Each is a path from a vertex that starts a match to a vertex that may end
    one, followed by SetCursor.tail.
    """

    moving: Records
    """(states,) MOVING: the sets that the event wakes."""
    roots: Records
    """(edges,) ROOT: the sets that are complete, except for SetCursor.tail."""
    vertices: Records
    """(v + 1,) VERTEX"""
    order: Numbers
    """(2, v) vertices by event, on side SetCursor.side; the other side is for sorting."""
    steps: Records
    """(v,) STEP, for each vertex of the current path."""
    path: Ints
    """(v + 2,) what the vertices of the current path take, then NOTHING_TAKEN. If the path has several vertices, the
    last one is left out, see `listing.write`.
    """
    before: Numbers
    """(e,) vertices that come directly before a vertex."""
    after: Numbers
    """(e,) vertices that come directly after a vertex, by event."""


class SetOutput(NamedTuple):
    """Emitted matches as flat arrays: those of `kernel.stages.emitted.Emitted`, with room after them."""

    end: Ints
    detected_at: Ints
    taken: Ints
    """Event and stage in one, see `taken_of`."""


SET_CURSOR = integers(
    "visit",  # the current visit
    "begun",  # 1: it has begun
    "event",  # next event of the working set to process
    "first",  # the event at which the visit began
    "task",  # what is to be done next: see kernel.sets.step.Task
    "now",  # time of the event that completes matches
    "wake",  # all truth bits that can change a set of the current key
    "limited",  # 1: partial matches have a limit, so they are counted
    "open",  # number of the key's partial matches after the last event of the visit, by Sets.paths
    "patience",  # events of the visit that must pass before the next count, see `recount`
    "nodes",
    "base",  # number of nodes when the visit began: later ones belong to its key alone
    "roots",  # in Graph
    "kept_nodes",  # number of nodes that stay once the matches of the event are listed
    "vertices",  # in Graph
    "found",  # number of matches that the event completes, at most MANY_OPEN
    "side",
    "tail",  # what all matches being listed take last, or NOTHING_TAKEN
    "ambiguous",  # 1: two matches may have an event under different stages, so they must be sorted
    "group",  # part of Graph.order: the vertices of the event whose matches are being listed
    "group_end",
    "lengths",  # the lengths of the group's starts together, as in VERTEX
    "longest",
    "start",  # the place of the current start in Graph.order
    "length",  # of the paths being listed
    "depth",  # of the current path
    "group_matches",  # in SetOutput, before the first match of the start and length
    "group_events",
    "matches",  # in SetOutput
    "match_events",
)


def new_set_cursor(tables: Tables) -> Cursor:
    """A cursor before the first event."""
    cursor = np.zeros(1, SET_CURSOR).view(np.recarray)[0]
    cursor.limited = is_limited(tables)
    return cursor


def is_limited(tables: Tables) -> bool:
    """Whether the number of partial matches in sets has a limit."""
    return bool(tables.settings[0]["most_in_sets"] < FOREVER)


def new_sets(tables: Tables, capacity: int) -> Sets:
    """Room for `capacity` nodes, and no keys."""
    return Sets(
        heads=np.full((0, len(tables.states)), NO_SET, np.int32),
        now=np.full(0, NO_TIME, np.int64),
        due=np.full(0, FOREVER, np.int64),
        nodes=np.zeros(capacity, SET_NODE),
        paths=np.zeros(capacity if is_limited(tables) else 0, np.int64),
        vertex=np.zeros(capacity, np.uint32),
    )


def new_graph(tables: Tables, vertices: int, edges: int) -> Graph:
    """Room for `vertices` vertices, and for `edges` edges between them and at their ends."""
    return Graph(
        moving=np.zeros(len(tables.states), MOVING),
        roots=np.zeros(len(tables.edges), ROOT),
        vertices=np.zeros(vertices + 1, VERTEX),
        order=np.zeros((2, vertices), np.uint32),
        steps=np.zeros(vertices, STEP),
        path=np.zeros(vertices + 2, np.int64),
        before=np.zeros(edges, np.uint32),
        after=np.zeros(edges, np.uint32),
    )


def new_set_output(matches: int, events: int) -> SetOutput:
    """Room for `matches` emitted matches with `events` events together."""
    return SetOutput(np.empty(matches, np.int64), np.empty(matches, np.int64), np.empty(events, np.int64))
