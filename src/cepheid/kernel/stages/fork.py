"""Copies the parked partial matches and waiting matches of keys, for a later rollback to this point.

Nodes never change, so copies share them. The exception is `longest` on a group. There a node counts the partial matches
that may continue it, so each copy has nodes of its own.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import FOREVER, Int32s, ranges
from cepheid.kernel.stages.layout import Cursor, PartialMatches


def parked_of(partials: PartialMatches, keys: Int32s) -> tuple[int, int]:
    """The numbers of partial matches and of waiting matches that are parked for the keys."""
    entries = partials.parked.keys[keys]
    live, completed = entries["live_end"] - entries["live"], entries["completed_end"] - entries["completed"]
    return int(live.sum()), int(completed.sum())


def copy_parked(partials: PartialMatches, cursor: Cursor, source: Int32s, target: Int32s, nodes: Ints | None) -> None:
    """Copies everything parked for key source[i] to key target[i]; there must be room for it. If nodes were copied,
    `nodes` has the copy of each node.
    """
    parked = partials.parked
    entries = parked.keys[source]
    rows = parked.live[ranges(entries["live"], entries["live_end"])]
    copies = partials.free[cursor.free - len(rows) : cursor.free].copy()
    cursor.free -= len(rows)
    partials.rows[copies], partials.slots[copies] = partials.rows[rows], partials.slots[rows]
    waiting = parked.completed[ranges(entries["completed"], entries["completed_end"])]
    if nodes is not None:
        partials.rows["node"][copies] = nodes[partials.rows["node"][rows]]
        whole = partials.rows["whole"][rows]
        partials.rows["whole"][copies] = np.where(whole < 0, whole, nodes[whole])
        waiting["node"] = nodes[waiting["node"]]
    live, completed = int(cursor.parked_live), int(cursor.parked_completed)
    parked.live[live : live + len(rows)] = copies
    parked.completed[completed : completed + len(waiting)] = waiting
    cursor.parked_live, cursor.parked_completed = live + len(rows), completed + len(waiting)
    cursor.parked += len(rows)
    for name, first in (("live", live), ("completed", completed)):
        lengths = entries[f"{name}_end"] - entries[name]
        ends = first + np.cumsum(lengths)
        entries[name], entries[f"{name}_end"] = ends - lengths, ends
    parked.keys[target] = entries
    parked.due[target] = parked.due[source]


def copy_nodes(partials: PartialMatches, cursor: Cursor, keys: Int32s) -> Ints:
    """Copies the nodes that are reached from what is parked for the keys, and returns the copy of each node. There must
    be room for as many nodes as are in use.
    """
    parked, nodes, used = partials.parked, partials.nodes, int(cursor.nodes)
    entries = parked.keys[keys]
    rows = partials.rows[parked.live[ranges(entries["live"], entries["live_end"])]]
    waiting = parked.completed[ranges(entries["completed"], entries["completed_end"])]
    reached = np.zeros(used, np.bool_)
    step = np.concatenate([rows["node"], waiting["node"]])
    while len(step := np.unique(step[step >= 0])):
        step = step[~reached[step]]
        reached[step] = True
        step = nodes["parent"][step]
    found = np.flatnonzero(reached)
    copy = np.full(used, -1, np.int64)
    copy[found] = used + np.arange(len(found))
    nodes[used : used + len(found)] = nodes[found]
    parents = nodes["parent"][found]
    nodes["parent"][used : used + len(found)] = np.where(parents < 0, parents, copy[parents])
    cursor.nodes = used + len(found)
    return copy


def forget_parked(partials: PartialMatches, cursor: Cursor, keys: Int32s) -> None:
    """Frees everything that is parked for the keys."""
    parked = partials.parked
    entries = parked.keys[keys]
    rows = parked.live[ranges(entries["live"], entries["live_end"])]
    partials.free[cursor.free : cursor.free + len(rows)] = rows
    cursor.free += len(rows)
    cursor.parked -= len(rows)
    entries["live_end"], entries["completed_end"] = entries["live"], entries["completed"]
    parked.keys[keys] = entries
    parked.due[keys] = FOREVER
