"""Evaluates an operator at an instant, from what its operands have just made and from what it remembers.

With the recent policy each operator makes at most one occurrence. Starts and ends are the same as if all were made
first (Carlson and Lisper). Operators then remember little:

    and     the occurrence with the latest start from each side
    minus   the latest start of the right side; also without the recent policy
    then    from the left side, the occurrences for which no other has both a later start and an earlier end; only the
            latest of these if the right side takes no time, and none that ended too long ago if its length is bounded

Without the recent policy, a window around an operator bounds what it remembers. If there is no room, an operator sets
`TreeCursor.shortage` before it remembers anything, and is evaluated again.
"""

from __future__ import annotations

from cepheid.compile.occurrences.tables import NONE, AlgebraTables, Regime
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.occurrences.conditions import holds
from cepheid.kernel.occurrences.layout import Bindings, Forest, NodeKind, OccurrenceStatus, TreeCursor
from cepheid.kernel.occurrences.lists import append, drop_first, ended_before, prune, reserve, started_before
from cepheid.kernel.occurrences.nodes import has_room_to_make, is_later, new_node
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.occurrences.constants import UNBOUNDED, Kind


@inlined
def put(forest: Forest, cursor: TreeCursor, first: int, recent: bool, start: int, node: int) -> None:
    """Adds an occurrence to those that the operator makes, which begin at `first`. If `recent`, there is only one, and
    the more recent one stays.
    """
    if recent and cursor.made > first:
        best = forest.made[first]
        if start > best.start or (start == best.start and is_later(forest, cursor, node, best.node)):
            best.start, best.node = start, node
        return
    if cursor.made >= len(forest.made):
        cursor.shortage = OccurrenceStatus.MORE_MADE
        return
    made = forest.made[cursor.made]
    made.start, made.node = start, node
    cursor.made += 1


@inlined
def put_joined(
    forest: Forest, cursor: TreeCursor, first: int, recent: bool, start: int, node: int, other_start: int, other: int
) -> None:
    """Adds the occurrence that joins both."""
    start = min(start, other_start)
    if recent and cursor.made > first and start < forest.made[first].start:
        return
    joined = new_node(forest, cursor, NodeKind.JOINED, node, other, 0, start, cursor.now)
    if not cursor.shortage:
        put(forest, cursor, first, recent, start, joined)


@inlined
def evaluate(
    tables: AlgebraTables, forest: Forest, bindings: Bindings, cursor: TreeCursor, row: int, first_list: int
) -> None:
    """Makes the operator's occurrences at the instant, and updates what it remembers. `first_list` is the key's first
    list.
    """
    op = tables.operators[row]
    recent = tables.settings[0].regime == Regime.MOST_RECENT
    memory = first_list + op.memory
    if op.kind == Kind.THEN:
        then(tables, forest, cursor, row, memory, recent)
    elif op.kind == Kind.WITHOUT:
        if op.script == NONE and op.filter == NONE:
            without(tables, forest, cursor, row, memory)
        else:
            without_if(tables, forest, bindings, cursor, row, memory)
    elif op.kind == Kind.BOTH:
        both(tables, forest, cursor, row, memory, recent)
    elif op.kind == Kind.EITHER:
        first = cursor.made
        for operand in (op.left, op.right):
            begin = forest.made_from[operand]
            for at in range(begin, begin + forest.made_count[operand]):
                put(forest, cursor, first, recent, forest.made[at].start, forest.made[at].node)
    elif op.kind == Kind.WITHIN:
        begin = forest.made_from[op.left]
        for at in range(begin, begin + forest.made_count[op.left]):
            if cursor.now - forest.made[at].start <= op.number:
                put(forest, cursor, cursor.made, False, forest.made[at].start, forest.made[at].node)
    elif op.kind == Kind.BOUND:
        begin = forest.made_from[op.left]
        for at in range(begin, begin + forest.made_count[op.left]):
            start, left = forest.made[at].start, forest.made[at].node
            node = new_node(forest, cursor, NodeKind.BOUND, left, left, op.number, start, cursor.now)
            put(forest, cursor, cursor.made, False, start, node)
    elif op.kind == Kind.DELAYED:
        delayed(tables, forest, cursor, row, memory, recent)
    else:
        begin = forest.made_from[op.left]
        for at in range(begin, begin + forest.made_count[op.left]):
            node = forest.made[at].node
            if holds(tables, forest, bindings, cursor, row, node, node):
                put(forest, cursor, cursor.made, False, forest.made[at].start, node)
            if needs_room(cursor) or cursor.failure != NO_FAILURE:
                return


@inlined
def then(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, memory: int, recent: bool) -> None:
    op = tables.operators[row]
    left, lefts = forest.made_from[op.left], forest.made_count[op.left]
    if lefts and not reserve(forest, cursor, memory, lefts):
        return
    first = cursor.made
    right = forest.made_from[op.right]
    for at in range(right, right + forest.made_count[op.right]):
        start, node = forest.made[at].start, forest.made[at].node
        before = ended_before(forest, memory, start)
        begin = forest.lists[memory].first
        for place in range(begin + max(before - 1, 0) if recent else begin, begin + before):
            entry = forest.entries[place]
            put_joined(forest, cursor, first, recent, entry.start, entry.node, start, node)
            if cursor.shortage:
                return
    for at in range(left, left + lefts):
        count = forest.lists[memory].count
        last = forest.lists[memory].first + count - 1
        if not recent or not count or forest.made[at].start > forest.entries[last].start:
            append(forest, memory, forest.made[at].start, cursor.now, forest.made[at].node)
    if recent:
        forget_older(forest, memory, cursor.now, op.span, op.window)
    else:
        prune(forest, memory, cursor.now - op.window)


@inlined
def forget_older(forest: Forest, memory: int, now: int, span: int, window: int) -> None:
    """Removes what the left side of a sequence no longer needs, with the recent policy.

    Starts ascend with ends: an occurrence that starts no later than one that ended before it is never the latest. Later
    right sides take no longer than `span`. So of the occurrences that ended before their earliest start, only the last
    is needed. Occurrences that are too old for the window are not needed.
    """
    count = forest.lists[memory].count
    if count > 1 or (count and window < UNBOUNDED):
        ended = count if span == 0 else ended_before(forest, memory, now + 1 - min(span, window))
        old = 0 if window == UNBOUNDED else started_before(forest, memory, now - window)
        drop_first(forest, memory, max(ended - 1, old))


@inlined
def without(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, memory: int) -> None:
    op = tables.operators[row]
    list_ = forest.lists[memory]
    right = forest.made_from[op.right]
    for at in range(right, right + forest.made_count[op.right]):
        list_.latest = max(list_.latest, forest.made[at].start)
    left = forest.made_from[op.left]
    for at in range(left, left + forest.made_count[op.left]):
        if forest.made[at].start > list_.latest:
            put(forest, cursor, cursor.made, False, forest.made[at].start, forest.made[at].node)


@inlined
def needs_room(cursor: TreeCursor) -> bool:
    """Whether there is a shortage other than of answers. The operator is evaluated again in any case; but first it asks
    all its questions.
    """
    return cursor.shortage != OccurrenceStatus.DONE and cursor.shortage != OccurrenceStatus.ASKED


@kernel
def without_if(
    tables: AlgebraTables, forest: Forest, bindings: Bindings, cursor: TreeCursor, row: int, memory: int
) -> None:
    op = tables.operators[row]
    left, right = forest.made_from[op.left], forest.made_from[op.right]
    lefts, rights = forest.made_count[op.left], forest.made_count[op.right]
    if not reserve(forest, cursor, memory, rights):
        return
    before = forest.lists[memory].count
    for at in range(right, right + rights):
        append(forest, memory, forest.made[at].start, cursor.now, forest.made[at].node)
    begin = forest.lists[memory].first
    for at in range(left, left + lefts):
        start, node = forest.made[at].start, forest.made[at].node
        taken = False
        for place in range(begin, begin + forest.lists[memory].count):
            entry = forest.entries[place]
            if entry.start >= start and holds(tables, forest, bindings, cursor, row, node, entry.node):
                taken = True
                break
            if cursor.shortage or cursor.failure != NO_FAILURE:
                break
        if not taken:
            put(forest, cursor, cursor.made, False, start, node)
        if needs_room(cursor) or cursor.failure != NO_FAILURE:
            break
    if cursor.shortage or cursor.failure != NO_FAILURE:
        forest.lists[memory].count = before
        return
    prune(forest, memory, cursor.now - op.window)


@inlined
def both(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, memory: int, recent: bool) -> None:
    op = tables.operators[row]
    left, lefts = forest.made_from[op.left], forest.made_count[op.left]
    right, rights = forest.made_from[op.right], forest.made_count[op.right]
    if not (reserve(forest, cursor, memory, lefts) and reserve(forest, cursor, memory + 1, rights)):
        return
    first = cursor.made
    for at in range(left, left + lefts):
        start, node = forest.made[at].start, forest.made[at].node
        begin = forest.lists[memory + 1].first
        for place in range(begin, begin + forest.lists[memory + 1].count):
            entry = forest.entries[place]
            put_joined(forest, cursor, first, recent, start, node, entry.start, entry.node)
        for other in range(right, right + rights):
            put_joined(forest, cursor, first, recent, start, node, forest.made[other].start, forest.made[other].node)
        if cursor.shortage:
            return
    for other in range(right, right + rights):
        start, node = forest.made[other].start, forest.made[other].node
        begin = forest.lists[memory].first
        for place in range(begin, begin + forest.lists[memory].count):
            entry = forest.entries[place]
            put_joined(forest, cursor, first, recent, entry.start, entry.node, start, node)
        if cursor.shortage:
            return
    remember(forest, cursor, memory, left, lefts, recent, op.window)
    remember(forest, cursor, memory + 1, right, rights, recent, op.window)


@inlined
def remember(
    forest: Forest, cursor: TreeCursor, number: int, first: int, count: int, recent: bool, window: int
) -> None:
    """Remembers everything that an operand has made. With the recent policy, remembers only the latest start so far."""
    for at in range(first, first + count):
        start = forest.made[at].start
        list_ = forest.lists[number]
        if recent and list_.count:
            if start < forest.entries[list_.first].start:
                continue
            drop_first(forest, number, 1)
        append(forest, number, start, cursor.now, forest.made[at].node)
    if not recent:
        prune(forest, number, cursor.now - window)


@inlined
def delayed(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, memory: int, recent: bool) -> None:
    """Sets timers, and makes the occurrences that are due. Timers are in the order of their times, because all have the
    same delay.
    """
    op = tables.operators[row]
    left, lefts = forest.made_from[op.left], forest.made_count[op.left]
    if not reserve(forest, cursor, memory, lefts):
        return
    most = ended_before(forest, memory, cursor.now + 1) + lefts
    if not has_room_to_make(forest, cursor, most, lefts):
        return
    time = cursor.now + op.number
    for at in range(left, left + lefts):
        base = forest.made[at].node
        node = new_node(forest, cursor, NodeKind.DELAYED, base, base, op.number, time, time)
        append(forest, memory, time, time, node)
    due = ended_before(forest, memory, cursor.now + 1)
    first = cursor.made
    begin = forest.lists[memory].first
    for place in range(begin, begin + due):
        put(forest, cursor, first, recent, forest.entries[place].start, forest.entries[place].node)
    drop_first(forest, memory, due)
