"""Records what becomes of each start in the compiled kernel; it equals `observed.key_matcher`.

The kernel calls these functions where its argument `starts` is not None. If it is, Numba compiles the kernel without
the calls, so the kernel that detects matches contains none of it. Functions that are called in any case and do nothing
without `starts` were tried: they made that kernel 10 to 20 % slower.
"""

from __future__ import annotations

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import Events
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.stages.layout import (
    MATCHED,
    MATCHED_START,
    NO_END,
    START_ROW,
    Cursor,
    FateCode,
    PartialMatches,
    Starts,
)
from cepheid.kernel.stages.lookup.deadline import end_of_window, time_since


@inlined
def begin_moment(starts: Starts) -> None:
    """Begins an event, a deadline or the end of the key."""
    starts.moment[0] += 1


@inlined
def record_taken(starts: Starts, start: int, stage: int) -> None:
    """A stage has taken an event of a partial match."""
    starts.taken[start, stage] = True


@inlined
def record_emitted(starts: Starts, start: int, outcome: int) -> None:
    """A match is emitted, or what has ended without one."""
    if outcome == MATCHED:
        starts.ends[start].fate = MATCHED_START


@kernel
def record_end(starts: Starts, partials: PartialMatches, start: int, node: int, fate: int, by: int) -> None:
    """A partial match, or a match that was not emitted, has ended. `node` has its last event."""
    end = starts.ends[start]
    if end.fate == MATCHED_START:
        return
    reached, moment = reached_by(starts, partials, node), starts.moment[0]
    if end.fate != NO_END:
        if reached < end.reached:
            return
        first = end.fate < fate or (end.fate == fate and end.by <= by)
        if reached == end.reached and moment == end.moment and first:
            return
    end.moment, end.fate, end.reached, end.by = moment, fate, reached, by


@inlined
def reached_by(starts: Starts, partials: PartialMatches, node: int) -> int:
    """The last of the pattern's stages up to the node. In a group an event of an earlier stage may come after it."""
    reached, last = partials.nodes[node].stage, starts.taken.shape[1] - 1
    while node >= 0 and reached < last:
        reached = max(reached, partials.nodes[node].stage)
        node = partials.nodes[node].parent
    return reached


@inlined
def record_deadline(
    starts: Starts, tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, number: int
) -> None:
    """The deadline of a partial match passes. If it is a match, nothing is recorded."""
    row = partials.rows[number]
    state = tables.states[row.state]
    if row.whole >= 0 or not (state.complete or state.pending):
        over = end_of_window(tables, events, partials, number) == cursor.now
        fate = FateCode.OUT_OF_TIME if over else FateCode.GAP
        record_end(starts, partials, row.start, row.node, fate, NONE)


@kernel
def record_broken(
    starts: Starts,
    tables: Tables,
    events: Events,
    partials: PartialMatches,
    number: int,
    event: int,
    word: int,
    stop: int,
) -> None:
    """An event has ended a partial match without a match. `stop` is the negated stage that forbids it, or -1."""
    row = partials.rows[number]
    fate, by = FateCode.BROKEN, NONE
    until = until_of(starts, row.state, word)
    if stop >= 0:
        fate, by = FateCode.FORBIDDEN, stop
    elif until >= 0:
        fate, by = FateCode.UNTIL, until
    elif comes_too_late(tables, row.state, word, time_since(events, partials, row.node, event)):
        fate = FateCode.GAP
    record_end(starts, partials, row.start, row.node, fate, by)


@inlined
def until_of(starts: Starts, state: int, word: int) -> int:
    """The number of the first `until` that the state's edges read and that is true; -1 for none."""
    for loop in range(starts.untils.shape[1]):
        if word & starts.untils[state, loop]:
            return starts.taken.shape[1] + loop
    return NONE


@inlined
def comes_too_late(tables: Tables, number: int, word: int, waited: int) -> bool:
    """Whether a stage would have taken the event sooner."""
    state = tables.states[number]
    for i in range(state.edges, state.edges_end):
        edge = tables.edges[i]
        late = edge.stage >= 0 and 0 <= edge.window <= waited
        if late and word & edge.require == edge.require and word & edge.forbid == 0:
            return True
    return False


@inlined
def record_last(starts: Starts, tables: Tables, partials: PartialMatches, number: int) -> None:
    """A partial match ends because no more events come. If it is a match, nothing is recorded."""
    row = partials.rows[number]
    if row.whole >= 0 or not tables.states[row.state].complete:
        record_end(starts, partials, row.start, row.node, FateCode.STILL_OPEN, NONE)


@kernel
def record_all_open(starts: Starts, partials: PartialMatches, cursor: Cursor) -> None:
    """All live partial matches, and the matches that wait, are still open when the key closes."""
    number = partials.links[START_ROW].next
    while number != START_ROW:
        row = partials.rows[number]
        record_end(starts, partials, row.start, row.node, FateCode.STILL_OPEN, NONE)
        number = partials.links[number].next
    for i in range(cursor.completed):
        match = partials.completed[i]
        record_end(starts, partials, match.start, match.node, FateCode.STILL_OPEN, NONE)
