"""Finds the matches that an event completes.

The event is bound to each variable that it may be, one after the other. The other variables are then bound in the
plan's order. Their candidates are found by binary search over starts or over ends, whichever leaves fewer.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.intervals.tables import IntervalTables
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.intervals.check import checks_hold, span
from cepheid.kernel.intervals.layout import IntervalEvents, JoinCursor, OpenMatches, Scratch, Stores
from cepheid.kernel.intervals.lists import doubled, move_entries
from cepheid.kernel.jit import kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.intervals.constants import FREE

NO_ROOM = -1
EARLIEST, LATEST = -FREE, FREE


@kernel
def search(order: Int32s, low: int, high: int, times: Ints, time: int) -> int:
    """The first place from `low` to `high` whose time is not before `time`. The positions at these places are ordered
    by time.
    """
    while low < high:
        middle = (low + high) // 2
        if times[order[middle]] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def store(events: IntervalEvents, stores: Stores, cursor: JoinCursor, variable: int, position: int) -> None:
    """Adds an event to the stores of a variable."""
    list_ = stores.lists[events.key[position], variable]
    if list_.count == list_.room:
        former = list_.first
        cursor.stored = doubled(list_, cursor.stored)
        move_entries(stores.by_start, former, list_)
        move_entries(stores.by_end, former, list_)
    first, stop = list_.first, list_.first + list_.count
    rows = stores.by_start
    # After events with the same start, so that nothing is moved in a stream in order.
    place = search(rows, first, stop, events.start, events.start[position] + 1)
    for i in range(stop, place, -1):
        rows[i] = rows[i - 1]
    rows[place] = position
    rows = stores.by_end
    place = search(rows, first, stop, events.end, events.end[position] + 1)
    mark_twin(events, rows, first, place, position)
    for i in range(stop, place, -1):
        rows[i] = rows[i - 1]
    rows[place] = position
    list_.count += 1


@kernel
def mark_twin(events: IntervalEvents, by_end: Int32s, first: int, place: int, position: int) -> None:
    """Sets `twin` if an event before `place` has the same start and end. Only events with the same end are compared."""
    at = place - 1
    while at >= first and events.end[by_end[at]] == events.end[position]:
        if events.start[by_end[at]] == events.start[position]:
            events.twin[position] = True
            return
        at -= 1


@kernel
def candidates(events: IntervalEvents, stores: Stores, levels: Ints, level: int, variable: int, key: int) -> None:
    """Sets the candidates of a level from its bounds: a range of the list by start or by end, whichever is shorter."""
    row = levels[level]
    list_ = stores.lists[key, variable]
    first, stop = list_.first, list_.first + list_.count
    row[0] = search(stores.by_start, first, stop, events.start, row[3])
    row[1] = search(stores.by_start, row[0], stop, events.start, row[4] + 1)
    row[2] = 0
    if row[1] - row[0] > 4:
        low = search(stores.by_end, first, stop, events.end, row[5])
        high = search(stores.by_end, low, stop, events.end, row[6] + 1)
        if high - low < row[1] - row[0]:
            row[0], row[1], row[2] = low, high, 1


@kernel
def bind_level(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, scratch: Scratch, first: int, level: int
) -> None:
    """Sets the bounds and the candidates of the variable that is bound at `level`."""
    variable = tables.order[first, level]
    start_low, start_high, end_low, end_high = EARLIEST, LATEST, EARLIEST, LATEST
    for before in range(level):
        u = tables.order[first, before]
        position = scratch.slots[0, u]
        for end in range(2):
            time = events.end[position] if end else events.start[position]
            other = 2 * u + end
            bound = tables.bounds[other, 2 * variable]
            if bound < FREE and time - bound > start_low:
                start_low = time - bound
            bound = tables.bounds[2 * variable, other]
            if bound < FREE and time + bound < start_high:
                start_high = time + bound
            bound = tables.bounds[other, 2 * variable + 1]
            if bound < FREE and time - bound > end_low:
                end_low = time - bound
            bound = tables.bounds[2 * variable + 1, other]
            if bound < FREE and time + bound < end_high:
                end_high = time + bound
    row = scratch.levels[level]
    row[3], row[4], row[5], row[6] = start_low, start_high, end_low, end_high
    candidates(events, stores, scratch.levels, level, variable, events.key[scratch.slots[0, first]])


@kernel
def is_sound(tables: IntervalTables, events: IntervalEvents, variable: int, position: int) -> bool:
    """Whether the event's duration suits the variable, which may require a proper interval or an instant."""
    length = events.end[position] - events.start[position]
    shortest, longest = -tables.bounds[2 * variable, 2 * variable + 1], tables.bounds[2 * variable + 1, 2 * variable]
    return shortest <= length <= longest


@kernel
def join(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    open_: OpenMatches,
    scratch: Scratch,
    cursor: JoinCursor,
    position: int,
) -> int:
    """Writes the matches that the event completes after the open ones, and returns their number, or NO_ROOM. It does
    not check negations.

    If there are more matches than the limit, only those with the latest start are written. If exceeding the limit is an
    error, it stops at the first match over the limit. Sets the cursor's failure.
    """
    found = 0
    positives = tables.settings[0].positives
    for first in range(positives):
        if not events.mask[position] >> tables.bits[first] & 1 or not is_sound(tables, events, first, position):
            continue
        scratch.slots[0, first] = position
        if not checks_hold(tables, events, scratch, cursor, first, 1):
            if cursor.failure != NO_FAILURE:
                return 0
            continue
        if positives == 1:
            found = write(tables, events, open_, scratch, cursor, found)
        else:
            found = join_from(tables, events, stores, open_, scratch, cursor, first, found)
        if is_over(tables, found) or cursor.failure != NO_FAILURE:
            return found
    return found


@kernel
def join_from(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    open_: OpenMatches,
    scratch: Scratch,
    cursor: JoinCursor,
    first: int,
    found: int,
) -> int:
    """As `join`, with the event bound to variable `first`. Returns the number of matches, including `found` earlier
    ones.
    """
    positives = tables.settings[0].positives
    level = 1
    bind_level(tables, events, stores, scratch, first, level)
    while level > 0:
        row = scratch.levels[level]
        if row[0] >= row[1]:
            level -= 1
            continue
        variable = tables.order[first, level]
        candidate = stores.by_end[row[0]] if row[2] else stores.by_start[row[0]]
        row[0] += 1
        start, end = events.start[candidate], events.end[candidate]
        if start < row[3] or start > row[4] or end < row[5] or end > row[6]:
            continue
        if not is_sound(tables, events, variable, candidate):
            continue
        if is_bound(tables, scratch, first, level, candidate):
            continue
        scratch.slots[0, variable] = candidate
        if not checks_hold(tables, events, scratch, cursor, first, level + 1):
            if cursor.failure != NO_FAILURE:
                return 0
            continue
        if level + 1 < positives:
            level += 1
            bind_level(tables, events, stores, scratch, first, level)
            continue
        found = write(tables, events, open_, scratch, cursor, found)
        if is_over(tables, found):
            return found
    return found


@kernel
def is_bound(tables: IntervalTables, scratch: Scratch, first: int, level: int, candidate: int) -> bool:
    """Whether the event is already bound to a variable."""
    for before in range(level):
        if scratch.slots[0, tables.order[first, before]] == candidate:
            return True
    return False


@kernel
def is_over(tables: IntervalTables, found: int) -> bool:
    """Whether the search can stop: there is no room, or too many matches are an error."""
    settings = tables.settings[0]
    return found == NO_ROOM or (found > settings.most_matches and not settings.drops)


@kernel
def write(
    tables: IntervalTables,
    events: IntervalEvents,
    open_: OpenMatches,
    scratch: Scratch,
    cursor: JoinCursor,
    found: int,
) -> int:
    """Writes the bound match, if it may start with its first event, and returns the number of matches found with it, or
    NO_ROOM.
    """
    settings = tables.settings[0]
    start, _ = span(events, scratch, (1 << settings.positives) - 1)
    if settings.may_start and not starts_marked(tables, events, scratch, start):
        return found
    if found < settings.most_matches:
        row = cursor.matches + found
        if row >= len(open_.rows):
            return NO_ROOM
        put(open_, scratch, row, start)
        return found + 1
    if settings.drops:
        first, count = cursor.matches, settings.most_matches
        if found == count:
            for place in range(count // 2 - 1, -1, -1):
                sift_down(open_, first, count, place)
        if start > open_.rows[first].start:
            put(open_, scratch, first, start)
            sift_down(open_, first, count, 0)
    return found + 1


@kernel
def starts_marked(tables: IntervalTables, events: IntervalEvents, scratch: Scratch, start: int) -> bool:
    """Whether the bound match, which starts at `start`, may start with its first event. All events of one start may, or
    none.
    """
    settings = tables.settings[0]
    for v in range(settings.positives):
        position = scratch.slots[0, v]
        if events.start[position] == start:
            return events.mask[position] & settings.may_start != 0
    return False


@kernel
def put(open_: OpenMatches, scratch: Scratch, row: int, start: int) -> None:
    open_.rows[row].start = start
    for v in range(open_.events.shape[1]):
        open_.events[row, v] = np.int32(scratch.slots[0, v])


@kernel
def sift_down(open_: OpenMatches, first: int, count: int, place: int) -> None:
    """Restores the heap order below `place` in a heap of `count` rows from `first` on. The earliest start is at the top
    of the heap.
    """
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and open_.rows[first + child + 1].start < open_.rows[first + child].start:
            child += 1
        here, below = first + place, first + child
        if open_.rows[below].start >= open_.rows[here].start:
            return
        start = open_.rows[here].start
        open_.rows[here].start = open_.rows[below].start
        open_.rows[below].start = start
        for v in range(open_.events.shape[1]):
            position = open_.events[here, v]
            open_.events[here, v] = open_.events[below, v]
            open_.events[below, v] = position
        place = child
