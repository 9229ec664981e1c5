"""When a partial match runs out of time."""

from __future__ import annotations

from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, Events
from cepheid.kernel.jit import inlined
from cepheid.kernel.stages.layout import PartialMatches


@inlined
def deadline_of(tables: Tables, events: Events, partials: PartialMatches, number: int) -> int:
    """When the partial match runs out of time; FOREVER if never."""
    row, window = partials.rows[number], tables.settings[0].window
    end, deadline = FOREVER, tables.settings[0].deadline
    if window >= 0:
        end = later(events.time[row.start], window)
    elif deadline >= 0:
        end = events.values[deadline, row.start]
    gap = tables.states[row.state].window
    return min(end, later(events.time[partials.nodes[row.node].event], gap)) if gap >= 0 else end


@inlined
def later(time: int, window: int) -> int:
    return time + window if time <= FOREVER - window else FOREVER
