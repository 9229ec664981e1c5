"""When a partial match runs out of time."""

from __future__ import annotations

from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, Events
from cepheid.kernel.jit import inlined
from cepheid.kernel.stages.layout import PartialMatches


@inlined
def deadline_of(tables: Tables, events: Events, partials: PartialMatches, number: int) -> int:
    """When the partial match runs out of time; FOREVER if never."""
    row, end = partials.rows[number], end_of_window(tables, events, partials, number)
    gap = tables.states[row.state].window
    return min(end, later(events.time[partials.nodes[row.node].event], gap)) if gap >= 0 else end


@inlined
def end_of_window(tables: Tables, events: Events, partials: PartialMatches, number: int) -> int:
    """When the window of the whole pattern ends for the partial match; FOREVER if never."""
    start, settings = partials.rows[number].start, tables.settings[0]
    end = FOREVER
    if settings.window >= 0:
        end = later(events.time[start], settings.window)
    elif settings.deadline >= 0:
        end = events.values[settings.deadline, start]
    return end


@inlined
def time_since(events: Events, partials: PartialMatches, node: int, event: int) -> int:
    """Microseconds from the event of a node to the given one."""
    return events.time[event] - events.time[partials.nodes[node].event]


@inlined
def later(time: int, window: int) -> int:
    return time + window if time <= FOREVER - window else FOREVER
