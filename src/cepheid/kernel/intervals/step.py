"""Processes events as they arrive: which of them are late, which matches they complete, which matches they forbid, and
what is then emitted.

`kernel.consistency_reference` is the definition. An event is only processed once there is room for everything that it
may cause. Until then nothing has changed, and the call can be repeated.

Stores, open matches and emitted rows are separate arguments. When the functions took them out of one NamedTuple, an
event cost more if many matches were open (`benchmarks/intervals.py`, "with one of many open"): 24 to 35 % in one
comparison, 11 to 18 % in another.
"""

from __future__ import annotations

from enum import IntEnum

from cepheid.compile.arrays import Ints
from cepheid.compile.intervals.tables import IntervalTables
from cepheid.kernel.intervals.join import NO_ROOM, join, store
from cepheid.kernel.intervals.layout import (
    INSERTION,
    LATE,
    RETRACTION,
    Emitted,
    IntervalEvents,
    JoinCursor,
    OpenMatches,
    Scratch,
    Stores,
)
from cepheid.kernel.intervals.negation import (
    bind,
    first_in_scope,
    forbidden_until,
    forbids,
    is_forbidden,
    place_in_scopes,
    set_scopes,
)
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE


class JoinStatus(IntEnum):
    DONE = 0
    MORE_MATCHES = 1
    """OpenMatches needs room."""
    MORE_EMITTED = 2
    """The emitted rows must be taken, and need room for twice the open matches."""
    TOO_MANY = 3
    FAILED = 4


@kernel
def arrive(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    open_: OpenMatches,
    emitted: Emitted,
    scratch: Scratch,
    cursor: JoinCursor,
    stop: int,
) -> int:
    """Processes the events from Cursor.event up to `stop`, in the order of their positions; returns a JoinStatus."""
    settings = tables.settings[0]
    while cursor.event < stop:
        position = cursor.event
        lateness_time = events.end[position] if settings.by_end else events.start[position]
        if cursor.emitted >= len(emitted.rows):
            return JoinStatus.MORE_EMITTED
        if lateness_time < horizon_of(tables, cursor):
            emit_late(emitted, cursor)
            cursor.late += 1
            cursor.event += 1
            continue
        found = join(tables, events, stores, open_, scratch, cursor, position)
        if cursor.failure != NO_FAILURE:
            return JoinStatus.FAILED
        if found == NO_ROOM:
            if len(tables.negations) or cursor.matches <= 2 * cursor.heap:
                return JoinStatus.MORE_MATCHES
            keep_alive(open_, cursor)  # most are finished; without negations no list refers to them
            continue
        if found > settings.most_matches and not settings.drops:
            return JoinStatus.TOO_MANY
        kept = min(found, settings.most_matches)
        if cursor.emitted + 2 * (cursor.matches + kept) > len(emitted.rows):
            return JoinStatus.MORE_EMITTED
        cursor.dropped += found - kept
        # From here on the event cannot be processed again: its own end may have moved the clock and made it late.
        if events.end[position] > cursor.clock and not settings.external_clock:
            cursor.clock = events.end[position]
        if settings.buffer >= 0:
            note_recent(stores, cursor, lateness_time, settings.buffer)
        if not add_matches(tables, events, stores, open_, emitted, scratch, cursor, kept):
            return JoinStatus.FAILED
        accept(tables, events, stores, open_, emitted, scratch, cursor, position)
        if cursor.failure != NO_FAILURE:
            return JoinStatus.FAILED
        release(open_, emitted, cursor, horizon_of(tables, cursor))
        cursor.event += 1
    return JoinStatus.DONE


@inlined
def horizon_of(tables: IntervalTables, cursor: JoinCursor) -> int:
    """Events with a lateness time before this one are late."""
    settings = tables.settings[0]
    return int(cursor.horizon if settings.buffer >= 0 else cursor.clock - settings.delay)


@kernel
def note_recent(stores: Stores, cursor: JoinCursor, time: int, most: int) -> None:
    """Notes the lateness time of an accepted event among the `most` greatest. One that is not among them any more is
    the horizon, unless that is later.
    """
    heap, at = stores.recent, cursor.recent
    if at < most:
        cursor.recent += 1
        while at > 0 and heap[(at - 1) // 2] > time:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = time
        return
    if most == 0 or time <= heap[0]:
        cursor.horizon = max(cursor.horizon, time)
        return
    cursor.horizon = max(cursor.horizon, heap[0])
    at = 0
    while 2 * at + 1 < most:
        child = 2 * at + 1
        if child + 1 < most and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= time:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = time


@inlined
def emit(emitted: Emitted, open_: OpenMatches, cursor: JoinCursor, sign: int, row: int) -> None:
    entry, match = emitted.rows[cursor.emitted], open_.rows[row]
    entry.event, entry.sign, entry.clock = cursor.event, sign, cursor.clock
    entry.start, entry.end = match.start, match.end
    for v in range(open_.events.shape[1]):
        emitted.match[cursor.emitted, v] = open_.events[row, v]
    cursor.emitted += 1


@inlined
def emit_late(emitted: Emitted, cursor: JoinCursor) -> None:
    entry = emitted.rows[cursor.emitted]
    entry.event, entry.sign, entry.clock, entry.start, entry.end = cursor.event, LATE, cursor.clock, 0, 0
    for v in range(emitted.match.shape[1]):
        emitted.match[cursor.emitted, v] = 0
    cursor.emitted += 1


@inlined
def add_matches(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    open_: OpenMatches,
    emitted: Emitted,
    scratch: Scratch,
    cursor: JoinCursor,
    found: int,
) -> bool:
    """Opens the found matches that no event forbids. False if a condition failed."""
    positives = tables.settings[0].positives
    first = cursor.matches
    if not len(tables.negations) and not cursor.k_slack:  # they are final, so they are only emitted
        for row in range(first, first + found):
            set_span(events, open_, row)
            emit(emitted, open_, cursor, INSERTION, row)
        return True
    for candidate in range(first, first + found):
        bind(open_, scratch, candidate)
        forbidden = False
        for number in range(len(tables.negations)):
            forbidden = forbidden or is_forbidden(tables, events, stores, scratch, cursor, number)
        if cursor.failure != NO_FAILURE:
            return False
        if forbidden:
            continue
        row = cursor.matches
        for v in range(positives):
            open_.events[row, v] = open_.events[candidate, v]
        match = open_.rows[row]
        set_span(events, open_, row)
        match.until = forbidden_until(tables, events, scratch, match.end)
        match.alive, match.out = 1, cursor.realtime
        if cursor.realtime:
            emit(emitted, open_, cursor, INSERTION, row)
        cursor.matches += 1
        push(open_, cursor, row)
        if len(tables.negations):
            set_scopes(tables, events, open_, scratch, row)
            place_in_scopes(events, open_, cursor, row)
    return True


@inlined
def set_span(events: IntervalEvents, open_: OpenMatches, row: int) -> None:
    """Sets the start and the end of a match from its events."""
    position = open_.events[row, 0]
    start, end = events.start[position], events.end[position]
    for v in range(1, open_.events.shape[1]):
        position = open_.events[row, v]
        start, end = min(start, events.start[position]), max(end, events.end[position])
    open_.rows[row].start, open_.rows[row].end = start, end


@inlined
def accept(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    open_: OpenMatches,
    emitted: Emitted,
    scratch: Scratch,
    cursor: JoinCursor,
    position: int,
) -> None:
    """Stores the event, and ends the open matches that it forbids."""
    positives = tables.settings[0].positives
    for variable in range(len(tables.bits)):
        if not events.mask[position] >> tables.bits[variable] & 1:
            continue
        store(tables, events, stores, cursor, variable, position)
        if variable >= positives:
            end_forbidden(tables, events, open_, emitted, scratch, cursor, variable - positives, position)


@kernel
def end_forbidden(
    tables: IntervalTables,
    events: IntervalEvents,
    open_: OpenMatches,
    emitted: Emitted,
    scratch: Scratch,
    cursor: JoinCursor,
    number: int,
    position: int,
) -> None:
    """Ends the matches that the event forbids by one negation. In a stream in order few scopes reach as far as the
    event, so few matches are checked.
    """
    list_, start, end = open_.lists[events.key[position], number], events.start[position], events.end[position]
    for place in range(first_in_scope(open_, list_, number, start), list_.first + list_.count):
        row = open_.by_scope[place]
        match, scope = open_.rows[row], open_.scopes[row, number]
        if not match.alive or start < scope[0] or end < scope[2] or end > scope[3]:
            continue
        bind(open_, scratch, row)
        for i in range(4):
            scratch.levels[0, 3 + i] = scope[i]
        if forbids(tables, events, scratch, cursor, number, position):
            match.alive = 0
            if match.out:
                emit(emitted, open_, cursor, RETRACTION, row)
        if cursor.failure != NO_FAILURE:
            return


# Matches that become final


@inlined
def due(open_: OpenMatches, cursor: JoinCursor, row: int) -> int:
    """The match is final once no event with this lateness time, or an earlier one, can come."""
    match = open_.rows[row]
    return max(match.end, match.until) if cursor.k_slack else match.until


@inlined
def release(open_: OpenMatches, emitted: Emitted, cursor: JoinCursor, horizon: int) -> None:
    """Emits the matches that are certain, and ends them: no event with a lateness time before `horizon` can come."""
    while cursor.heap > 0 and due(open_, cursor, open_.heap[0]) < horizon:
        row = pop(open_, cursor)
        match = open_.rows[row]
        if match.alive and not match.out:
            match.out = 1
            emit(emitted, open_, cursor, INSERTION, row)
        match.alive = 0


@kernel
def release_until(open_: OpenMatches, emitted: Emitted, cursor: JoinCursor, horizon: int) -> None:
    """`release`, for callers that are not compiled."""
    release(open_, emitted, cursor, horizon)


@inlined
def push(open_: OpenMatches, cursor: JoinCursor, row: int) -> None:
    heap = open_.heap
    at = cursor.heap
    cursor.heap += 1
    while at > 0 and due(open_, cursor, heap[(at - 1) // 2]) > due(open_, cursor, row):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = row


@kernel
def rebuild_heap(open_: OpenMatches, cursor: JoinCursor) -> None:
    """Rebuilds the heap of open matches, with the one that becomes final first on top."""
    cursor.heap = 0
    for row in range(cursor.matches):
        if open_.rows[row].alive:
            push(open_, cursor, row)


@kernel
def keep_alive(open_: OpenMatches, cursor: JoinCursor) -> None:
    """Moves the matches that are not finished to the front, in their order, and removes the others. OpenMatches.lists
    must be made anew.
    """
    count = 0
    for row in range(cursor.matches):
        if not open_.rows[row].alive:
            continue
        if count < row:
            open_.rows[count] = open_.rows[row]
            for v in range(open_.events.shape[1]):
                open_.events[count, v] = open_.events[row, v]
            for number in range(open_.scopes.shape[1]):
                for i in range(4):
                    open_.scopes[count, number, i] = open_.scopes[row, number, i]
        count += 1
    cursor.matches = count
    rebuild_heap(open_, cursor)


@inlined
def pop(open_: OpenMatches, cursor: JoinCursor) -> int:
    heap: Ints = open_.heap
    top = heap[0]
    cursor.heap -= 1
    row = heap[cursor.heap]
    at, count = 0, cursor.heap
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and due(open_, cursor, heap[child + 1]) < due(open_, cursor, heap[child]):
            child += 1
        if due(open_, cursor, heap[child]) >= due(open_, cursor, row):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = row
    return top
