"""Frees the nodes that nothing reaches any more, and renames events when the working set changes."""

from __future__ import annotations

import numpy as np

from cepheid.compile.tables import Records, Tables
from cepheid.kernel.jit import allocating
from cepheid.kernel.layout import Cursor, Flags, Int32s, PartialMatches


@allocating
def collect(partials: PartialMatches, cursor: Cursor) -> None:
    """Keeps only the nodes that a live partial match or a waiting match reaches; their order stays."""
    nodes = partials.nodes
    reached = np.zeros(cursor.nodes, np.bool_)
    live = partials.live[cursor.side]
    first, end = cursor.first, cursor.first + cursor.live
    for i in range(first, end):
        mark(reached, nodes, partials.rows[live[i]].node)
    for i in range(cursor.completed):
        mark(reached, nodes, partials.completed[i].node)
    moved_to = np.full(cursor.nodes, -1, np.int32)
    count = 0
    for node in range(cursor.nodes):
        if reached[node]:
            moved_to[node] = count
            parent = nodes[node].parent
            append = nodes[count]
            append.event, append.stage = nodes[node].event, nodes[node].stage
            append.parent = moved_to[parent] if parent >= 0 else -1
            count += 1
    cursor.nodes = count
    for i in range(first, end):
        partials.rows[live[i]].node = moved_to[partials.rows[live[i]].node]
    for i in range(cursor.completed):
        partials.completed[i].node = moved_to[partials.completed[i].node]


@allocating
def mark(reached: Flags, nodes: Records, node: int) -> None:
    while node >= 0 and not reached[node]:
        reached[node] = True
        node = nodes[node].parent


@allocating
def rebase(tables: Tables, partials: PartialMatches, cursor: Cursor, position: Int32s) -> None:
    """Renames events: the one at `i` is at position[i] from now on. Only events that nodes name are asked for."""
    for node in range(cursor.nodes):
        partials.nodes[node].event = position[partials.nodes[node].event]
    live = partials.live[cursor.side]
    for i in range(cursor.first, cursor.first + cursor.live):
        number = live[i]
        partials.rows[number].start = position[partials.rows[number].start]
        for slot in range(len(tables.slots)):
            if tables.slots[slot].initial < 0 and partials.slots[number, slot] >= 0:
                partials.slots[number, slot] = position[partials.slots[number, slot]]
    for i in range(cursor.completed):
        partials.completed[i].start = position[partials.completed[i].start]
