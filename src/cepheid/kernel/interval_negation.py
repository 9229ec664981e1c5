"""Which events forbid a match: all accepted ones in the scope of a negation, whether or not time has passed them."""

from __future__ import annotations

import numpy as np

from cepheid.compile.interval import SCOPES, Guard, IntervalTables
from cepheid.kernel.interpret import NO_FAILURE
from cepheid.kernel.interval_check import script_true, span_end, span_start
from cepheid.kernel.interval_join import LEAST, MOST, candidates
from cepheid.kernel.interval_layout import IntervalEvents, JoinCursor, Scratch, Stores
from cepheid.kernel.jit import kernel
from cepheid.lang.interval_values import Scope

NEVER_FORBIDDEN = np.iinfo(np.int64).min
"""Below every horizon, also that of an unlimited delay."""
ALWAYS_OPEN = MOST

_START_BETWEEN = SCOPES[Scope.START_BETWEEN]
_GAP = SCOPES[Scope.GAP]
_SEQ_BETWEEN = SCOPES[Scope.SEQ_BETWEEN]
_INTERSECTS_GAP = SCOPES[Scope.INTERSECTS_GAP]
_DURING_SPAN = SCOPES[Scope.DURING_SPAN]


@kernel
def is_forbidden(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, scratch: Scratch, cursor: JoinCursor, number: int
) -> bool:
    """Whether an accepted event forbids the bound match by negation `number`; sets the cursor's failure."""
    if not set_scope(tables, events, scratch, number):
        return False
    variable = tables.settings[0].positives + number
    row = scratch.levels[0]
    candidates(events, stores, scratch.levels, 0, variable, events.key[scratch.slots[0, 0]])
    for place in range(row[0], row[1]):
        candidate = stores.by_end[variable, place] if row[2] else stores.by_start[variable, place]
        if forbids(tables, events, scratch, cursor, number, candidate):
            return True
        if cursor.failure != NO_FAILURE:
            return False
    return False


@kernel
def forbids(
    tables: IntervalTables, events: IntervalEvents, scratch: Scratch, cursor: JoinCursor, number: int, candidate: int
) -> bool:
    """Whether an event forbids the bound match, whose scope is set."""
    positives = tables.settings[0].positives
    row = scratch.levels[0]
    start, end = events.start[candidate], events.end[candidate]
    if start < row[3] or start > row[4] or end < row[5] or end > row[6]:
        return False
    for v in range(positives):
        if scratch.slots[0, v] == candidate:
            return False
    negation = tables.negations[number]
    scratch.slots[0, positives + number] = candidate
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
    """Sets the bounds of level 0 to where an event forbids the bound match; False if it cannot anywhere."""
    negation = tables.negations[number]
    start_low, start_high, end_low, end_high = LEAST, MOST, LEAST, MOST
    if negation.scope >= 0:
        left_start, left_end = span_start(events, scratch, negation.left), span_end(events, scratch, negation.left)
        right_start, right_end = span_start(events, scratch, negation.right), span_end(events, scratch, negation.right)
        if negation.scope == _START_BETWEEN:
            start_low, start_high = left_start + 1, right_start - 1
        elif negation.scope == _GAP:
            start_low, end_high = left_end, right_start
        elif negation.scope == _SEQ_BETWEEN:
            start_low, start_high, end_high = max(left_end, left_start + 1), right_start - 1, right_start
        elif negation.scope == _INTERSECTS_GAP:
            start_high, end_low = right_start - 1, left_end + 1
        elif negation.scope == _DURING_SPAN:
            start_low, end_high = min(left_start, right_start), max(left_end, right_end)
    own = 2 * (tables.settings[0].positives + number)
    for i in range(negation.order, negation.order_end):
        difference = tables.differences[i]
        of_left, of_right = difference.left // 2 * 2 == own, difference.right // 2 * 2 == own
        if of_left and of_right:
            continue  # about the event alone: `forbids` looks at it
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


@kernel
def forbidden_until(tables: IntervalTables, events: IntervalEvents, scratch: Scratch, end: int) -> int:
    """The greatest key of an event that could forbid the bound match, which ends at `end`."""
    until = NEVER_FORBIDDEN
    for number in range(len(tables.negations)):
        negation = tables.negations[number]
        if negation.guard == Guard.FOREVER:
            return ALWAYS_OPEN
        if negation.guard == Guard.BEFORE_RIGHT:
            found = span_start(events, scratch, negation.right) - 1
        elif negation.guard == Guard.RIGHT:
            found = span_start(events, scratch, negation.right)
        elif negation.guard == Guard.PARTS:
            found = max(span_end(events, scratch, negation.left), span_end(events, scratch, negation.right))
        else:
            found = end
        until = max(until, found)
    return until
