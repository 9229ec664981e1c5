"""Emits complete matches in order. A match waits while a partial match with an earlier start is open."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.tables import SkipKind, Tables
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.kernel.stages.layout import (
    MATCHED,
    NEGATED,
    START_ROW,
    Cursor,
    FateCode,
    Output,
    PartialMatches,
    Starts,
)
from cepheid.kernel.stages.observed.record import record_emitted, record_end
from cepheid.kernel.stages.rows import drop_first

NOTHING_TO_SKIP_TO, SKIPS_TO_START, TOO_MANY_PARTIAL_MATCHES, TOO_MANY_MATCHES = -1, -2, -3, -4
"""Failures besides those of scripts."""


@inlined
def complete(partials: PartialMatches, cursor: Cursor, start: int, node: int, length: int) -> None:
    """Adds a match to the waiting ones."""
    add(partials, cursor, start, node, length, MATCHED)
    cursor.found += 1


@inlined
def add(partials: PartialMatches, cursor: Cursor, start: int, node: int, length: int, outcome: int) -> None:
    """Adds a match to the waiting ones, or what has ended without one, which never waits for an earlier partial
    match.
    """
    place = cursor.completed
    match = partials.completed[place]
    match.start, match.step, match.node, match.length = start, cursor.step, node, length
    match.timeout = outcome
    cursor.completed += 1
    if place > 0:
        above = partials.completed[(place - 1) // 2]
        if above.timeout != outcome or above.start >= start:  # mostly the matches come in order
            rise(partials, place)


@kernel
def negate(partials: PartialMatches, cursor: Cursor, number: int, stage: int) -> None:
    """Adds a partial match that an event of a negated stage ends."""
    # Inlined, it makes `move` a tenth slower, also where no one asks for it.
    row = partials.rows[number]
    add(partials, cursor, row.start, row.node, row.length, NEGATED + stage)


@inlined
def release(tables: Tables, partials: PartialMatches, output: Output, cursor: Cursor, starts: Starts | None) -> bool:
    """Emits what may be emitted; False if the output has no room for it, or the cursor has a failure.

    With a skip strategy a match waits while a partial match with an earlier start is open.
    """
    settings = tables.settings[0]
    if cursor.found <= settings.most_matches:
        if waits(tables, partials, cursor):
            cursor.found = 0
            return True
        nothing_else = settings.skip == SkipKind.NO_SKIP and not settings.distinct
        nothing_else = nothing_else and not settings.timeouts and not settings.no_match
        if nothing_else and are_in_order(partials, cursor.completed):
            cursor.found = 0
            return emit_all(partials, output, cursor, starts)
    return release_one_by_one(tables, partials, output, cursor, starts)


@inlined
def waits(tables: Tables, partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether the first of the waiting matches has to wait."""
    match = partials.completed[0]
    may_wait = tables.settings[0].skip != SkipKind.NO_SKIP and not match.timeout
    return may_wait and cursor.live and earliest_start(partials) < match.start


@kernel
def release_one_by_one(
    tables: Tables, partials: PartialMatches, output: Output, cursor: Cursor, starts: Starts | None
) -> bool:
    """The same for matches that skip others, or are over the limit, or may be the same as others."""
    settings = tables.settings[0]
    if cursor.found > settings.most_matches:
        limit_matches(tables, partials, cursor, starts)
        if cursor.failure != NO_FAILURE:
            return False
    cursor.found = 0
    while cursor.completed:
        if waits(tables, partials, cursor):
            return True
        match = partials.completed[0]
        if not has_room_for(output, cursor, match.length):
            return False
        kept_from = 0 if match.timeout else skip_position(tables, partials, cursor)
        if cursor.failure != NO_FAILURE:
            return False
        emit(partials, output, cursor, match, starts)
        if settings.distinct or match.timeout:
            while cursor.completed > 1 and next_is_the_same(partials, cursor):
                remove_first(partials, cursor)
        remove_first(partials, cursor)
        while cursor.live and earliest_start(partials) < kept_from:
            if starts is not None:
                row = partials.rows[partials.links[START_ROW].next]
                record_end(starts, partials, row.start, row.node, FateCode.SKIPPED, NONE)
            drop_first(partials, cursor, 1)
        while cursor.completed and partials.completed[0].start < kept_from:
            if starts is not None:
                skipped = partials.completed[0]
                record_end(starts, partials, skipped.start, skipped.node, FateCode.SKIPPED, NONE)
            remove_first(partials, cursor)
    return True


@inlined
def skip_position(tables: Tables, partials: PartialMatches, cursor: Cursor) -> int:
    """The position that the next match skips to: partial matches that started before it are dropped."""
    settings, match = tables.settings[0], partials.completed[0]
    if settings.skip == SkipKind.NO_SKIP:
        return 0
    if settings.skip == SkipKind.NEXT:
        return match.start + 1
    if settings.skip == SkipKind.PAST_LAST_EVENT:
        return partials.nodes[match.node].event + 1
    node, target = match.node, -1
    while node >= 0 and (target < 0 or settings.skip == SkipKind.FIRST):
        if partials.nodes[node].stage == settings.skip_stage:
            target = partials.nodes[node].event
        node = partials.nodes[node].parent
    if settings.skip_checked and target < 0:
        cursor.failure = NOTHING_TO_SKIP_TO
    elif settings.skip_checked and target == match.start:
        cursor.failure = SKIPS_TO_START
    return max(target, 0)


@inlined
def next_is_the_same(partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether the second waiting match has the same events and stages as the first. Equal matches come one after the
    other.
    """
    # As constants these would have types of their own, and Numba would compile `comes_before` for each.
    first: Any = np.int64(0)
    second: Any = np.int64(1)
    third: Any = np.int64(2)
    other = third if cursor.completed > 2 and comes_before(partials, third, second) else second
    return partials.completed[first].step == partials.completed[other].step and not comes_before(partials, first, other)


@inlined
def earliest_start(partials: PartialMatches) -> int:
    return partials.rows[partials.links[START_ROW].next].start


@inlined
def has_room_for(output: Output, cursor: Cursor, length: int) -> bool:
    return cursor.matches < len(output.end) and cursor.match_events + length <= len(output.event)


@inlined
def emit(partials: PartialMatches, output: Output, cursor: Cursor, match: Any, starts: Starts | None) -> None:
    """Writes a waiting match."""
    at, number = cursor.match_events + match.length, cursor.matches
    output.end[number], output.detected_at[number], output.outcome[number] = at, cursor.now, match.timeout
    if starts is not None:
        record_emitted(starts, match.start, match.timeout)
    cursor.matches += 1
    cursor.match_events = at
    node = match.node
    while node >= 0:
        at -= 1
        entry = partials.nodes[node]
        output.event[at], output.stage[at] = entry.event, entry.stage
        node = entry.parent


@inlined
def are_in_order(partials: PartialMatches, count: int) -> bool:
    """Whether the first `count` waiting matches are stored in order. Mostly they are, because partial matches are
    visited in order of their start.
    """
    completed = partials.completed
    place: Any = np.int64(1)
    while place < count and (
        completed[place - 1].start < completed[place].start or comes_before(partials, place - 1, place)
    ):
        place += 1
    return place >= count


@inlined
def emit_all(partials: PartialMatches, output: Output, cursor: Cursor, starts: Starts | None) -> bool:
    """Writes the waiting matches as they are stored. False if the output has no room for one of them."""
    completed, count = partials.completed, cursor.completed
    for i in range(count):
        if not has_room_for(output, cursor, completed[i].length):
            for j in range(i, count):
                swap(completed[j - i], completed[j])
            cursor.completed = count - i
            return False
        emit(partials, output, cursor, completed[i], starts)
    cursor.completed = 0
    return True


@kernel
def limit_matches(tables: Tables, partials: PartialMatches, cursor: Cursor, starts: Starts | None) -> None:
    """Drops the matches of this step that are over the limit, the earliest start first, or fails."""
    settings, completed = tables.settings[0], partials.completed
    if not settings.limits_drop:
        cursor.failure = TOO_MANY_MATCHES
        return
    more = cursor.found - settings.most_matches
    cursor.dropped_matches += more
    count = cursor.completed
    while cursor.completed:
        remove_first(partials, cursor)  # moves it to the end of the heap's array, which is then in reverse order
    for i in range(count // 2):
        swap(completed[i], completed[count - 1 - i])
    for i in range(count):
        if more and completed[i].step == cursor.step and not completed[i].timeout:
            more -= 1
            if starts is not None:
                dropped = completed[i]
                record_end(starts, partials, dropped.start, dropped.node, FateCode.OVER_LIMIT, NONE)
        else:
            swap(completed[cursor.completed], completed[i])
            cursor.completed += 1


# The waiting matches are a binary heap: the first match is at 0, and match i comes before 2 i + 1 and 2 i + 2.


@kernel
def rise(partials: PartialMatches, at: int) -> None:
    """Moves a match towards the front of the heap, until the match above it comes before it."""
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
    at: Any = np.int64(0)
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
    left.timeout, right.timeout = right.timeout, left.timeout


@kernel
def comes_before(partials: PartialMatches, i: int, j: int) -> bool:
    """What has ended without a match comes first; then by start, step, most events, earliest events, earliest
    stages.
    """
    left, right = partials.completed[i], partials.completed[j]
    if left.timeout != right.timeout:
        return left.timeout > right.timeout
    if left.start != right.start:
        return left.start < right.start
    if left.step != right.step:
        return left.step < right.step
    if left.length != right.length:
        return left.length > right.length
    earlier_event = later_event = earlier_stage = False
    nodes, a, b = partials.nodes, left.node, right.node
    while a != b:  # from the last event to the first, so the last difference found decides
        if nodes[a].event != nodes[b].event:
            earlier_event = nodes[a].event < nodes[b].event
            later_event = not earlier_event
        if nodes[a].stage != nodes[b].stage:
            earlier_stage = nodes[a].stage < nodes[b].stage
        a, b = nodes[a].parent, nodes[b].parent
    return earlier_event or (earlier_stage and not later_event)
