"""Snoop's contexts, as `contexts_reference` defines them. Occurrences that wait for a partner are consumed from the
front of their list.
"""

from __future__ import annotations

from cepheid.compile.occurrences.tables import AlgebraTables, Regime
from cepheid.kernel.jit import kernel
from cepheid.kernel.occurrences.layout import Forest, NodeKind, OccurrenceStatus, TreeCursor
from cepheid.kernel.occurrences.lists import append, drop_first, ended_before, reserve
from cepheid.kernel.occurrences.nodes import has_room_to_make, is_earlier, new_node
from cepheid.kernel.occurrences.operators import put, put_joined
from cepheid.plan.occurrences.constants import Kind


@kernel
def evaluate_in_context(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, first_list: int) -> None:
    """As `evaluate`, for BOTH, THEN and EITHER."""
    op = tables.operators[row]
    memory = first_list + op.memory
    lefts, rights = forest.made_count[op.left], forest.made_count[op.right]
    if not in_order(forest, cursor, forest.made_from[op.left], lefts, forest.made_from[op.right], rights):
        return
    if op.kind == Kind.EITHER:
        for i in range(lefts + rights):
            made = forest.made[forest.order[i] >> 1]
            put(forest, cursor, cursor.made, False, made.start, made.node)
        return
    others = memory + 1 if op.kind == Kind.BOTH else memory  # in a sequence nothing waits on the right
    if not (reserve(forest, cursor, memory, lefts) and reserve(forest, cursor, others, rights)):
        return
    waiting = forest.lists[memory].count + (forest.lists[others].count if others != memory else 0)
    most = waiting + 2 * (lefts + rights)
    if not has_room_to_make(forest, cursor, most, most):
        return
    for i in range(lefts + rights):
        side = forest.order[i] & 1
        made = forest.made[forest.order[i] >> 1]
        offer(forest, cursor, tables.settings[0].regime, op.kind, memory, side, made.start, made.node)


@kernel
def offer(
    forest: Forest, cursor: TreeCursor, regime: int, kind: int, memory: int, side: int, start: int, node: int
) -> None:
    """Makes the occurrences that an occurrence from one side completes. It consumes what waits on the other side, or
    waits itself.
    """
    own, others = memory + side, memory + 1 - side
    waits = kind == Kind.BOTH or side == 0
    if kind == Kind.BOTH:
        ready = forest.lists[others].count
    else:
        ready = ended_before(forest, others, start) if side == 1 else 0
    first = forest.lists[others].first
    if regime == Regime.SNOOP_RECENT:
        if ready:
            entry = forest.entries[first + ready - 1]
            put_joined(forest, cursor, cursor.made, False, entry.start, entry.node, start, node)
        if waits:
            drop_first(forest, own, forest.lists[own].count)
            append(forest, own, start, cursor.now, node)
        return
    if ready == 0:
        if waits:
            append(forest, own, start, cursor.now, node)
        return
    used = 1 if regime == Regime.CHRONICLE else ready
    for place in range(first, first + used):
        entry = forest.entries[place]
        if regime == Regime.CUMULATIVE:
            start = min(start, entry.start)
            # Joined in this way, the members are listed in order, except for the last.
            node = new_node(forest, cursor, NodeKind.JOINED, node, entry.node, 0, start, cursor.now)
        else:
            put_joined(forest, cursor, cursor.made, False, entry.start, entry.node, start, node)
    if regime == Regime.CUMULATIVE:
        put(forest, cursor, cursor.made, False, start, node)
    drop_first(forest, others, used)


@kernel
def in_order(forest: Forest, cursor: TreeCursor, left: int, lefts: int, right: int, rights: int) -> bool:
    """Sorts what the operands have made into Forest.order, each as 2 * place + side: by start, left before right, then
    by events. False if there is no room.
    """
    if lefts + rights > len(forest.order):
        cursor.shortage, cursor.needed = OccurrenceStatus.MORE_MEMBERS, lefts + rights
        return False
    order, made = forest.order, forest.made
    for i in range(lefts + rights):
        new = 2 * (left + i) if i < lefts else 2 * (right + i - lefts) + 1
        at = i
        while at > 0:
            before = order[at - 1]
            start, other = made[new >> 1].start, made[before >> 1].start
            if start > other or (start == other and new & 1 > before & 1):
                break
            same = start == other and new & 1 == before & 1
            if same and not is_earlier(forest, cursor, made[new >> 1].node, made[before >> 1].node):
                break
            order[at] = before
            at -= 1
        order[at] = new
    return cursor.shortage == 0
