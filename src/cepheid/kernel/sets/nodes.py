"""Makes and unites sets of partial matches, and frees the nodes that nothing reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import FOREVER, NO_TIME, Int32s
from cepheid.kernel.jit import allocating, inlined
from cepheid.kernel.sets.layout import MANY_OPEN, NO_EVENT, NO_SET, Sets
from cepheid.kernel.stages.layout import Cursor

NODES_PER_EVENT = 64
"""For this many nodes that a count of partial matches visits, one event must pass before the next count."""

_OPENED, _COUNTED = 1, 2


@inlined
def limit_of(window: int, now: int) -> int:
    """A partial match that started at this time or before is out of time at `now`."""
    return now - window if window >= 0 and now >= NO_TIME + window else NO_TIME


@inlined
def deadline_of(window: int, start: int) -> int:
    """When a partial match that started at `start` is out of time. FOREVER if never, or if `start` is NO_TIME."""
    return start + window if window >= 0 and NO_TIME < start <= FOREVER - window else FOREVER


@inlined
def new_node(sets: Sets, cursor: Cursor, event: int, stage: int, before: int, beside: int, start: int) -> int:
    number = cursor.nodes
    node = sets.nodes[number]
    node.event, node.stage, node.before, node.beside, node.start = event, stage, before, beside, start
    if cursor.limited:
        sets.paths[number] = paths_of(sets.paths, before, beside)
    cursor.nodes += 1
    return number


@inlined
def paths_of(paths: Ints, before: int, beside: int) -> int:
    """The number of partial matches that a node represents, from the numbers of its parts."""
    count: int = paths[before] if before != NO_SET else 1
    return min(MANY_OPEN, count + paths[beside]) if beside != NO_SET else count


@inlined
def taken_of(event: int, stage: int) -> int:
    """Event and stage in one word, as in the output, so that one store writes both."""
    return stage << 32 | event


@inlined
def unite(sets: Sets, cursor: Cursor, left: int, right: int) -> int:
    """The union of two sets."""
    if left == NO_SET:
        return right
    a, b = sets.nodes[left].start, sets.nodes[right].start
    if b > a or (b == a and right > left):  # of equal starts the newer set first: an event is nearer in it
        left, right, a = right, left, b
    return new_node(sets, cursor, NO_EVENT, 0, left, right, a)


@inlined
def extend(sets: Sets, cursor: Cursor, event: int, time: int, stage: int, before: int, beside: int, limit: int) -> int:
    """The partial matches of `beside` that are in time, and those of `before` with the event added. If `before` is
    empty, the event is the first of a partial match.
    """
    start = time if before == NO_SET else sets.nodes[before].start
    if beside != NO_SET and sets.nodes[beside].start <= limit:
        beside = NO_SET
    if beside == NO_SET or sets.nodes[beside].start <= start:
        return new_node(sets, cursor, event, stage, before, beside, start)
    alone = new_node(sets, cursor, event, stage, before, NO_SET, start)
    return unite(sets, cursor, beside, alone)


@allocating
def collect(sets: Sets, cursor: Cursor, window: int) -> None:
    """Frees the nodes that represent no partial match in time. The others stay in order."""
    owner = owners(sets, cursor, window, NO_TIME)
    moved_to = np.full(cursor.nodes, NO_SET, np.int32)
    count, base = 0, cursor.base
    for number in range(cursor.nodes):
        if number == cursor.base:
            base = count
        if owner[number] < 0:
            continue
        moved_to[number] = count
        node = sets.nodes[number]
        before, beside = node.before, node.beside
        sets.nodes[count] = node
        if cursor.limited:
            sets.paths[count] = sets.paths[number]
        moved = sets.nodes[count]
        moved.before = moved_to[before] if before != NO_SET else NO_SET
        moved.beside = moved_to[beside] if beside != NO_SET else NO_SET
        count += 1
    cursor.base = min(base, count)
    cursor.nodes = count
    for key in range(sets.heads.shape[0]):
        for state in range(sets.heads.shape[1]):
            if sets.heads[key, state] != NO_SET:
                sets.heads[key, state] = moved_to[sets.heads[key, state]]


@allocating
def owners(sets: Sets, cursor: Cursor, window: int, now: int) -> Int32s:
    """The key whose partial matches each node represents, once time has reached `now`; -1 if all of them are out of
    time, or if nothing reaches the node. After `fork` a node may have several keys; then it is the key with the
    earliest time.
    """
    owner = np.full(cursor.nodes, -1, np.int32)
    for key in range(sets.heads.shape[0]):
        limit = limit_of(window, max(now, sets.now[key]))
        for state in range(sets.heads.shape[1]):
            claim(sets, owner, sets.heads[key, state], key, limit, window, now)
    for number in range(cursor.nodes - 1, -1, -1):  # what a node refers to has smaller numbers
        key = owner[number]
        if key >= 0:
            limit = limit_of(window, max(now, sets.now[key]))
            claim(sets, owner, sets.nodes[number].before, key, limit, window, now)
            claim(sets, owner, sets.nodes[number].beside, key, limit, window, now)
    return owner


@inlined
def claim(sets: Sets, owner: Int32s, number: int, key: int, limit: int, window: int, now: int) -> None:
    if number != NO_SET and sets.nodes[number].start > limit:
        other = owner[number]
        if other < 0 or limit_of(window, max(now, sets.now[other])) > limit:
            owner[number] = key


@allocating
def count_open(sets: Sets, cursor: Cursor, window: int, now: int) -> Ints:
    """(keys,) the number of open partial matches, at most MANY_OPEN, once time has reached `now`."""
    owner = owners(sets, cursor, window, now)
    count, open_ = np.zeros(cursor.nodes, np.int64), np.zeros(len(sets.now), np.int64)
    for number in range(cursor.nodes):
        node = sets.nodes[number]
        if owner[number] < 0:
            continue
        count[number] = paths_of(count, node.before, node.beside)
    for key in range(len(sets.now)):
        for head in sets.heads[key]:
            if head != NO_SET:
                open_[key] = min(MANY_OPEN, open_[key] + count[head])
    return open_


@allocating
def recount(sets: Sets, cursor: Cursor, key: int, limit: int) -> tuple[int, int]:
    """Counts the key's partial matches that started after `limit`; the others are out of time. Updates Sets.paths and
    the cursor. Returns the number, and the first event of the earliest partial match.

    The cost is amortized: before the next count one event must pass for every NODES_PER_EVENT nodes that were visited.
    """
    progress = np.zeros(cursor.nodes, np.int8)
    stack = np.empty(2 * cursor.nodes + sets.heads.shape[1], np.int32)
    depth = reached = 0
    first = NO_EVENT
    for head in sets.heads[key]:
        depth = push(sets, stack, depth, progress, head, limit)
    while depth:
        number = stack[depth - 1]
        node = sets.nodes[number]
        if progress[number] == 0:
            progress[number] = _OPENED
            depth = push(sets, stack, depth, progress, node.before, limit)
            depth = push(sets, stack, depth, progress, node.beside, limit)
            continue
        depth -= 1
        if progress[number] == _COUNTED:
            continue
        progress[number] = _COUNTED
        reached += 1
        beside = NO_SET if node.beside == NO_SET or sets.nodes[node.beside].start <= limit else node.beside
        sets.paths[number] = paths_of(sets.paths, node.before, beside)
        if node.before == NO_SET and (first == NO_EVENT or node.event < first):
            first = node.event
    open_ = 0
    for head in sets.heads[key]:
        if head != NO_SET and progress[head] == _COUNTED:
            open_ = min(MANY_OPEN, open_ + sets.paths[head])
    cursor.open, cursor.patience = open_, reached // NODES_PER_EVENT
    return open_, first


@inlined
def push(sets: Sets, stack: Int32s, depth: int, progress: Any, number: int, limit: int) -> int:
    """Puts a set on the stack if it is in time and not seen yet; returns the new depth."""
    if number == NO_SET or progress[number] != 0 or sets.nodes[number].start <= limit:
        return depth
    stack[depth] = number
    return depth + 1


@allocating
def count_paths(sets: Sets, count: int) -> None:
    """Sets Sets.paths of the first `count` nodes."""
    for number in range(count):
        sets.paths[number] = paths_of(sets.paths, sets.nodes[number].before, sets.nodes[number].beside)


@allocating
def rename_events(sets: Sets, cursor: Cursor, count: int) -> Int32s:
    """Renames the events of nodes to 0, 1, … in their order; returns their former positions, which are below
    `count`.
    """
    position = np.zeros(count, np.int32)
    for number in range(cursor.nodes):
        if sets.nodes[number].event != NO_EVENT:
            position[sets.nodes[number].event] = 1
    held = np.zeros(position.sum(), np.int32)
    renamed = 0
    for event in range(count):
        if position[event]:
            held[renamed], position[event] = event, renamed
            renamed += 1
    for number in range(cursor.nodes):
        node = sets.nodes[number]
        if node.event != NO_EVENT:
            node.event = position[node.event]
    return held
