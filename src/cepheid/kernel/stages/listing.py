"""Lists open partial matches on request, each as the timeout that it would be.

Listing changes nothing. It may cost more than a step, because it enumerates the partial matches in sets.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Int32s, ranges
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import TIMED_OUT, PartialMatches


def open_one_by_one(tables: Tables, partials: PartialMatches, events: Events, most: int) -> Emitted:
    keys, nodes = partials.parked.keys, partials.nodes
    first = np.maximum(keys["live"], keys["live_end"] - most)
    rows = partials.rows[partials.parked.live[ranges(first, keys["live_end"])]]
    end = np.cumsum(rows["length"])
    event, stage = np.empty(rows["length"].sum(), np.int32), np.empty(rows["length"].sum(), np.int32)
    place, node = end - 1, rows["node"]
    while len(node):  # the last event of each, then the one before it
        event[place], stage[place] = nodes["event"][node], nodes["stage"][node]
        parent = nodes["parent"][node]
        place, node = place[parent >= 0] - 1, parent[parent >= 0]
    deadline, times = int(tables.settings["deadline"][0]), events.time
    if deadline == NONE:
        whole = deadlines(times[rows["start"]], tables.settings["window"][0])
    else:
        whole = events.values[deadline][rows["start"]]
    gap = deadlines(times[nodes["event"][rows["node"]]], tables.states["window"][rows["state"]])
    return as_timeouts(end, np.minimum(whole, gap), event, stage)


def deadlines(times: Ints, windows: Ints | int) -> Ints:
    """Each time plus its window, FOREVER where there is no window."""
    ends: Ints = np.where((windows >= 0) & (times <= FOREVER - np.maximum(windows, 0)), times + windows, FOREVER)
    return ends


def as_timeouts(end: Ints, deadlines: Ints, event: Int32s, stage: Int32s) -> Emitted:
    outcome = np.full(len(end), TIMED_OUT, np.int32)
    return Emitted(end, np.where(deadlines == FOREVER, NO_TIME, deadlines), outcome, event=event, stage=stage)
