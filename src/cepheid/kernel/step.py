"""The compiled kernel: equal to `reference`, over arrays.

`run` is a loop of small steps: a deadline passes, a key ends, an event is processed. Each step may complete matches;
they are released before the next step. All state is in the arrays and the cursor, so `run` may return between any two
steps for more room and be called again. An event visits the live partial matches that it wakes (`Tables.wake`); one
that wakes none costs O(live) comparisons and moves nothing. Live partial matches are kept in order of their start, so
the earliest deadline is the first one's, and what a skip strategy drops is a prefix.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from cepheid.compile.script import SlotKind
from cepheid.compile.tables import ALWAYS, FINAL, IGNORED, NO_BIT, Ints, Records, Tables
from cepheid.kernel.interpret import NO_FAILURE, run_script, sum_overflows
from cepheid.kernel.jit import allocating, inlined, kernel
from cepheid.kernel.layout import (
    FOREVER,
    NO_TIME,
    START_ROW,
    Cursor,
    Events,
    Flags,
    Int32s,
    Output,
    PartialMatches,
)


class Status(IntEnum):
    """Why `run` returned."""

    DONE = 0
    """All events are processed and, if asked for, the last key has ended."""
    OUTPUT_FULL = 1
    ROOM_NEEDED = 2
    """For nodes, partial matches or completed matches: see `room_needed`."""
    FAILED = 3
    """A condition failed on the event at the cursor."""


@kernel
def run(
    tables: Tables,
    events: Events,
    partials: PartialMatches,
    output: Output,
    cursor: Cursor,
    until: int,
    finish: bool,
    stack: Ints,
    null: Flags,
) -> int:
    """Processes the events from the cursor on. At the end of a key, and of the last one if `finish`, time passes to
    `until`.

    `stack` and `null` are (STACK,) scratch for scripts.
    """
    window = tables.settings[0].window
    while True:
        if cursor.completed and not release(tables, partials, output, cursor):
            return Status.OUTPUT_FULL
        at_end = cursor.event >= len(events.time)
        if at_end and not finish:
            return Status.DONE
        key_ends = cursor.opened and (at_end or events.key_start[cursor.event])
        if at_end and not key_ends:
            return Status.DONE
        time = until if key_ends else events.time[cursor.event]
        if cursor.live and room_needed(partials, cursor):
            return Status.ROOM_NEEDED
        if cursor.live and window >= 0 and deadline(events, partials, cursor, window) <= time:
            expire(tables, events, partials, cursor, window)
        elif key_ends:
            end_key(tables, partials, cursor, until)
        else:
            process(tables, events, partials, cursor, stack, null)
            if cursor.failure != NO_FAILURE:
                return Status.FAILED
            cursor.event += 1


@inlined
def room_needed(partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether the next step might need more room than there is."""
    most = (cursor.live + 1) * cursor.fanout
    return (
        cursor.free < most
        or len(partials.nodes) - cursor.nodes < most
        or len(partials.completed) - cursor.completed < most + cursor.live
    )


@inlined
def deadline(events: Events, partials: PartialMatches, cursor: Cursor, window: int) -> int:
    """The earliest deadline of the live partial matches."""
    start = events.time[partials.rows[partials.live[cursor.side, 0]].start]
    return start + window if start <= FOREVER - window else FOREVER


@kernel
def expire(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, window: int) -> None:
    """Lets the earliest deadline pass: the partial matches that have it end."""
    cursor.step += 1
    cursor.now = deadline(events, partials, cursor, window)
    live = partials.live[cursor.side]
    start = events.time[partials.rows[live[0]].start]
    count = 0
    while count < cursor.live and events.time[partials.rows[live[count]].start] == start:
        end_partial_match(tables, partials, cursor, live[count])
        count += 1
    drop_first(partials, cursor, count)


@kernel
def end_key(tables: Tables, partials: PartialMatches, cursor: Cursor, until: int) -> None:
    """The key's events and deadlines are over. With more to come (`until` is a time), what is still open is left
    behind.
    """
    cursor.step += 1
    cursor.now = NO_TIME
    if until == FOREVER:
        live = partials.live[cursor.side]
        for i in range(cursor.live):
            end_partial_match(tables, partials, cursor, live[i])
    else:
        cursor.completed = 0
    drop_first(partials, cursor, cursor.live)
    cursor.opened = 0


@inlined
def end_partial_match(tables: Tables, partials: PartialMatches, cursor: Cursor, number: int) -> None:
    row = partials.rows[number]
    if tables.states[row.state].complete:
        complete(partials, cursor, row.start, row.node, row.length)


@kernel
def drop_first(partials: PartialMatches, cursor: Cursor, count: int) -> None:
    """Frees the first `count` live partial matches."""
    if count == 0:
        return
    live = partials.live[cursor.side]
    for i in range(count):
        partials.free[cursor.free] = live[i]
        cursor.free += 1
    for i in range(count, cursor.live):
        live[i - count] = live[i]
    cursor.live -= count


@inlined
def process(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, stack: Ints, null: Flags) -> None:
    """Offers the event at the cursor to every live partial match that it wakes, and to the start state."""
    event = cursor.event
    if cursor.live == 0:
        cursor.nodes = 0  # no partial match is open, so no match waits either
    cursor.opened = 1
    word = events.mask[event] | (np.int64(1) << ALWAYS)
    live = partials.live[cursor.side]
    first = 0
    while first < cursor.live and not wakes(tables, partials, live[first], word):
        first += 1
    starts = wakes(tables, partials, START_ROW, word)
    if first == cursor.live and not starts:
        return
    cursor.step += 1
    cursor.now = events.time[event]
    moved, count = live, first
    if first < cursor.live:
        moved = partials.live[1 - cursor.side]
        for i in range(first):
            moved[i] = live[i]
        for i in range(first, cursor.live):
            if wakes(tables, partials, live[i], word):
                count = move(tables, events, partials, cursor, live[i], event, word, moved, count, stack, null)
            else:
                moved[count] = live[i]
                count += 1
        cursor.side = 1 - cursor.side
    if starts:
        count = move(tables, events, partials, cursor, START_ROW, event, word, moved, count, stack, null)
    cursor.live = count


@inlined
def wakes(tables: Tables, partials: PartialMatches, number: int, word: int) -> bool:
    return word & tables.states[partials.rows[number].state].wake != 0


@kernel
def move(
    tables: Tables,
    events: Events,
    partials: PartialMatches,
    cursor: Cursor,
    number: int,
    event: int,
    word: int,
    moved: Int32s,
    count: int,
    stack: Ints,
    null: Flags,
) -> int:
    """Moves one partial match along the edges whose guards hold; what it becomes is appended to `moved`, which then
    has the returned length. The last edge that goes on takes over the row, others get a copy of it.
    """
    row = partials.rows[number]
    state = tables.states[row.state]
    if state.scripts < state.scripts_end:
        word = run_scripts(tables, events, partials, cursor, number, event, word, stack, null)
    is_start = number == START_ROW
    first, end = state.edges, state.edges_end
    ends, last = last_to_go_on(tables, first, end, word, is_start)
    start = event if is_start else row.start
    node, length = row.node, row.length
    if ends and state.complete and not is_start:
        complete(partials, cursor, start, node, length)
    for i in range(first, end):
        edge = tables.edges[i]
        if not holds(edge, word) or (is_start and edge.stage == IGNORED):
            continue
        taken = node
        if edge.stage != IGNORED:
            taken = append_node(partials, cursor, event, edge.stage, node)
            if edge.completes:
                complete(partials, cursor, start, taken, length + 1)
        if edge.target == FINAL:
            continue
        heir = number if i == last and not is_start else copy_row(partials, cursor, number)
        partials.rows[heir].state = edge.target
        if edge.stage != IGNORED:
            partials.rows[heir].start = start
            partials.rows[heir].node = taken
            partials.rows[heir].length = length + 1
            take_into_slots(tables, events, partials, heir, edge.stage, event)
        moved[count] = heir
        count += 1
    if last < 0 and not is_start:
        partials.free[cursor.free] = number
        cursor.free += 1
    return count


@kernel
def run_scripts(
    tables: Tables,
    events: Events,
    partials: PartialMatches,
    cursor: Cursor,
    number: int,
    event: int,
    word: int,
    stack: Ints,
    null: Flags,
) -> int:
    """The truth bits of the event, with those that the scripts of the partial match's state set."""
    state = tables.states[partials.rows[number].state]
    for i in range(state.scripts, state.scripts_end):
        script = tables.state_scripts[i]
        lifted = tables.scripts[script].lifted
        if lifted == NO_BIT or word >> lifted & 1:
            true, failure = run_script(tables, events, partials, number, event, script, stack, null)
            if failure != NO_FAILURE:
                cursor.failure, cursor.failed_script = failure, script
            elif true:
                word |= np.int64(1) << tables.scripts[script].bit
    return word


@inlined
def last_to_go_on(tables: Tables, first: int, end: int, word: int, is_start: bool) -> tuple[bool, int]:
    """Whether no edge holds, and the last edge that holds and leads to a state that is not final (-1: none)."""
    ends, last = True, -1
    for i in range(first, end):
        edge = tables.edges[i]
        if holds(edge, word) and not (is_start and edge.stage == IGNORED):
            ends = False
            if edge.target != FINAL:
                last = i
    return ends, last


@inlined
def holds(edge: Any, word: int) -> bool:
    return word & edge.require == edge.require and word & edge.forbid == 0


@inlined
def copy_row(partials: PartialMatches, cursor: Cursor, number: int) -> int:
    cursor.free -= 1
    copy = partials.free[cursor.free]
    partials.rows[copy] = partials.rows[number]
    for slot in range(partials.slots.shape[1]):
        partials.slots[copy, slot] = partials.slots[number, slot]
    return copy


@inlined
def append_node(partials: PartialMatches, cursor: Cursor, event: int, stage: int, parent: int) -> int:
    node = cursor.nodes
    entry = partials.nodes[node]
    entry.event, entry.stage, entry.parent = event, stage, parent
    cursor.nodes += 1
    return node


@kernel
def take_into_slots(
    tables: Tables, events: Events, partials: PartialMatches, number: int, stage: int, event: int
) -> None:
    """Brings the slots that look at `stage` up to date with an event it takes."""
    slots = partials.slots[number]
    for i in range(tables.stage_slots[stage], tables.stage_slots[stage + 1]):
        slot = tables.slots[i]
        kind, column, source = slot.kind, slot.column, slot.source
        if kind == SlotKind.LAST:
            slots[i] = event if source < 0 else slots[source]
        elif kind == SlotKind.FIRST:
            if slots[i] < 0 and (source < 0 or slots[source] >= 0):
                slots[i] = event
        elif column >= 0 and events.missing[column, event]:
            continue
        elif kind == SlotKind.COUNT:
            slots[i] += 1
        elif kind == SlotKind.CARRY:
            value = events.values[column, event]
            if sum_overflows(slots[source], value):
                slots[i] += 1 if value > 0 else -1
        elif kind == SlotKind.SUM_I:
            slots.view(np.uint64)[i] += np.uint64(events.values[column, event])  # wraps; CARRY knows
        elif kind == SlotKind.SUM_F:
            slots.view(np.float64)[i] += events.values[column].view(np.float64)[event]
        elif kind == SlotKind.SUM_I_AS_F:
            slots.view(np.float64)[i] += np.float64(events.values[column, event])
        elif slots[i] < 0 or beats(events.values[column], event, slots[i], kind):
            slots[i] = event


@kernel
def beats(values: Ints, event: int, other: int, kind: int) -> bool:
    """Whether an event's value is less (or greater, as `kind` says) than another's; NaN is the greatest."""
    if kind == SlotKind.LEAST_I:
        return values[event] < values[other]
    if kind == SlotKind.GREATEST_I:
        return values[event] > values[other]
    doubles = values.view(np.float64)
    left, right = doubles[event], doubles[other]
    if kind == SlotKind.GREATEST_F:
        left, right = right, left
    return left < right or (np.isnan(right) and not np.isnan(left))


@inlined
def complete(partials: PartialMatches, cursor: Cursor, start: int, node: int, length: int) -> None:
    """Appends a match to those that wait."""
    match = partials.completed[cursor.completed]
    match.start, match.step, match.node, match.length = start, cursor.step, node, length
    cursor.completed += 1


@kernel
def release(tables: Tables, partials: PartialMatches, output: Output, cursor: Cursor) -> bool:
    """Emits what may be emitted; False if the output has no room for it.

    With a skip strategy a match waits while a partial match with an earlier start is open.
    """
    sort(partials, cursor)
    skips = tables.settings[0].skips
    live = partials.live[cursor.side]
    emitted, has_room = 0, True
    while emitted < cursor.completed:
        match = partials.completed[emitted]
        if skips and cursor.live and partials.rows[live[0]].start < match.start:
            break
        has_room = has_room_for(output, cursor, match.length)
        if not has_room:
            break
        last = emit(partials, output, cursor, match.node, match.length)
        emitted += 1
        if skips:
            dropped = 0
            while dropped < cursor.live and partials.rows[live[dropped]].start <= last:
                dropped += 1
            drop_first(partials, cursor, dropped)
            while emitted < cursor.completed and partials.completed[emitted].start <= last:
                emitted += 1
    for i in range(emitted, cursor.completed):
        partials.completed[i - emitted] = partials.completed[i]
    cursor.completed -= emitted
    return has_room


@inlined
def has_room_for(output: Output, cursor: Cursor, length: int) -> bool:
    return cursor.matches < len(output.matches) and cursor.match_events + length <= len(output.events)


@inlined
def emit(partials: PartialMatches, output: Output, cursor: Cursor, node: int, length: int) -> int:
    """Writes a match; the position of its last event."""
    last = partials.nodes[node].event
    at = cursor.match_events + length
    match = output.matches[cursor.matches]
    match.end, match.detected_at = at, cursor.now
    cursor.matches += 1
    cursor.match_events = at
    while node >= 0:
        at -= 1
        output.events[at].event, output.events[at].stage = partials.nodes[node].event, partials.nodes[node].stage
        node = partials.nodes[node].parent
    return last


@inlined
def sort(partials: PartialMatches, cursor: Cursor) -> None:
    """By start, step, most events, earliest events, earliest stages. Insertion: the matches of a step arrive in order
    of their start.
    """
    completed = partials.completed
    for i in range(1, cursor.completed):
        at = i
        while at > 0 and comes_before(partials, at, at - 1):
            swap(completed[at], completed[at - 1])
            at -= 1


@inlined
def swap(left: Any, right: Any) -> None:
    left.start, right.start = right.start, left.start
    left.step, right.step = right.step, left.step
    left.node, right.node = right.node, left.node
    left.length, right.length = right.length, left.length


@kernel
def comes_before(partials: PartialMatches, i: int, j: int) -> bool:
    """Whether the waiting match i is to be emitted before j."""
    left, right = partials.completed[i], partials.completed[j]
    if left.start != right.start:
        return left.start < right.start
    if left.step != right.step:
        return left.step < right.step
    if left.length != right.length:
        return left.length > right.length
    earlier_event = later_event = earlier_stage = False
    nodes, a, b = partials.nodes, left.node, right.node
    while a != b:  # from the last event to the first: the last difference that is seen decides
        if nodes[a].event != nodes[b].event:
            earlier_event = nodes[a].event < nodes[b].event
            later_event = not earlier_event
        if nodes[a].stage != nodes[b].stage:
            earlier_stage = nodes[a].stage < nodes[b].stage
        a, b = nodes[a].parent, nodes[b].parent
    return earlier_event or (earlier_stage and not later_event)


@allocating
def collect(partials: PartialMatches, cursor: Cursor) -> None:
    """Keeps only the nodes that a live partial match or a waiting match reaches; their order stays."""
    nodes = partials.nodes
    reached = np.zeros(cursor.nodes, np.bool_)
    live = partials.live[cursor.side]
    for i in range(cursor.live):
        mark(reached, nodes, partials.rows[live[i]].node)
    for i in range(cursor.completed):
        mark(reached, nodes, partials.completed[i].node)
    moved_to = np.full(cursor.nodes, -1, np.int32)
    count = 0
    for node in range(cursor.nodes):
        if reached[node]:
            moved_to[node] = count
            parent = nodes[node].parent
            append = nodes[count]
            append.event, append.stage = nodes[node].event, nodes[node].stage
            append.parent = moved_to[parent] if parent >= 0 else -1
            count += 1
    cursor.nodes = count
    for i in range(cursor.live):
        partials.rows[live[i]].node = moved_to[partials.rows[live[i]].node]
    for i in range(cursor.completed):
        partials.completed[i].node = moved_to[partials.completed[i].node]


@allocating
def mark(reached: Flags, nodes: Records, node: int) -> None:
    while node >= 0 and not reached[node]:
        reached[node] = True
        node = nodes[node].parent


@allocating
def rebase(tables: Tables, partials: PartialMatches, cursor: Cursor, position: Int32s) -> None:
    """Renames events: the one at `i` is at position[i] from now on. Only events that nodes name are asked for."""
    for node in range(cursor.nodes):
        partials.nodes[node].event = position[partials.nodes[node].event]
    live = partials.live[cursor.side]
    for i in range(cursor.live):
        number = live[i]
        partials.rows[number].start = position[partials.rows[number].start]
        for slot in range(len(tables.slots)):
            if tables.slots[slot].initial < 0 and partials.slots[number, slot] >= 0:
                partials.slots[number, slot] = position[partials.slots[number, slot]]
    for i in range(cursor.completed):
        partials.completed[i].start = position[partials.completed[i].start]
