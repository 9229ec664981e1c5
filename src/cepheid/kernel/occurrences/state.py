"""Converts the state of a kernel of the event algebra to plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.errors import SnapshotError
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.key_room import room_for
from cepheid.kernel.occurrences.kernel import OccurrenceKernel
from cepheid.kernel.occurrences.layout import ENTRY, TREE_NODE, NodeKind, new_keys, new_lists

_NODE = ("kind", "left", "right", "number", "start", "end")
_ENTRY = ("start", "end", "node")
_OTHER = "the snapshot's occurrences are not those of this pattern: was it written by another version?"


def kernel_state(kernel: OccurrenceKernel) -> Mapping[str, npt.NDArray[Any]]:
    """The state besides the events, as integers. The kernel must have only the events that it needs."""
    forest, width = kernel.forest, kernel.lists_of_key
    keys = kernel.open_keys
    lists = forest.lists.reshape(-1, width)[keys].reshape(-1)
    first, count = lists["first"], lists["count"]
    entries = np.concatenate([np.arange(0), *map(np.arange, first, first + count)])
    nodes = forest.nodes[: kernel.cursor.nodes]
    return {
        "keys": keys.astype(np.int64),
        "now": forest.keys["now"][keys],
        "count": count.copy(),
        "latest": lists["latest"].copy(),
        "entries": np.array([forest.entries[name][entries] for name in _ENTRY], np.int64),
        "nodes": np.array([nodes[name] for name in _NODE], np.int64),
    }


def restore_kernel(kernel: OccurrenceKernel, arrays: Mapping[str, npt.NDArray[Any]], events: int) -> None:
    """Restores the state of another kernel, with `events` events, into this new kernel.

    Raises:
        SnapshotError: the arrays are not those of such a kernel.
    """
    width = kernel.lists_of_key
    keys, now, count, latest, entries, nodes = (
        arrays[name] for name in ("keys", "now", "count", "latest", "entries", "nodes")
    )
    plain = all(array.dtype == np.int64 for array in (keys, now, count, latest, entries, nodes))
    lists = (len(keys) * width,)
    shapes = keys.shape == now.shape == (len(keys),) and count.shape == latest.shape == lists
    if not (plain and shapes and entries.ndim == nodes.ndim == 2 and (len(entries), len(nodes)) == (3, 6)):
        raise SnapshotError(_OTHER)
    ascends = (np.diff(keys) > 0).all() and (keys >= 0).all()
    if not (ascends and (count >= 0).all() and count.sum() == entries.shape[1] and _are_sound(nodes, kernel, events)):
        raise SnapshotError(_OTHER)
    if not ((entries[2] < nodes.shape[1]) & (entries[2] >= -events)).all():
        raise SnapshotError(_OTHER)
    _restore_lists(kernel, arrays)
    _restore_nodes(kernel, nodes)
    kernel.cursor.event = events


def _are_sound(nodes: Ints, kernel: OccurrenceKernel, events: int) -> bool:
    """Whether each node refers only to existing events and to nodes before it."""
    kind, left, right, number, _, _ = nodes
    right = np.where(kind == NodeKind.JOINED, right, left)
    before = np.arange(nodes.shape[1])
    below = (left < before) & (left >= -events) & (right < before) & (right >= -events)
    bound = (kind != NodeKind.BOUND) | ((number >= 0) & (number < kernel.variables))
    return bool((below & bound & (kind >= 0) & (kind <= max(NodeKind))).all())


def _restore_lists(kernel: OccurrenceKernel, arrays: Mapping[str, Ints]) -> None:
    keys, now, count, latest, entries = (arrays[name] for name in ("keys", "now", "count", "latest", "entries"))
    width, highest = kernel.lists_of_key, max(1, room_for(keys))
    stored, lists = new_keys(highest), new_lists(highest * width)
    rows = (keys[:, None] * width + np.arange(width)).reshape(-1)
    stop = np.cumsum(count)
    for name, values in (("base", stop - count), ("first", stop - count), ("capacity", count), ("count", count)):
        lists[name][rows] = values
    lists["latest"][rows] = latest
    of_key = count.reshape(-1, width)
    stored["now"][keys] = now
    stored["remembered"][keys] = of_key[:, 1:].sum(axis=1)
    due = np.where(of_key[:, 0] > 0, now, FOREVER)
    for timers in kernel.timers:
        at = (stop - count).reshape(-1, width)[:, timers]
        first = np.append(entries[1], FOREVER)[at]
        due = np.minimum(due, np.where(of_key[:, timers] > 0, first, FOREVER))
    stored["due"][keys] = due
    forest = kernel.forest
    room = np.zeros(max(len(forest.entries), 4 * entries.shape[1]), ENTRY)
    for name, values in zip(_ENTRY, entries, strict=True):
        room[name][: entries.shape[1]] = values
    kernel.forest = forest._replace(keys=stored, lists=lists, entries=room)
    kernel.cursor.entries = entries.shape[1]


def _restore_nodes(kernel: OccurrenceKernel, nodes: Ints) -> None:
    table = np.zeros(max(len(kernel.forest.nodes), 2 * nodes.shape[1]), TREE_NODE)
    for name, values in zip(_NODE, nodes, strict=True):
        table[name][: nodes.shape[1]] = values
    sizes: list[int] = []
    for kind, left, right in zip(*nodes[:3].tolist(), strict=True):
        size = sizes[left] if left >= 0 else 1
        if kind == NodeKind.JOINED:
            size += sizes[right] if right >= 0 else 1
        sizes.append(size)
    table["size"][: len(sizes)] = sizes
    kernel.forest = kernel.forest._replace(nodes=table)
    kernel.cursor.nodes = nodes.shape[1]
