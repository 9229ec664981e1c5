"""Nodes: makes them, compares occurrences by their events, and frees unused nodes.

Of two occurrences with the same start and end, the one with the latest events is the more recent one. The one with the
earliest events comes first. Only events are compared, including the events that temporal events come after.
"""

from __future__ import annotations

from cepheid.compile.arrays import NONE, Ints, Records
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.occurrences.layout import Forest, NodeKind, OccurrenceStatus, TreeCursor


@inlined
def size_of(nodes: Records, node: int) -> int:
    return 1 if node < 0 else nodes[node].size


@inlined
def new_node(
    forest: Forest, cursor: TreeCursor, kind: int, left: int, right: int, number: int, start: int, end: int
) -> int:
    """Makes a node and returns its number. If there is no room, sets `cursor.shortage`."""
    if cursor.nodes >= len(forest.nodes):
        cursor.shortage = OccurrenceStatus.MORE_NODES
        return 0
    new = cursor.nodes
    node = forest.nodes[new]
    node.kind, node.left, node.right, node.number, node.start, node.end = kind, left, right, number, start, end
    node.size = size_of(forest.nodes, left)
    if kind == NodeKind.JOINED:
        node.size += size_of(forest.nodes, right)
    cursor.nodes += 1
    return new


@inlined
def next_bound(nodes: Records, stack: Ints, bottom: int, top: int) -> tuple[int, int]:
    """The next bound node among those that the stack has from `bottom` to `top`, and those below them; NONE if there is
    none. Also returns the new top.
    """
    while top > bottom:
        top -= 1
        node = stack[top]
        if node < 0:
            continue
        stack[top] = nodes[node].left
        top += 1
        if nodes[node].kind == NodeKind.JOINED:
            stack[top] = nodes[node].right
            top += 1
        if nodes[node].kind == NodeKind.BOUND:
            return node, top
    return NONE, top


@kernel
def list_events(nodes: Records, node: int, members: Ints, first: int) -> int:
    """Writes the positions of the events below a node to `members`, from `first` on, and returns where they end. The
    positions are ascending and distinct.

    The rest of `members` is used as a stack, so there must be room for twice the number of events.
    """
    end, top = first, len(members) - 1
    members[top] = node
    while top < len(members):
        node = members[top]
        top += 1
        if node >= 0:
            if nodes[node].kind == NodeKind.JOINED:
                top -= 1
                members[top] = nodes[node].right
            top -= 1
            members[top] = nodes[node].left
            continue
        position = ~node
        at = end
        while at > first and members[at - 1] > position:
            members[at] = members[at - 1]
            at -= 1
        if at > first and members[at - 1] == position:
            while at < end:
                members[at] = members[at + 1]
                at += 1
            end -= 1
        else:
            members[at] = position
        end += 1
    return end


@inlined
def has_room_to_make(forest: Forest, cursor: TreeCursor, made: int, nodes: int) -> bool:
    """Whether there is room for so many further occurrences and nodes; if not, sets `cursor.shortage`."""
    if cursor.made + made > len(forest.made):
        cursor.shortage = OccurrenceStatus.MORE_MADE
        return False
    if cursor.nodes + nodes > len(forest.nodes):
        cursor.shortage = OccurrenceStatus.MORE_NODES
        return False
    return True


@inlined
def has_room(forest: Forest, cursor: TreeCursor, size: int) -> bool:
    """Whether there is room to list `size` events; if not, sets `cursor.shortage`."""
    if 2 * size + 2 > len(forest.members):
        cursor.shortage, cursor.needed = OccurrenceStatus.MORE_MEMBERS, 2 * size + 2
        return False
    return True


@kernel
def is_later(forest: Forest, cursor: TreeCursor, node: int, other: int) -> bool:
    """Whether `node` has the later events: the last event that only one of the two nodes has is its own."""
    nodes, members = forest.nodes, forest.members
    if node == other or not has_room(forest, cursor, size_of(nodes, node) + size_of(nodes, other)):
        return False
    middle = list_events(nodes, node, members, 0)
    last = list_events(nodes, other, members, middle)
    at, other_at = middle - 1, last - 1
    while at >= 0 and other_at >= middle:
        if members[at] != members[other_at]:
            return bool(members[at] > members[other_at])
        at -= 1
        other_at -= 1
    return at >= 0


@kernel
def is_earlier(forest: Forest, cursor: TreeCursor, node: int, other: int) -> bool:
    """Whether `node` has the earlier events: at the first difference its event is the earlier one, or it has no more
    events.
    """
    nodes, members = forest.nodes, forest.members
    if node == other or not has_room(forest, cursor, size_of(nodes, node) + size_of(nodes, other)):
        return False
    middle = list_events(nodes, node, members, 0)
    last = list_events(nodes, other, members, middle)
    at, other_at = 0, middle
    while at < middle and other_at < last:
        if members[at] != members[other_at]:
            return bool(members[at] < members[other_at])
        at += 1
        other_at += 1
    return other_at < last


@kernel
def collect(forest: Forest, cursor: TreeCursor, lists: int, place: Ints) -> None:
    """Frees the nodes that nothing refers to. Everything found must have been taken before. `place` is scratch, with
    room for all nodes.
    """
    nodes = forest.nodes
    place[: cursor.nodes] = 0
    for number in range(lists):
        entry = forest.lists[number].first
        for at in range(entry, entry + forest.lists[number].count):
            if forest.entries[at].node >= 0:
                place[forest.entries[at].node] = 1
    for at in range(cursor.made):
        if forest.made[at].node >= 0:
            place[forest.made[at].node] = 1
    for node in range(cursor.nodes - 1, -1, -1):
        if place[node]:
            if nodes[node].left >= 0:
                place[nodes[node].left] = 1
            if nodes[node].kind == NodeKind.JOINED and nodes[node].right >= 0:
                place[nodes[node].right] = 1
    kept = 0
    for node in range(cursor.nodes):
        if place[node]:
            moved = nodes[kept]
            moved.kind, moved.size, moved.number = nodes[node].kind, nodes[node].size, nodes[node].number
            moved.start, moved.end = nodes[node].start, nodes[node].end
            left, right = nodes[node].left, nodes[node].right
            moved.left = place[left] if left >= 0 else left
            moved.right = place[right] if right >= 0 else right
            place[node] = kept
            kept += 1
    cursor.nodes = kept
    for number in range(lists):
        entry = forest.lists[number].first
        for at in range(entry, entry + forest.lists[number].count):
            if forest.entries[at].node >= 0:
                forest.entries[at].node = place[forest.entries[at].node]
    for at in range(cursor.made):
        if forest.made[at].node >= 0:
            forest.made[at].node = place[forest.made[at].node]


@kernel
def mark_events(forest: Forest, cursor: TreeCursor, lists: int, held: Int32s) -> None:
    """Sets `held` to 1 for the events that are still needed. It has one entry per event. Call `collect` before."""
    for node in range(cursor.nodes):
        if forest.nodes[node].left < 0:
            held[~forest.nodes[node].left] = 1
        if forest.nodes[node].kind == NodeKind.JOINED and forest.nodes[node].right < 0:
            held[~forest.nodes[node].right] = 1
    for number in range(lists):
        entry = forest.lists[number].first
        for at in range(entry, entry + forest.lists[number].count):
            if forest.entries[at].node < 0:
                held[~forest.entries[at].node] = 1


@kernel
def place_events(forest: Forest, cursor: TreeCursor, lists: int, place: Int32s) -> None:
    """Renames events: replaces each position by its entry in `place`."""
    for node in range(cursor.nodes):
        if forest.nodes[node].left < 0:
            forest.nodes[node].left = ~place[~forest.nodes[node].left]
        if forest.nodes[node].kind == NodeKind.JOINED and forest.nodes[node].right < 0:
            forest.nodes[node].right = ~place[~forest.nodes[node].right]
    for number in range(lists):
        entry = forest.lists[number].first
        for at in range(entry, entry + forest.lists[number].count):
            if forest.entries[at].node < 0:
                forest.entries[at].node = ~place[~forest.entries[at].node]
