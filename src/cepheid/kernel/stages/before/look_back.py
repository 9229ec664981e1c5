"""`begin_without` in the compiled kernel: which events may start a partial match, decided before `run` sees them.

An event that an earlier one keeps from starting gets a truth bit (SETTINGS.kept_out), which the edges of the start
state forbid. So `run` needs to know nothing of earlier events. Of these, the last one is enough if no script compares
them with the event that starts; otherwise all of the last SETTINGS.without microseconds are stored.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.tables import ALWAYS, NO_BIT, Tables
from cepheid.kernel.arrays import FOREVER, Events, Stack, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.conditions import run_script
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.kernel.stages.layout import START_ROW, Cursor, Earlier, PartialMatches
from cepheid.kernel.stages.lookup.deadline import later
from cepheid.kernel.stages.rows import take_into_slots


@kernel
def look_back(
    tables: Tables,
    events: Events,
    visits: Visits,
    earlier: Earlier,
    used: int,
    partials: PartialMatches,
    cursor: Cursor,
    stack: Stack,
) -> int:
    """Marks the events of the visits that may not start a partial match, and stores those that matter to later ones.

    `used` is the number of places of `Earlier.events` in use; returns the new number. Each visit needs room for its
    events, those of earlier visits of its key, and what was stored for the key before. Of `partials` only the slots of
    START_ROW are used, as scratch. If a script fails, `Cursor.failure` is set, and `Cursor.event` is the earlier event.
    """
    settings = tables.settings[0]
    wake = tables.states[settings.start].wake
    fits = np.int64(1) << (ALWAYS if settings.without_bit == NO_BIT else settings.without_bit)
    event = cursor.event
    for visit in range(len(visits.key)):
        key, now = visits.key[visit], visits.until[visit]
        first = used
        for i in range(earlier.keys[key].first, earlier.keys[key].end):
            earlier.events[used] = earlier.events[i]
            used += 1
        while event < visits.end[visit]:
            word = events.mask[event] | (np.int64(1) << ALWAYS)
            if word & wake and is_kept_out(tables, events, earlier, first, used, event, partials, cursor, stack):
                events.mask[event] |= np.int64(1) << settings.kept_out
            if cursor.failure != NO_FAILURE:
                return used
            if word & fits:
                used = first if settings.without_script == NONE else used
                earlier.events[used] = event
                used += 1
            now = max(now, events.time[event])
            event += 1
        while first < used and (visits.closes[visit] or expires(tables, events, earlier.events[first]) <= now):
            first += 1
        earlier.keys[key].first, earlier.keys[key].end = first, used
        earlier.due[key] = expires(tables, events, earlier.events[first]) if first < used else FOREVER
    return used


@inlined
def expires(tables: Tables, events: Events, event: int) -> int:
    """The first time at which an event may start although this one came before."""
    return later(events.time[event], tables.settings[0].without + 1)


@kernel
def is_kept_out(
    tables: Tables,
    events: Events,
    earlier: Earlier,
    first: int,
    end: int,
    event: int,
    partials: PartialMatches,
    cursor: Cursor,
    stack: Stack,
) -> bool:
    """Whether one of the earlier events from `first` to `end` keeps the event from starting; the latest come first."""
    script = tables.settings[0].without_script
    if script != NONE and first < end:
        for slot in range(len(tables.slots)):
            partials.slots[START_ROW, slot] = tables.slots[slot].initial
        take_into_slots(tables, events, partials, START_ROW, 0, event)
    for i in range(end - 1, first - 1, -1):
        before = earlier.events[i]
        if expires(tables, events, before) <= events.time[event]:
            return False
        if script == NONE:
            return True
        true, failure = run_script(tables, events, partials, START_ROW, before, script, stack)
        if failure != NO_FAILURE:
            cursor.failure, cursor.failed_script, cursor.event = failure, script, before
            return False
        if true:
            return True
    return False
