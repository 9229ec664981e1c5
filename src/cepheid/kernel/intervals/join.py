"""Finds the matches that an event completes.

The event is bound to each variable that it may be, one after the other. The other variables are then bound in the
plan's order. Their candidates are found by binary search over starts, over ends, or among the events that have a value,
whichever leaves the fewest.

Functions that an event calls once are inlined: a call passes each array as seven words, and there are twenty.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.intervals.tables import IntervalTables, NarrowedBound
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.intervals.check import checks_hold, span
from cepheid.kernel.intervals.layout import IntervalEvents, JoinCursor, OpenMatches, Scratch, Stores
from cepheid.kernel.intervals.lists import doubled, move_entries
from cepheid.kernel.intervals.values import bucket_of, search, store_values, word_of
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.intervals.constants import FREE

NO_ROOM = -1
EARLIEST, LATEST = -FREE, FREE
_FEW = 4
"""So many candidates are checked without a search for fewer."""


@inlined
def store(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, cursor: JoinCursor, variable: int, position: int
) -> None:
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
    if len(tables.indexes):
        store_values(tables, events, stores, cursor, variable, position)


@inlined
def mark_twin(events: IntervalEvents, by_end: Int32s, first: int, place: int, position: int) -> None:
    """Sets `twin` if an event before `place` has the same start and end. Only events with the same end are compared."""
    at = place - 1
    while at >= first and events.end[by_end[at]] == events.end[position]:
        if events.start[by_end[at]] == events.start[position]:
            events.twin[position] = True
            return
        at -= 1


BY_START, BY_END, BY_VALUE = range(3)


@inlined
def candidates(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    scratch: Scratch,
    level: int,
    variable: int,
    key: int,
    number: int,
) -> None:
    """Sets the candidates of a level from its bounds, and from the equality of lookup `number`: a range of a list by
    value, by start or by end, whichever is shortest.
    """
    row = scratch.levels[level]
    lookup = tables.lookups[number]
    if lookup.index >= 0:
        with_value(tables, events, stores, scratch, level, key, number)
        if row[1] - row[0] <= _FEW:
            return
    list_ = stores.lists[key, variable]
    first, stop = list_.first, list_.first + list_.count
    if lookup.index < 0:
        row[1] = search(stores.by_start, first, stop, events.start, row[4] + 1)
        row[0] = search(stores.by_start, first, row[1], events.start, row[3])
        row[2] = BY_START
        if row[1] - row[0] <= _FEW:
            return
    high = search(stores.by_end, first, stop, events.end, row[6] + 1)
    low = search(stores.by_end, first, high, events.end, row[5])
    if high - low < row[1] - row[0]:
        row[0], row[1], row[2] = low, high, BY_END


@inlined
def candidate(stores: Stores, kind: int, place: int) -> int:
    if kind == BY_START:
        return int(stores.by_start[place])
    return int(stores.by_end[place]) if kind == BY_END else int(stores.by_value[place])


@kernel
def with_value(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    scratch: Scratch,
    level: int,
    key: int,
    number: int,
) -> None:
    """Sets the candidates of a level to the events with the value of lookup `number`, within the bounds of the start.
    NULL equals nothing.
    """
    row, lookup = scratch.levels[level], tables.lookups[number]
    row[0], row[1], row[2] = 0, 0, BY_VALUE
    position = scratch.slots[0, lookup.variable]
    if events.missing[lookup.column, position]:
        return
    word = word_of(events, lookup.column, tables.indexes[lookup.index].is_double, position)
    found = stores.buckets[bucket_of(stores, lookup.index, key, word)]
    if found:
        list_ = stores.value_lists[found - 1]
        first = list_.first
        row[1] = search(stores.by_value, first, first + list_.count, events.start, row[4] + 1)
        row[0] = search(stores.by_value, first, row[1], events.start, row[3])


@inlined
def bind_level(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, scratch: Scratch, first: int, level: int
) -> None:
    """Sets the bounds and the candidates of the variable that is bound at `level`."""
    row = scratch.levels[level]
    row[3], row[4], row[5], row[6] = EARLIEST, LATEST, EARLIEST, LATEST
    number = first * tables.settings[0].positives + level
    for i in range(tables.narrow_at[number], tables.narrow_at[number + 1]):
        narrowing = tables.narrowings[i]
        position = scratch.slots[0, narrowing.endpoint // 2]
        time = events.end[position] if narrowing.endpoint & 1 else events.start[position]
        time += narrowing.difference
        if narrowing.bound == NarrowedBound.LEAST_START or narrowing.bound == NarrowedBound.LEAST_END:
            row[narrowing.bound] = max(row[narrowing.bound], time)
        else:
            row[narrowing.bound] = min(row[narrowing.bound], time)
    key = events.key[scratch.slots[0, first]]
    candidates(tables, events, stores, scratch, level, tables.order[first, level], key, number)


@inlined
def is_sound(tables: IntervalTables, events: IntervalEvents, variable: int, position: int) -> bool:
    """Whether the event's duration suits the variable, which may require a proper interval or an instant."""
    length = events.end[position] - events.start[position]
    shortest, longest = -tables.bounds[2 * variable, 2 * variable + 1], tables.bounds[2 * variable + 1, 2 * variable]
    return shortest <= length <= longest


@inlined
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


@inlined
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
        position = candidate(stores, row[2], row[0])
        row[0] += 1
        start, end = events.start[position], events.end[position]
        if start < row[3] or start > row[4] or end < row[5] or end > row[6]:
            continue
        if not is_sound(tables, events, variable, position):
            continue
        if is_bound(tables, scratch, first, level, position):
            continue
        scratch.slots[0, variable] = position
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


@inlined
def is_bound(tables: IntervalTables, scratch: Scratch, first: int, level: int, position: int) -> bool:
    """Whether the event is already bound to a variable."""
    for before in range(level):
        if scratch.slots[0, tables.order[first, before]] == position:
            return True
    return False


@inlined
def is_over(tables: IntervalTables, found: int) -> bool:
    """Whether the search can stop: there is no room, or too many matches are an error."""
    settings = tables.settings[0]
    return found == NO_ROOM or (found > settings.most_matches and not settings.drops)


@inlined
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
        if is_later(open_, scratch, first, start):
            put(open_, scratch, first, start)
            sift_down(open_, first, count, 0)
    return found + 1


@kernel
def is_later(open_: OpenMatches, scratch: Scratch, row: int, start: int) -> bool:
    """Whether the bound match, which starts at `start`, is preferred to that in `row`: it starts later or, if they
    start together, the first event in which they differ came later. So it does not depend on the order in which matches
    are found.
    """
    if start != open_.rows[row].start:
        return start > int(open_.rows[row].start)
    for v in range(open_.events.shape[1]):
        if scratch.slots[0, v] != open_.events[row, v]:
            return scratch.slots[0, v] > int(open_.events[row, v])
    return False


@kernel
def is_before(open_: OpenMatches, row: int, other: int) -> bool:
    """The order of `is_later`, of two rows."""
    if open_.rows[row].start != open_.rows[other].start:
        return open_.rows[row].start < int(open_.rows[other].start)
    for v in range(open_.events.shape[1]):
        if open_.events[row, v] != open_.events[other, v]:
            return open_.events[row, v] < int(open_.events[other, v])
    return False


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
        if child + 1 < count and is_before(open_, first + child + 1, first + child):
            child += 1
        here, below = first + place, first + child
        if not is_before(open_, below, here):
            return
        start = open_.rows[here].start
        open_.rows[here].start = open_.rows[below].start
        open_.rows[below].start = start
        for v in range(open_.events.shape[1]):
            position = open_.events[here, v]
            open_.events[here, v] = open_.events[below, v]
            open_.events[below, v] = position
        place = child
