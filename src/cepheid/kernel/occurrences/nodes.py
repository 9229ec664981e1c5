"""Nodes: how occurrences are joined and compared, and how those that nothing is made of any more are forgotten.

Of two that start and end alike the one with the latest events is the more recent, and the one with the earliest events
the first; events are looked at alone, also those that temporal ones come behind.
"""

from __future__ import annotations

from cepheid.compile.stages.tables import Ints, Records
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.occurrences.layout import Forest, NodeKind, TreeCursor, TreeStatus
from cepheid.kernel.stages.layout import Int32s


@inlined
def size_of(nodes: Records, node: int) -> int:
    return 1 if node < 0 else nodes[node].size


@inlined
def new_node(
    forest: Forest, cursor: TreeCursor, kind: int, left: int, right: int, number: int, start: int, end: int
) -> int:
    """Its number; where there is no room `cursor.short` says so."""
    if cursor.nodes >= len(forest.nodes):
        cursor.short = TreeStatus.MORE_NODES
        return 0
    number_of = cursor.nodes
    node = forest.nodes[number_of]
    node.kind, node.left, node.right, node.number, node.start, node.end = kind, left, right, number, start, end
    node.size = size_of(forest.nodes, left)
    if kind == NodeKind.JOINED:
        node.size += size_of(forest.nodes, right)
    cursor.nodes += 1
    return number_of


@kernel
def list_events(nodes: Records, node: int, members: Ints, first: int) -> int:
    """Writes the positions of the events below a node from `first` on, in order, each once; where they end.

    What is behind them is used as a stack: there must be twice the room for all of them.
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
def has_room(forest: Forest, cursor: TreeCursor, size: int) -> bool:
    """Whether so many events can be listed."""
    if 2 * size + 2 > len(forest.members):
        cursor.short, cursor.needed = TreeStatus.MORE_MEMBERS, 2 * size + 2
        return False
    return True


@kernel
def is_later(forest: Forest, cursor: TreeCursor, node: int, other: int) -> bool:
    """Whether a node has the later events: the last that one of them has alone."""
    nodes, members = forest.nodes, forest.members
    if node == other or not has_room(forest, cursor, size_of(nodes, node) + size_of(nodes, other)):
        return False
    middle = list_events(nodes, node, members, 0)
    last = list_events(nodes, other, members, middle)
    at, behind = middle - 1, last - 1
    while at >= 0 and behind >= middle:
        if members[at] != members[behind]:
            return bool(members[at] > members[behind])
        at -= 1
        behind -= 1
    return at >= 0


@kernel
def is_earlier(forest: Forest, cursor: TreeCursor, node: int, other: int) -> bool:
    """Whether a node has the earlier events: the first that one of them has alone, and none before any."""
    nodes, members = forest.nodes, forest.members
    if node == other or not has_room(forest, cursor, size_of(nodes, node) + size_of(nodes, other)):
        return False
    middle = list_events(nodes, node, members, 0)
    last = list_events(nodes, other, members, middle)
    at, behind = 0, middle
    while at < middle and behind < last:
        if members[at] != members[behind]:
            return bool(members[at] < members[behind])
        at += 1
        behind += 1
    return behind < last


@kernel
def collect(forest: Forest, cursor: TreeCursor, lists: int, place: Ints) -> None:
    """Forgets the nodes that nothing is made of; nothing is found that is not taken away yet. `place` is scratch, with
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
    """Sets those of `held`, one for each event, that are still looked at, once nodes are collected."""
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
    """Gives all events their places as positions."""
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
