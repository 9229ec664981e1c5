"""Matches that are complete: emitted in their order, held back while a partial match with an earlier start is open."""

from __future__ import annotations

from typing import Any

from cepheid.compile.tables import Tables
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.layout import Cursor, Output, PartialMatches
from cepheid.kernel.rows import drop_first


@inlined
def complete(partials: PartialMatches, cursor: Cursor, start: int, node: int, length: int) -> None:
    """Adds a match to those that wait."""
    match = partials.completed[cursor.completed]
    match.start, match.step, match.node, match.length = start, cursor.step, node, length
    cursor.completed += 1
    rise(partials, cursor.completed - 1)


@kernel
def release(tables: Tables, partials: PartialMatches, output: Output, cursor: Cursor) -> bool:
    """Emits what may be emitted; False if the output has no room for it.

    With a skip strategy a match waits while a partial match with an earlier start is open.
    """
    skips = tables.settings[0].skips
    while cursor.completed:
        match = partials.completed[0]
        if skips and cursor.live and earliest_start(partials, cursor) < match.start:
            return True
        if not has_room_for(output, cursor, match.length):
            return False
        last = emit(partials, output, cursor, match.node, match.length)
        remove_first(partials, cursor)
        if skips:
            while cursor.live and earliest_start(partials, cursor) <= last:
                drop_first(partials, cursor, 1)
            while cursor.completed and partials.completed[0].start <= last:
                remove_first(partials, cursor)
    return True


@inlined
def earliest_start(partials: PartialMatches, cursor: Cursor) -> int:
    return partials.rows[partials.live[cursor.side, cursor.first]].start


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


# The matches that wait are a binary heap: the first of all is at 0, and `i` comes before 2 i + 1 and 2 i + 2.


@kernel
def rise(partials: PartialMatches, at: int) -> None:
    """Moves a match towards the front until none that comes later is before it."""
    completed = partials.completed
    while at > 0:
        above = (at - 1) // 2
        if not comes_before(partials, at, above):
            return
        swap(completed[at], completed[above])
        at = above


@kernel
def remove_first(partials: PartialMatches, cursor: Cursor) -> None:
    completed = partials.completed
    cursor.completed -= 1
    swap(completed[0], completed[cursor.completed])
    at = 0
    while 2 * at + 1 < cursor.completed:
        below = 2 * at + 1
        if below + 1 < cursor.completed and comes_before(partials, below + 1, below):
            below += 1
        if not comes_before(partials, below, at):
            return
        swap(completed[at], completed[below])
        at = below


@inlined
def swap(left: Any, right: Any) -> None:
    left.start, right.start = right.start, left.start
    left.step, right.step = right.step, left.step
    left.node, right.node = right.node, left.node
    left.length, right.length = right.length, left.length


@kernel
def comes_before(partials: PartialMatches, i: int, j: int) -> bool:
    """By start, step, most events, earliest events, earliest stages."""
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
