"""The compiled kernel. It equals `reference`, over arrays.

`run` is a loop of small steps: a key is loaded, a deadline passes, an event is processed, a key is parked. Each step
may complete matches, which are released before the next step. All state is in the arrays and the cursor, so `run` may
return between any two steps, to get more room, and be called again.

An event visits the live partial matches that it wakes (`State.wake`). An event that wakes none costs O(1)
(`Cursor.wake`) and moves nothing. Live partial matches are in order of their start. So the first one has the earliest
deadline, and a skip strategy drops a prefix.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.tables import ALWAYS, FINAL, IGNORED, STOPPED, Tables
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Stack, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.conditions import run_script
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.kernel.stages.layout import (
    ALL_VISITED,
    START_ROW,
    TIMED_OUT,
    Cursor,
    FateCode,
    Output,
    PartialMatches,
    Starts,
)
from cepheid.kernel.stages.longest import add_holder, outgrow, remove_holder
from cepheid.kernel.stages.lookup.deadline import deadline_of, time_since
from cepheid.kernel.stages.lookup.index import (
    find_candidates,
    first_deadline,
    first_to_end,
    make_index,
    pays,
    place,
    unplace,
)
from cepheid.kernel.stages.observed.record import (
    begin_moment,
    record_all_open,
    record_broken,
    record_deadline,
    record_end,
    record_last,
    record_taken,
)
from cepheid.kernel.stages.park import has_room_to_load, has_room_to_park, load, park
from cepheid.kernel.stages.release import TOO_MANY_PARTIAL_MATCHES, add, complete, negate, release
from cepheid.kernel.stages.rows import (
    append_node,
    copy_row,
    drop_first,
    put_before,
    remove,
    take_into_slots,
)


class Status(IntEnum):
    """Why `run` returned."""

    DONE = 0
    """All visits are made."""
    OUTPUT_FULL = 1
    ROOM_NEEDED = 2
    """For nodes, partial matches, matches or parked entries: see `room_needed` and `park`."""
    FAILED = 3
    """A condition failed on the event at the cursor, a match has no event to skip to, or a limit is exceeded: see
    `Cursor.failure`.
    """


@kernel
def run(
    tables: Tables,
    events: Events,
    visits: Visits,
    partials: PartialMatches,
    output: Output,
    cursor: Cursor,
    stack: Stack,
    starts: Starts | None,
) -> int:
    """Makes the visits from the cursor on. If `starts` is None, nothing is recorded about starts: see
    `observed.record`.
    """
    while True:
        if cursor.completed and not release(tables, partials, output, cursor, starts):
            return Status.FAILED if cursor.failure != NO_FAILURE else Status.OUTPUT_FULL
        if cursor.live > tables.settings[0].most_partial_matches:
            if not tables.settings[0].limits_drop:
                cursor.failure = TOO_MANY_PARTIAL_MATCHES
                return Status.FAILED
            if ends_need_room(partials, cursor):
                return Status.ROOM_NEEDED
            drop_oldest(tables, partials, cursor, starts)
            continue
        visit = cursor.visit
        if not cursor.loaded:
            if visit == len(visits.key):
                return Status.DONE
            if not has_room_to_load(partials, visits.key[visit]):
                return Status.ROOM_NEEDED
            load(partials, cursor, visits.key[visit])
            continue
        at_end = cursor.event == visits.end[visit]
        time = visits.until[visit] if at_end else events.time[cursor.event]
        passes = not at_end or time > cursor.reached
        if cursor.live and passes and has_deadline(tables, events, partials, cursor, time):
            if ends_need_room(partials, cursor):
                return Status.ROOM_NEEDED
            expire(tables, events, partials, cursor, starts)
        elif not at_end:
            cursor.candidates = ALL_VISITED
            if pays(tables, partials, cursor):
                make_index(tables, events, partials, cursor, stack)
            if cursor.buckets:
                find_candidates(tables, events, partials, cursor, stack)
            if may_need_room(partials, cursor) and room_needed_for(events.mask[cursor.event], partials, cursor):
                return Status.ROOM_NEEDED
            process(tables, events, partials, cursor, stack, starts)
            if cursor.failure != NO_FAILURE:
                return Status.FAILED
            cursor.event += 1
        elif visits.closes[visit] and cursor.live:
            if ends_need_room(partials, cursor):
                return Status.ROOM_NEEDED
            close(tables, partials, cursor, time, starts)
        elif has_room_to_park(partials, cursor):
            park(tables, events, partials, cursor, visits.key[visit])
        else:
            return Status.ROOM_NEEDED


@inlined
def may_need_room(partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether processing an event that wakes all might need more room than there is. If nothing at all is open, there
    is room for the successors of the start state: see `new_partial_matches`.
    """
    moving = cursor.live if cursor.candidates == ALL_VISITED else cursor.candidates
    most = (moving + 1) * cursor.fanout
    return (cursor.live or cursor.parked) and (
        cursor.free < most
        or len(partials.nodes) - cursor.nodes < most
        or len(partials.completed) - cursor.completed < most + moving
    )


@kernel
def room_needed_for(mask: int, partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether processing this event might need more room. If it wakes no partial match, only the start state moves."""
    moving = cursor.candidates
    if moving == ALL_VISITED:
        moving = cursor.live if (mask | (np.int64(1) << ALWAYS)) & cursor.wake else 0
    most = (moving + 1) * cursor.fanout
    needed: bool = room_needed(partials, cursor, most, most + moving)
    return needed


@inlined
def ends_need_room(partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether there is too little room for a match of each live partial match."""
    cursor.needed, cursor.needed_matches = 0, cursor.live
    return len(partials.completed) - cursor.completed < cursor.live


@kernel
def room_needed(partials: PartialMatches, cursor: Cursor, rows: int, matches: int) -> bool:
    """Whether there is too little room for `rows` further rows, with a node each, and `matches` further matches."""
    cursor.needed, cursor.needed_matches = rows, matches
    return (
        cursor.free < rows
        or len(partials.nodes) - cursor.nodes < rows
        or len(partials.completed) - cursor.completed < matches
    )


@inlined
def has_deadline(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, time: int) -> bool:
    """Whether a live partial match runs out of time at `time` or before."""
    earliest = deadline(tables, events, partials, cursor, time)
    return earliest <= time and earliest != FOREVER


@inlined
def deadline(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, time: int) -> int:
    """The earliest deadline of the live partial matches or, if all are after `time`, any time after that."""
    number = partials.links[START_ROW].next
    if not tables.settings[0].windows:
        return deadline_of(tables, events, partials, number)
    if cursor.buckets:
        return first_deadline(tables, partials)
    if cursor.earliest <= time:
        cursor.earliest = FOREVER
        while number != START_ROW:
            cursor.earliest = min(cursor.earliest, deadline_of(tables, events, partials, number))
            number = partials.links[number].next
    return cursor.earliest


@inlined
def expire(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, starts: Starts | None) -> None:
    """Lets the earliest deadline pass: ends the partial matches that have this deadline."""
    cursor.step += 1
    if starts is not None:
        begin_moment(starts)
    if tables.settings[0].windows:
        expire_in_any_order(tables, events, partials, cursor, starts)
        return
    # Deadlines are in order of start, and the first ones pass first.
    number = partials.links[START_ROW].next
    cursor.now = deadline_of(tables, events, partials, number)
    while number != START_ROW and deadline_of(tables, events, partials, number) == cursor.now:
        following = partials.links[number].next
        run_out(tables, events, partials, cursor, number, starts)
        number = following


@kernel
def expire_in_any_order(
    tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, starts: Starts | None
) -> None:
    """The same if states have windows."""
    forever: Any = np.int64(FOREVER)  # as a constant it would have a type of its own
    cursor.now = deadline(tables, events, partials, cursor, forever)
    if cursor.buckets:
        while first_deadline(tables, partials) == cursor.now:
            run_out(tables, events, partials, cursor, first_to_end(tables, partials), starts)
        return
    number = partials.links[START_ROW].next
    while number != START_ROW:
        following = partials.links[number].next
        if deadline_of(tables, events, partials, number) == cursor.now:
            run_out(tables, events, partials, cursor, number, starts)
        number = following


@inlined
def run_out(
    tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, number: int, starts: Starts | None
) -> None:
    """Ends a partial match whose deadline passes."""
    row = partials.rows[number]
    if starts is not None:
        record_deadline(starts, tables, events, partials, cursor, number)
    if row.whole >= 0:
        remove_holder(partials, cursor, row.start, row.whole)
    elif tables.states[row.state].complete or tables.states[row.state].pending:
        complete(partials, cursor, row.start, row.node, row.length)
    elif tables.settings[0].timeouts:
        add(partials, cursor, row.start, row.node, row.length, TIMED_OUT)
    remove(partials, cursor, number)


@kernel
def close(tables: Tables, partials: PartialMatches, cursor: Cursor, until: int, starts: Starts | None) -> None:
    """Ends the key. If the input goes on (`until` is a time), everything open is dropped."""
    cursor.step += 1
    if starts is not None:
        begin_moment(starts)
    cursor.now = NO_TIME
    if until == FOREVER:
        while cursor.live:
            end_first(tables, partials, cursor, starts)
    else:
        if starts is not None:
            record_all_open(starts, partials, cursor)
        cursor.completed = 0
        drop_first(partials, cursor, cursor.live)


@inlined
def end_first(tables: Tables, partials: PartialMatches, cursor: Cursor, starts: Starts | None) -> None:
    """Ends the live partial match with the earliest start, because no more events come."""
    number = partials.links[START_ROW].next
    row = partials.rows[number]
    if starts is not None:
        record_last(starts, tables, partials, number)
    if row.whole >= 0:
        remove_holder(partials, cursor, row.start, row.whole)
    elif tables.states[row.state].complete:
        complete(partials, cursor, row.start, row.node, row.length)
    remove(partials, cursor, number)


@kernel
def drop_oldest(tables: Tables, partials: PartialMatches, cursor: Cursor, starts: Starts | None) -> None:
    """Drops the partial matches that are over the limit, the earliest start first. Matches that only they could have
    continued are complete.
    """
    more = cursor.live - tables.settings[0].most_partial_matches
    cursor.dropped += more
    cursor.step += 1
    for _ in range(more):
        number = partials.links[START_ROW].next
        row = partials.rows[number]
        if starts is not None:
            record_end(starts, partials, row.start, row.node, FateCode.OVER_LIMIT, NONE)
        if row.whole >= 0:
            remove_holder(partials, cursor, row.start, row.whole)
        remove(partials, cursor, number)


@inlined
def process(
    tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, stack: Stack, starts: Starts | None
) -> None:
    """Offers the event at the cursor to every live partial match that it wakes, and to the start state."""
    event = cursor.event
    cursor.reached = events.time[event]
    if cursor.live == 0:
        cursor.wake, cursor.earliest = 0, FOREVER
        if cursor.parked == 0:
            cursor.nodes = 0  # no partial match is open, so no match waits either
    word = events.mask[event] | (np.int64(1) << ALWAYS)
    links, wake, candidates = partials.links, np.int64(0), cursor.candidates
    # As a constant it would have a type of its own, and Numba would compile `move` for it.
    start_row: Any = np.int64(START_ROW)
    number = links[START_ROW].next if candidates == ALL_VISITED and word & cursor.wake else start_row
    while number != START_ROW and not wakes(tables, partials, number, word):
        wake |= tables.states[partials.rows[number].state].wake
        number = links[number].next
    may_start = wakes(tables, partials, start_row, word)
    if number == START_ROW and candidates <= 0 and not may_start:
        return
    cursor.step += 1
    if starts is not None:
        begin_moment(starts)
    cursor.now = cursor.reached
    if number != START_ROW:
        cursor.wake = wake
        cursor.walks += cursor.live >= tables.settings[0].index_least
    # `move` is inlined, so it is called in one place only: for the ring, then for the candidates of the index, the one
    # that came last first, then for the start state.
    following, place = start_row, candidates
    while True:
        if number != START_ROW:
            following = links[number].next
            if not wakes(tables, partials, number, word):
                cursor.wake |= tables.states[partials.rows[number].state].wake
                number = following
                continue
        elif place > 0:
            place -= 1
            number, following = partials.lookup.found[place], start_row
        elif may_start:
            may_start, following = False, start_row
        else:
            return
        cursor.visited += number != START_ROW
        move(tables, events, partials, cursor, number, word, stack, starts)
        number = following


@inlined
def wakes(tables: Tables, partials: PartialMatches, number: int, word: int) -> bool:
    return word & tables.states[partials.rows[number].state].wake != 0


@inlined
def move(
    tables: Tables,
    events: Events,
    partials: PartialMatches,
    cursor: Cursor,
    number: int,
    word: int,
    stack: Stack,
    starts: Starts | None,
) -> None:
    """Moves one partial match along the edges whose guards hold for the event at the cursor. The successor on the last
    edge takes over the row, the others get a copy of it, before it in the order.
    """
    event = cursor.event
    row = partials.rows[number]
    state = tables.states[row.state]
    is_start = number == START_ROW
    if state.scripts < state.scripts_end:
        word = run_scripts(tables, events, partials, cursor, number, word, stack)
        if word & state.changing == 0:
            cursor.wake |= 0 if is_start else state.wake
            return
    first, end, node = state.edges, state.edges_end, row.node
    stop, last = last_way_on(tables, events, partials, first, end, node, word, event)
    stops, completes = stop >= 0, False
    start = event if is_start else row.start
    length, whole = row.length, row.whole
    longest = tables.settings[0].longest
    for i in range(first, end):
        edge = tables.edges[i]
        if not follows(edge, events, partials, node, word, event) or edge.target == STOPPED:
            continue
        taken, taken_length = node, length
        goes_on = edge.target != FINAL and not stops
        if edge.stage != IGNORED and (goes_on or edge.completes):
            taken, taken_length = append_node(partials, cursor, event, edge.stage, node), length + 1
            if starts is not None:
                record_taken(starts, start, edge.stage)
        if edge.completes and not (longest and goes_on):
            completes = True
            complete(partials, cursor, start, taken, taken_length)
        kept = -1 if edge.leaves else whole
        if longest and edge.completes:
            outgrow(partials, kept)
            kept = taken
        if not goes_on:
            continue
        successor = number
        stays = i == last and not is_start and edge.stage == IGNORED and edge.target == row.state
        if i != last or is_start:
            successor = copy_row(partials, cursor, number)
            put_before(partials, cursor, successor, number)
        elif cursor.buckets and not stays:
            unplace(partials.lookup, cursor, number)
        partials.rows[successor].state = edge.target
        cursor.wake |= tables.states[edge.target].wake
        if edge.stage != IGNORED:
            partials.rows[successor].start = start
            partials.rows[successor].node = taken
            partials.rows[successor].length = taken_length
            take_into_slots(tables, events, partials, successor, edge.stage, event)
        if longest:
            add_holder(partials, successor, kept)
        if tables.settings[0].windows:
            cursor.earliest = min(cursor.earliest, deadline_of(tables, events, partials, successor))
        if cursor.buckets and not stays:
            place(tables, events, partials, cursor, successor, stack)
    if stops and not is_start and not completes and whole < 0:
        partials.negated[stop] += 1
        if tables.settings[0].no_match:
            negate(partials, cursor, number, stop)
    if whole >= 0:
        remove_holder(partials, cursor, start, whole)
    if last < 0 and not is_start:
        if starts is not None and not completes:
            record_broken(starts, tables, events, partials, number, event, word, stop)
        remove(partials, cursor, number)


@inlined
def run_scripts(
    tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, number: int, word: int, stack: Stack
) -> int:
    """The truth bits of the event at the cursor, and those that the scripts of the partial match's state set."""
    state = tables.states[partials.rows[number].state]
    for i in range(state.scripts, state.scripts_end):
        script = tables.state_scripts[i]
        if word & tables.scripts[script].needs:
            true, failure = run_script(tables, events, partials, number, cursor.event, script, stack)
            if failure != NO_FAILURE:
                cursor.failure, cursor.failed_script = failure, script
            elif true:
                word |= tables.scripts[script].sets
    return word


@inlined
def last_way_on(
    tables: Tables, events: Events, partials: PartialMatches, first: int, end: int, node: int, word: int, event: int
) -> tuple[int, int]:
    """The negation whose edge stops the partial match (-1: none), and the last edge on which it continues (-1:
    none).
    """
    last = -1
    for i in range(first, end):
        edge = tables.edges[i]
        if follows(edge, events, partials, node, word, event):
            if edge.target == STOPPED:
                return edge.negation, -1
            if edge.target != FINAL:
                last = i
    return -1, last


@inlined
def follows(edge: Any, events: Events, partials: PartialMatches, node: int, word: int, event: int) -> bool:
    """Whether the edge is followed, if `node` has the event taken last. The start state has none: it is left only by
    taking an event, at any time.
    """
    if word & edge.require != edge.require or word & edge.forbid != 0:
        return False
    if node < 0:
        return edge.stage != IGNORED
    if edge.after < 0 and edge.window < 0:
        return True
    waited = time_since(events, partials, node, event)
    return waited >= edge.after and (edge.window < 0 or waited < edge.window)
