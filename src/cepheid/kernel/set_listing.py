"""The matches that an event completes, listed in their order: by start, most events first, then earliest events.

The nodes know what comes before an event, the order asks for what comes after: so the nodes that are reached from the
complete sets are turned around into a graph whose edges lead on, of which each lies on some match. Walking it from a
start, earliest events first, gives the matches of one length in order; each vertex knows which lengths its ways on
have, so that no step leads to nowhere. Listing costs as much as what is listed, and needs room for one match.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.tables import Ints, Records
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.layout import Cursor
from cepheid.kernel.set_layout import NO_EVENT, NO_SET, NOTHING_TAKEN, Graph, SetOutput, Sets
from cepheid.kernel.set_nodes import taken_of

MANY = 63
"""Lengths from here on are one bit."""


@kernel
def gather(sets: Sets, graph: Graph, cursor: Cursor, limit: int) -> bool:
    """Makes the graph of the matches that started after `limit`; False if there is no room for it."""
    if not find_vertices(sets, graph, cursor, limit):
        return False
    sort_vertices(graph, cursor)
    turn_around(graph, cursor)
    cursor.group = cursor.start = -1
    cursor.length = cursor.depth = 0
    return True


@kernel
def find_vertices(sets: Sets, graph: Graph, cursor: Cursor, limit: int) -> bool:
    """Lists the nodes with events that are reached, and what comes before each; what may be last is before the first of
    them.
    """
    nodes, before, vertices = sets.nodes, graph.before, graph.vertices
    if cursor.roots > len(before):
        return False
    for i in range(cursor.roots):
        before[i] = graph.roots[i].set
    place, end, expanded = 0, cursor.roots, 0
    cursor.vertices = 0
    while True:
        while place < end:
            node = nodes[before[place]]
            if node.beside != NO_SET and nodes[node.beside].start > limit:
                if end == len(before):
                    return False
                before[end] = node.beside
                end += 1
            if node.event == NO_EVENT:
                before[place] = node.before
                continue
            if cursor.vertices + 1 == len(vertices):
                return False
            before[place] = vertex_of(sets, graph, cursor, before[place])
            place += 1
        vertices[expanded].before = end
        if expanded == cursor.vertices:
            return True
        behind = nodes[vertices[expanded].node].before
        if behind != NO_SET:
            if end == len(before):
                return False
            before[end] = behind
            end += 1
        expanded += 1


@inlined
def vertex_of(sets: Sets, graph: Graph, cursor: Cursor, number: int) -> int:
    """The vertex of a node, made if it is the first time that the node is reached."""
    known = sets.vertex[number]
    if known < cursor.vertices and graph.vertices[known].node == number:
        return known
    made, node = graph.vertices[cursor.vertices], sets.nodes[number]
    made.node, made.event, made.starts = number, node.event, node.before == NO_SET
    made.taken = taken_of(node.event, node.stage)
    made.after_end, made.longest, made.lengths = 0, -1, 0
    sets.vertex[number] = cursor.vertices
    cursor.vertices += 1
    return cursor.vertices - 1


@kernel
def sort_vertices(graph: Graph, cursor: Cursor) -> None:
    """Orders the vertices by node: those of a key are made in the order of their events. They were found in a few runs,
    each from the latest to the earliest, which are merged until one is left.
    """
    count, side = cursor.vertices, 0
    for i in range(count):
        graph.order[0, i] = count - 1 - i
    while run_end(graph, side, 0, count) < count:
        end = 0
        while end < count:
            first, middle = end, run_end(graph, side, end, count)
            end = run_end(graph, side, middle, count)
            merge(graph, side, first, middle, end)
        side = 1 - side
    cursor.side = side


@inlined
def run_end(graph: Graph, side: int, first: int, count: int) -> int:
    """Where the ascending run that begins at `first` ends."""
    order, vertices = graph.order[side], graph.vertices
    end = min(first + 1, count)
    while end < count and vertices[order[end - 1]].node < vertices[order[end]].node:
        end += 1
    return end


@inlined
def merge(graph: Graph, side: int, first: int, middle: int, end: int) -> None:
    """Merges two runs to the other side."""
    order, merged, vertices = graph.order[side], graph.order[1 - side], graph.vertices
    left, right = first, middle
    for at in range(first, end):
        if right == end or (left < middle and vertices[order[left]].node < vertices[order[right]].node):
            merged[at] = order[left]
            left += 1
        else:
            merged[at] = order[right]
            right += 1


@kernel
def turn_around(graph: Graph, cursor: Cursor) -> None:
    """Makes Graph.after out of Graph.before, and finds how many events may follow each vertex."""
    vertices, before, after, order = graph.vertices, graph.before, graph.after, graph.order[cursor.side]
    for i in range(vertices[0].before):
        vertices[before[i]].lengths |= 1
        vertices[before[i]].longest = max(0, vertices[before[i]].longest)
    for place in range(cursor.vertices - 1, -1, -1):
        later = vertices[order[place]]
        lengths = later.lengths << 1 | (later.lengths & np.int64(-1) << MANY)
        for i in range(later.before, vertices[order[place] + 1].before):
            vertex = vertices[before[i]]
            vertex.lengths |= lengths
            vertex.longest = max(vertex.longest, later.longest + 1)
            vertex.after_end += 1
    total = 0
    for i in range(cursor.vertices):
        total += vertices[i].after_end
        vertices[i].after = vertices[i].after_end = total - vertices[i].after_end
    cursor.ambiguous = 0
    for place in range(cursor.vertices):
        number = order[place]
        for i in range(vertices[number].before, vertices[number + 1].before):
            vertex = vertices[before[i]]
            if vertex.after_end > vertex.after and same_event(vertices, after[vertex.after_end - 1], number):
                cursor.ambiguous = 1
            after[vertex.after_end] = number
            vertex.after_end += 1


@inlined
def same_event(vertices: Records, left: int, right: int) -> bool:
    return vertices[left].event == vertices[right].event


@inlined
def may_follow(vertex: Any, count: int) -> bool:
    """Whether a match may end `count` events after the vertex."""
    if count < MANY:
        return vertex.lengths >> count & 1 != 0
    return vertex.lengths < 0 and count <= vertex.longest


@kernel
def list_matches(graph: Graph, output: SetOutput, cursor: Cursor) -> bool:
    """Writes the matches of the graph; False if the output is full, then it can be called again."""
    vertices, after, steps = graph.vertices, graph.after, graph.steps
    while cursor.depth or next_start(graph, output, cursor):
        length, depth = cursor.length, cursor.depth
        while depth:
            left = length - depth  # vertices that are still to come
            if left <= 1:
                cursor.depth = depth
                if not write(graph, output, cursor):
                    return False
                depth -= 1
                continue
            step = steps[depth - 1]
            place, end = step.after, step.after_end
            while place < end and not may_follow(vertices[after[place]], left - 1):
                place += 1
            step.after = place + 1
            if place < end:
                add_step(graph, depth, after[place])
                depth += 1
            else:
                depth -= 1
        cursor.depth = 0
    return True


@inlined
def add_step(graph: Graph, depth: int, number: int) -> None:
    step, vertex = graph.steps[depth], graph.vertices[number]
    step.after, step.after_end = vertex.after, vertex.after_end
    graph.path[depth] = vertex.taken


@inlined
def write(graph: Graph, output: SetOutput, cursor: Cursor) -> bool:
    """Writes the path as it is or, if one vertex is missing, with each that may be the last; False: there is no room
    for them.
    """
    step, at, matches = graph.steps[cursor.depth - 1], cursor.match_events, cursor.matches
    most = most_written(step)
    if len(output.end) - matches < most or len(output.taken) - at < most * (cursor.length + 1):
        return False
    if cursor.depth == cursor.length:
        at = write_path(graph.path, output.taken, at)
        matches += 1
    else:
        for place in range(step.after, step.after_end):
            vertex = graph.vertices[graph.after[place]]
            if vertex.lengths & 1:
                graph.path[cursor.length - 1] = vertex.taken
                at = write_path(graph.path, output.taken, at)
                matches += 1
    cursor.match_events, cursor.matches = at, matches
    return True


@inlined
def most_written(step: Any) -> int:
    """The most matches that are written at once."""
    return step.after_end - step.after + 1


@inlined
def write_path(path: Ints, taken: Ints, at: int) -> int:
    """A loop up to a mark: with a count it is made for long paths, and for short ones much slower."""
    i, word = 0, path[0]
    while word != NOTHING_TAKEN:
        taken[at + i] = word
        i += 1
        word = path[i]
    return at + i


@kernel
def next_start(graph: Graph, output: SetOutput, cursor: Cursor) -> bool:
    """Puts the next start on the path: of the same event and length, else of less, else of the next event."""
    vertices, order = graph.vertices, graph.order[cursor.side]
    place = cursor.start + 1
    while True:
        if cursor.length:
            event = vertices[order[cursor.group]].event
            while place < cursor.vertices and vertices[order[place]].event == event:
                vertex = vertices[order[place]]
                if vertex.starts and may_follow(vertex, cursor.length - 1):
                    cursor.start, cursor.depth = place, 1
                    add_step(graph, 0, order[place])
                    return True
                place += 1
            end_group(output, cursor)
            begin_group(graph, cursor, cursor.group, cursor.length - 1)
        if cursor.length == 0 and not next_group(graph, cursor):
            return False
        place = cursor.group


@inlined
def begin_group(graph: Graph, cursor: Cursor, group: int, length: int) -> None:
    cursor.group, cursor.length = group, length
    cursor.group_matches, cursor.group_events = cursor.matches, cursor.match_events
    graph.path[length] = cursor.tail
    graph.path[length + 1] = NOTHING_TAKEN


@inlined
def end_group(output: SetOutput, cursor: Cursor) -> None:
    """Finishes the matches of one start and length."""
    length = cursor.length + (cursor.tail != NOTHING_TAKEN)
    if cursor.ambiguous:
        sort_group(output, cursor, length)
    end = cursor.group_events
    for match in range(cursor.group_matches, cursor.matches):
        end += length
        output.end[match], output.detected_at[match] = end, cursor.now


@inlined
def next_group(graph: Graph, cursor: Cursor) -> bool:
    """Goes to the next event that is the first of matches."""
    vertices, order = graph.vertices, graph.order[cursor.side]
    event = vertices[order[cursor.group]].event if cursor.group >= 0 else NO_EVENT
    first = cursor.group + 1
    while first < cursor.vertices and (vertices[order[first]].event == event or not vertices[order[first]].starts):
        first += 1
    if first == cursor.vertices:
        return False
    longest, place = 0, first
    while place < cursor.vertices and same_event(vertices, order[first], order[place]):
        if vertices[order[place]].starts:
            longest = max(longest, vertices[order[place]].longest + 1)
            if place > first:
                cursor.ambiguous = 1
        place += 1
    begin_group(graph, cursor, first, longest)
    return True


# Where an event may stand under several stages, the ways of one start and length are not in order yet.


@kernel
def sort_group(output: SetOutput, cursor: Cursor, length: int) -> None:
    """Sorts the matches that were written last, all of one start and length: a heap, the last match at its top."""
    taken, count = output.taken[cursor.group_events : cursor.match_events], cursor.matches - cursor.group_matches
    for top in range(count // 2 - 1, -1, -1):
        sink(taken, length, top, count)
    for last in range(count - 1, 0, -1):
        swap(taken, length, 0, last)
        sink(taken, length, 0, last)


@kernel
def sink(taken: Ints, length: int, at: int, count: int) -> None:
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and comes_before(taken, length, below, below + 1):
            below += 1
        if not comes_before(taken, length, at, below):
            return
        swap(taken, length, at, below)
        at = below


@inlined
def swap(taken: Ints, length: int, left: int, right: int) -> None:
    for i in range(length):
        a, b = left * length + i, right * length + i
        taken[a], taken[b] = taken[b], taken[a]


@kernel
def comes_before(taken: Ints, length: int, left: int, right: int) -> bool:
    """By events, then by stages."""
    earlier_stage = later_stage = False
    for i in range(length):
        a, b = taken[left * length + i], taken[right * length + i]
        if np.int32(a) != np.int32(b):  # the events
            return np.int32(a) < np.int32(b)
        earlier_stage |= a < b and not later_stage
        later_stage |= b < a and not earlier_stage
    return earlier_stage
