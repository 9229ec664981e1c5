"""Checks whether bound events satisfy the pattern; `kernel.intervals.reference` is the definition."""

from __future__ import annotations

from cepheid.compile.intervals.tables import Check, IntervalTables
from cepheid.kernel.intervals.layout import IntervalEvents, JoinCursor, Scratch
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.conditions import run_script
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.intervals.constants import FREE

BEFORE, AFTER, MEET, MET_BY, OVERLAP, OVERLAPPED_BY, START, STARTED_BY = range(8)
DURING, CONTAIN, FINISH, FINISHED_BY, EQUAL = range(8, 13)


@inlined
def relation_number(start: int, end: int, other_start: int, other_end: int) -> int:
    """The number of the relation that holds between two intervals, as in `compile.intervals.compiled`."""
    if end < other_start:
        return BEFORE
    if start > other_end:
        return AFTER
    if start == other_start:
        if end == other_end:
            return EQUAL
        return START if end < other_end else STARTED_BY
    if end == other_end:
        return FINISH if start > other_start else FINISHED_BY
    if end == other_start:
        return MEET
    if start == other_end:
        return MET_BY
    if start < other_start:
        return OVERLAP if end < other_end else CONTAIN
    return DURING if end < other_end else OVERLAPPED_BY


@inlined
def span(events: IntervalEvents, scratch: Scratch, variables: int) -> tuple[int, int]:
    """The earliest start and the latest end among the events of a set of variables."""
    start, end, v = FREE, -FREE, 0
    while variables >> v:
        if variables >> v & 1:
            position = scratch.slots[0, v]
            start, end = min(start, events.start[position]), max(end, events.end[position])
        v += 1
    return start, end


@inlined
def checks_hold(
    tables: IntervalTables, events: IntervalEvents, scratch: Scratch, cursor: JoinCursor, first: int, bound: int
) -> bool:
    """Whether the checks hold that first become possible when `bound` events are bound. The event of variable `first`
    is the one that arrived. Sets the cursor's failure.
    """
    level = first * tables.order.shape[0] + bound - 1
    for number in range(tables.check_at[level], tables.check_at[level + 1]):
        check = tables.checks[number]
        if check.kind == Check.SCRIPT:
            if not script_true(tables, events, scratch, cursor, check.script):
                return False
        elif check.kind == Check.RELATION:
            start, end = span(events, scratch, check.left)
            other_start, other_end = span(events, scratch, check.right)
            found = relation_number(start, end, other_start, other_end)
            if not check.relations >> found & 1:
                return False
        elif check.kind == Check.COUNTS:
            if not counts_agree(tables, events, scratch, number):
                return False
        elif span(events, scratch, check.left) > span(events, scratch, check.right):
            return False
    return True


@kernel
def script_true(
    tables: IntervalTables, events: IntervalEvents, scratch: Scratch, cursor: JoinCursor, script: int
) -> bool:
    """Whether the script is true for the bound events; sets the cursor's failure."""
    true, failure = run_script(tables, events, scratch, 0, 0, script, scratch.stack)
    if failure != NO_FAILURE:
        cursor.failure, cursor.failed_script = failure, script
    return true


@kernel
def counts_agree(tables: IntervalTables, events: IntervalEvents, scratch: Scratch, number: int) -> bool:
    """Whether each of the five relations to the right part holds for as many events of the left part as `counts`
    says.
    """
    check = tables.checks[number]
    start, end = span(events, scratch, check.right)
    contain, finished_by, meet, overlap, started = 0, 0, 0, 0, 0
    v = 0
    while check.left >> v:
        if check.left >> v & 1:
            position = scratch.slots[0, v]
            found = relation_number(events.start[position], events.end[position], start, end)
            contain += found == CONTAIN
            finished_by += found == FINISHED_BY
            meet += found == MEET
            overlap += found == OVERLAP
            started += found == START
        v += 1
    counts = check.counts
    return (
        contain == counts[0]
        and finished_by == counts[1]
        and meet == counts[2]
        and overlap == counts[3]
        and started == counts[4]
    )
