"""The short way for an event that completes one match and no more, as in most patterns without skip-till-any.

Its nodes are a chain, from which the match is written. `kernel.sets.listing` gives the same: it first makes a graph of
all that the event completes, which takes several times as long for one match.
"""

from __future__ import annotations

from cepheid.compile.arrays import Records
from cepheid.kernel.jit import inlined
from cepheid.kernel.sets.layout import NO_EVENT, NO_SET, NOTHING_TAKEN, Graph, SetOutput, Sets
from cepheid.kernel.sets.nodes import taken_of
from cepheid.kernel.stages.layout import Cursor


@inlined
def write_lone_match(sets: Sets, graph: Graph, output: SetOutput, cursor: Cursor, limit: int) -> bool:
    """Writes the match that the last event completes, of those that started after `limit`. False, with nothing written,
    if there may be several, or if there is no room.
    """
    if cursor.roots != 1:
        return False
    root, tail = graph.roots[0].set, cursor.tail
    length = chain_length(sets.nodes, root, limit)
    end = cursor.match_events + length + (tail != NOTHING_TAKEN)
    if length == 0 or end > len(output.taken) or cursor.matches == len(output.end):
        return False
    at = end - 1
    if tail != NOTHING_TAKEN:
        output.taken[at] = tail
        at -= 1
    number = root
    while number != NO_SET:
        node = sets.nodes[number]
        output.taken[at] = taken_of(node.event, node.stage)
        at -= 1
        number = node.before
    output.end[cursor.matches], output.detected_at[cursor.matches] = end, cursor.now
    cursor.matches, cursor.match_events = cursor.matches + 1, end
    return True


@inlined
def chain_length(nodes: Records, root: int, limit: int) -> int:
    """The number of events in the only partial match of the set that started after `limit`; 0 if there may be
    several.
    """
    length, number = 0, root
    while number != NO_SET:
        node = nodes[number]
        if node.event == NO_EVENT or (node.beside != NO_SET and nodes[node.beside].start > limit):
            return 0
        length += 1
        number = node.before
    return length
