"""Decides which events forbid a match: all accepted events in the scope of a negation, whether or not the clock has
reached them.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.intervals.tables import IntervalTables, ScopeNumber
from cepheid.kernel.intervals.check import script_true, span
from cepheid.kernel.intervals.join import EARLIEST, LATEST, candidate, candidates
from cepheid.kernel.intervals.layout import IntervalEvents, JoinCursor, OpenMatches, Scratch, Stores
from cepheid.kernel.intervals.lists import List, doubled, move_entries
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.intervals.constants import Guard

NEVER_FORBIDDEN = np.iinfo(np.int64).min
"""Below every horizon, even if the delay is unlimited."""
ALWAYS_OPEN = LATEST


@kernel
def is_forbidden(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, scratch: Scratch, cursor: JoinCursor, number: int
) -> bool:
    """Whether an accepted event forbids the bound match by negation `number`; sets the cursor's failure."""
    if not set_scope(tables, events, scratch, number):
        return False
    positives = tables.settings[0].positives
    variable, row = positives + number, scratch.levels[0]
    key = events.key[scratch.slots[0, 0]]
    candidates(tables, events, stores, scratch, 0, variable, key, positives * positives + number)
    for place in range(row[0], row[1]):
        if forbids(tables, events, scratch, cursor, number, candidate(stores, row[2], place)):
            return True
        if cursor.failure != NO_FAILURE:
            return False
    return False


@kernel
def forbids(
    tables: IntervalTables, events: IntervalEvents, scratch: Scratch, cursor: JoinCursor, number: int, position: int
) -> bool:
    """Whether the event at `position` forbids the bound match, whose scope is set; sets the cursor's failure."""
    positives = tables.settings[0].positives
    row = scratch.levels[0]
    start, end = events.start[position], events.end[position]
    if start < row[3] or start > row[4] or end < row[5] or end > row[6]:
        return False
    for v in range(positives):
        if scratch.slots[0, v] == position:
            return False
    negation = tables.negations[number]
    scratch.slots[0, positives + number] = position
    for i in range(negation.order, negation.order_end):
        difference = tables.differences[i]
        if endpoint(events, scratch, difference.left) - endpoint(events, scratch, difference.right) > difference.most:
            return False
    for i in range(negation.scripts, negation.scripts_end):
        if not script_true(tables, events, scratch, cursor, tables.negation_scripts[i]):
            return False
    return True


@kernel
def endpoint(events: IntervalEvents, scratch: Scratch, number: int) -> int:
    position = scratch.slots[0, number // 2]
    return events.end[position] if number & 1 else events.start[position]


@kernel
def set_scope(tables: IntervalTables, events: IntervalEvents, scratch: Scratch, number: int) -> bool:
    """Sets the bounds of level 0 to the times that an event must have to forbid the bound match. False if there are
    none.
    """
    negation, settings = tables.negations[number], tables.settings[0]
    start_low, start_high, end_low, end_high = EARLIEST, LATEST, EARLIEST, LATEST
    if negation.scope >= 0:
        left_start, left_end = span(events, scratch, negation.left)
        right_start, right_end = span(events, scratch, negation.right)
        after_left, before_right = left_start + 1, right_start - 1
        if negation.left == 0:
            after_left = left_end = in_window(tables, events, scratch)[1] - settings.window
        elif negation.right == 0:
            before_right = right_start = in_window(tables, events, scratch)[0] + settings.window
        if negation.scope == ScopeNumber.START_BETWEEN:
            start_low, start_high = after_left, before_right
        elif negation.scope == ScopeNumber.GAP:
            start_low, end_high = left_end, right_start
        elif negation.scope == ScopeNumber.SEQ_BETWEEN:
            start_low, start_high, end_high = max(left_end, after_left), before_right, right_start
        elif negation.scope == ScopeNumber.INTERSECTS_GAP:
            start_high, end_low = before_right, left_end + 1
        elif negation.scope == ScopeNumber.DURING_SPAN:
            start_low, end_high = min(left_start, right_start), max(left_end, right_end)
    own = 2 * (settings.positives + number)
    for i in range(negation.order, negation.order_end):
        difference = tables.differences[i]
        of_left, of_right = difference.left // 2 * 2 == own, difference.right // 2 * 2 == own
        if of_left and of_right:
            continue  # about the event alone: `forbids` checks it
        if of_left:
            most = endpoint(events, scratch, difference.right) + difference.most
            if difference.left == own:
                start_high = min(start_high, most)
            else:
                end_high = min(end_high, most)
        elif of_right:
            least = endpoint(events, scratch, difference.left) - difference.most
            if difference.right == own:
                start_low = max(start_low, least)
            else:
                end_low = max(end_low, least)
        elif endpoint(events, scratch, difference.left) - endpoint(events, scratch, difference.right) > difference.most:
            return False
    row = scratch.levels[0]
    row[3], row[4], row[5], row[6] = start_low, min(start_high, end_high), max(end_low, start_low), end_high
    return row[3] <= row[4] and row[5] <= row[6]


@inlined
def everyone(positives: int) -> int:
    """The set of all variables of the match."""
    return (1 << positives) - 1


@kernel
def in_window(tables: IntervalTables, events: IntervalEvents, scratch: Scratch) -> tuple[int, int]:
    """The first start of the bound match, and its last end or start: what the window bounds."""
    settings = tables.settings[0]
    first, last = span(events, scratch, everyone(settings.positives))
    if settings.of_starts:
        last = first
        for v in range(settings.positives):
            last = max(last, events.start[scratch.slots[0, v]])
    return first, last


@kernel
def forbidden_until(tables: IntervalTables, events: IntervalEvents, scratch: Scratch, end: int) -> int:
    """The greatest lateness time of an event that could forbid the bound match, which ends at `end`."""
    until = NEVER_FORBIDDEN
    for number in range(len(tables.negations)):
        negation = tables.negations[number]
        if negation.guard == Guard.FOREVER:
            return ALWAYS_OPEN
        if negation.guard == Guard.BEFORE_RIGHT:
            found = span(events, scratch, negation.right)[0] - 1
        elif negation.guard == Guard.RIGHT:
            found = span(events, scratch, negation.right)[0]
        elif negation.guard == Guard.WINDOW:
            found = in_window(tables, events, scratch)[0] + tables.settings[0].window
        elif negation.guard == Guard.PARTS:
            found = max(span(events, scratch, negation.left)[1], span(events, scratch, negation.right)[1])
        else:
            found = end
        until = max(until, found)
    return until


# Which open matches an event may forbid


@kernel
def bind(open_: OpenMatches, scratch: Scratch, row: int) -> None:
    for v in range(open_.events.shape[1]):
        scratch.slots[0, v] = open_.events[row, v]


@kernel
def set_scopes(tables: IntervalTables, events: IntervalEvents, open_: OpenMatches, scratch: Scratch, row: int) -> None:
    """Sets the scopes of the match in `row`, which is bound."""
    for number in range(len(tables.negations)):
        scope = open_.scopes[row, number]
        if set_scope(tables, events, scratch, number):
            for i in range(4):
                scope[i] = scratch.levels[0, 3 + i]
        else:
            scope[0], scope[1] = 1, 0


@kernel
def set_all_scopes(
    tables: IntervalTables, events: IntervalEvents, open_: OpenMatches, scratch: Scratch, count: int
) -> None:
    """Sets the scopes of the first `count` matches."""
    for row in range(count):
        bind(open_, scratch, row)
        set_scopes(tables, events, open_, scratch, row)


@kernel
def first_in_scope(open_: OpenMatches, list_: List, number: int, start: int) -> int:
    """The first place in a key's list of a scope whose greatest start is not before `start`."""
    low, high = list_.first, list_.first + list_.count
    while low < high:
        middle = (low + high) // 2
        if open_.scopes[open_.by_scope[middle], number, 1] < start:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def place_in_scopes(events: IntervalEvents, open_: OpenMatches, cursor: JoinCursor, row: int) -> None:
    """Adds an open match, whose scopes are set, to the lists in which events find the matches that they may forbid."""
    key = events.key[open_.events[row, 0]]
    for number in range(open_.lists.shape[1]):
        least, greatest = open_.scopes[row, number, 0], open_.scopes[row, number, 1]
        if least > greatest:
            continue
        list_ = open_.lists[key, number]
        if list_.count == list_.room:
            drop_finished(open_, list_)
            if 2 * list_.count >= list_.room:
                former = list_.first
                cursor.scoped = doubled(list_, cursor.scoped)
                move_entries(open_.by_scope, former, list_)
        # After scopes with the same greatest start, so that nothing is moved in a stream in order.
        place, stop = first_in_scope(open_, list_, number, greatest + 1), list_.first + list_.count
        for i in range(stop, place, -1):
            open_.by_scope[i] = open_.by_scope[i - 1]
        open_.by_scope[place] = row
        list_.count += 1


@kernel
def drop_finished(open_: OpenMatches, list_: List) -> None:
    """Removes finished matches from a list."""
    kept = list_.first
    for i in range(list_.first, list_.first + list_.count):
        row = open_.by_scope[i]
        if open_.rows[row].alive:
            open_.by_scope[kept] = row
            kept += 1
    list_.count = kept - list_.first
