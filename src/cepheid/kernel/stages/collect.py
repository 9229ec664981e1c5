"""Frees nodes that nothing reaches, and renames events when the working set changes."""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.jit import allocating
from cepheid.kernel.stages.layout import START_ROW, Cursor, PartialMatches
from cepheid.kernel.stages.park import assign


@allocating
def collect(partials: PartialMatches, cursor: Cursor) -> None:
    """Frees the nodes that no partial match and no waiting match reaches; the others stay in order. Also packs the
    parked arrays.
    """
    pack(partials, cursor)
    nodes = partials.nodes
    reached = np.zeros(cursor.nodes, np.bool_)
    rows = rows_in_use(partials, cursor)
    for number in rows:
        mark(reached, nodes, partials.rows[number].node)
    for i in range(cursor.completed):
        mark(reached, nodes, partials.completed[i].node)
    for i in range(cursor.parked_completed):
        mark(reached, nodes, partials.parked.completed[i].node)
    moved_to = np.full(cursor.nodes, -1, np.int32)
    count = 0
    for node in range(cursor.nodes):
        if reached[node]:
            moved_to[node] = count
            parent = nodes[node].parent
            append = nodes[count]
            append.event, append.stage = nodes[node].event, nodes[node].stage
            append.holders = nodes[node].holders
            append.parent = moved_to[parent] if parent >= 0 else -1
            count += 1
    cursor.nodes = count
    for number in rows:
        row = partials.rows[number]
        row.node = moved_to[row.node]
        if row.whole >= 0:  # the same node or an earlier one, so it was reached
            row.whole = moved_to[row.whole]
    for i in range(cursor.completed):
        partials.completed[i].node = moved_to[partials.completed[i].node]
    for i in range(cursor.parked_completed):
        partials.parked.completed[i].node = moved_to[partials.parked.completed[i].node]


@allocating
def mark(reached: Flags, nodes: Records, node: int) -> None:
    while node >= 0 and not reached[node]:
        reached[node] = True
        node = nodes[node].parent


@allocating
def pack(partials: PartialMatches, cursor: Cursor) -> None:
    """Packs the parked arrays: moves their entries to the front, key by key."""
    parked = partials.parked
    live, completed = parked.live[: cursor.parked_live].copy(), parked.completed[: cursor.parked_completed].copy()
    to_live = to_completed = 0
    for key in range(len(parked.keys)):
        entry = parked.keys[key]
        first = to_live
        for i in range(entry.live, entry.live_end):
            parked.live[to_live] = live[i]
            to_live += 1
        entry.live, entry.live_end = first, to_live
        first = to_completed
        for i in range(entry.completed, entry.completed_end):
            assign(parked.completed[to_completed], completed[i])
            to_completed += 1
        entry.completed, entry.completed_end = first, to_completed
    cursor.parked_live, cursor.parked_completed = to_live, to_completed


@allocating
def rows_in_use(partials: PartialMatches, cursor: Cursor) -> Ints:
    """The rows of the live partial matches, then of the parked ones, which must be packed."""
    rows = np.empty(cursor.live + cursor.parked_live, np.int64)
    number = partials.links[START_ROW].next
    for i in range(cursor.live):
        rows[i] = number
        number = partials.links[number].next
    for i in range(cursor.parked_live):
        rows[cursor.live + i] = partials.parked.live[i]
    return rows


@allocating
def rebase(tables: Tables, partials: PartialMatches, cursor: Cursor, position: Int32s) -> None:
    """Renames events: the event at i is at position[i] from now on. Only entries for events in nodes are read. No key
    may be loaded, and the parked arrays must be packed.
    """
    for node in range(cursor.nodes):
        partials.nodes[node].event = position[partials.nodes[node].event]
    for number in rows_in_use(partials, cursor):
        partials.rows[number].start = position[partials.rows[number].start]
        for slot in range(len(tables.slots)):
            if tables.slots[slot].initial < 0 and partials.slots[number, slot] >= 0:
                partials.slots[number, slot] = position[partials.slots[number, slot]]
    for i in range(cursor.parked_completed):
        match = partials.parked.completed[i]
        match.start = position[match.start]
