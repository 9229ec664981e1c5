"""Copies the state of keys, for a later rollback to this point. Nodes never change, so copies share them."""

from __future__ import annotations

import numpy as np

from cepheid.kernel.arrays import Int32s, ranges
from cepheid.kernel.occurrences.kernel import OccurrenceKernel


def fork_keys(kernel: OccurrenceKernel, source: Int32s, target: Int32s) -> None:
    """Copies the state of key source[i] to key target[i], which has none. Afterwards the two are independent."""
    width = kernel.lists_of_key
    kernel.make_keys(int(target.max(initial=-1)) + 1)
    lists = kernel.forest.lists.reshape(-1, width)
    more = int(lists["count"][source].sum())
    if kernel.cursor.entries + more > len(kernel.forest.entries):
        kernel.make_entries(more)
    forest, cursor = kernel.forest, kernel.cursor
    copies = lists[source].reshape(-1)
    begin, stops = int(cursor.entries), np.cumsum(copies["count"])
    cursor.entries = begin + more
    forest.entries[begin : begin + more] = forest.entries[ranges(copies["first"], copies["first"] + copies["count"])]
    copies["base"] = copies["first"] = begin + stops - copies["count"]
    copies["capacity"] = copies["count"]
    lists[target] = copies.reshape(-1, width)
    forest.keys[target] = forest.keys[source]
