"""Counts the waiting matches: found, and not emitted yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.stages.tables import SkipKind, Tables
from cepheid.kernel.arrays import ranges
from cepheid.kernel.stages.layout import GROWN, PartialMatches


def count_withheld(tables: Tables, partials: PartialMatches) -> int:
    """The number of matches of all keys that wait for an earlier partial match, and of partial matches that would be
    matches if they ended now. No key may be loaded. The cost grows with keys and partial matches; there is none if no
    match can wait.
    """
    settings, keys = tables.settings[0], partials.parked.keys
    count = 0
    if settings["skip"] != SkipKind.NO_SKIP:
        completed = partials.parked.completed[ranges(keys["completed"], keys["completed_end"])]
        count += _number_of(tables, partials.nodes, completed["node"], completed["step"])
    ends = (tables.states["complete"] | tables.states["pending"]) != 0
    if settings["longest"] or ends.any():
        rows = partials.rows[partials.parked.live[ranges(keys["live"], keys["live_end"])]]
        whole = np.unique(rows["whole"][rows["whole"] >= 0])
        growing = whole[partials.nodes["holders"][whole] != GROWN]
        ending = rows["node"][(rows["whole"] < 0) & ends[rows["state"]]]
        last = np.concatenate([growing, ending])
        count += _number_of(tables, partials.nodes, last, np.zeros_like(last))
    return count


def _number_of(tables: Tables, nodes: Records, last: Ints, step: Ints) -> int:
    """The number of matches that end at the nodes `last`. Branches may have completed the same match at one step; it
    counts once.
    """
    if not tables.settings[0]["distinct"]:
        return len(last)
    return len({(at, _taken(nodes, node)) for at, node in zip(step.tolist(), last.tolist(), strict=True)})


def _taken(nodes: Records, node: Any) -> tuple[tuple[int, int], ...]:
    """The stages and events up to the node, the last one first."""
    taken = []
    while node >= 0:
        entry = nodes[node]
        taken.append((int(entry["stage"]), int(entry["event"])))
        node = entry["parent"]
    return tuple(taken)
