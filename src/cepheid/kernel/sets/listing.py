"""Lists the matches that an event completes, in order: by start, most events first, then earliest events.

Nodes know what comes before an event, but the order needs what comes after it. So the nodes that the complete sets
reach are turned into a graph whose edges lead forward; each edge is part of some match. A walk from a start, earliest
events first, gives the matches of one length in order. Each vertex knows the lengths of the paths from it, so no step
leads to a dead end. Listing takes time in proportion to what is listed, and memory for one match.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.sets.layout import MANY_OPEN, NO_EVENT, NO_SET, NOTHING_TAKEN, Graph, Numbers, SetOutput, Sets
from cepheid.kernel.sets.nodes import taken_of
from cepheid.kernel.stages.layout import Cursor

NO_EDGES, NO_VERTICES = -1, -2
"""Returned in place of a number of vertices, if there is no room for edges or for vertices."""

MANY = 63
"""Lengths from here on share one bit."""


@kernel
def gather(sets: Sets, graph: Graph, cursor: Cursor, limit: int) -> int:
    """Makes the graph of the matches that started after `limit`. Returns its number of vertices, or NO_EDGES or
    NO_VERTICES if there is no room for it.
    """
    if cursor.roots > len(graph.before):
        return NO_EDGES
    for i in range(cursor.roots):
        graph.before[i] = graph.roots[i].set
    count = find_vertices(sets.nodes, sets.vertex, graph.vertices, graph.before, cursor.roots, limit)
    if count < 0:
        return count
    cursor.vertices = count
    cursor.side = sort_vertices(graph.vertices, graph.order, count)
    cursor.found = turn_around(graph.vertices, graph.before, graph.after, graph.order[cursor.side], count)
    cursor.ambiguous = has_twins(graph.vertices, graph.after, graph.order[cursor.side], count)
    cursor.group = cursor.group_end = cursor.start = cursor.length = cursor.depth = 0
    cursor.group_matches = cursor.matches
    return count


# These functions take only a few plain arrays: arguments that do not fit into registers cost as much as the work.


@kernel
def find_vertices(nodes: Records, known: Numbers, vertices: Records, before: Numbers, end: int, limit: int) -> int:
    """Makes a vertex for each reached node with an event, and returns their number, or NO_EDGES or NO_VERTICES.

    At first before[:end] are the complete sets. They are replaced by the vertices that may be last in a match. After
    them come, for each vertex, the vertices that may be directly before it.
    """
    place = expanded = count = 0
    while True:
        while place < end:
            number = before[place]
            node = nodes[number]
            if node.beside != NO_SET and nodes[np.uint32(node.beside)].start > limit:
                if end == len(before):
                    return NO_EDGES
                before[end] = node.beside
                end += 1
            if node.event == NO_EVENT:
                before[place] = node.before
                continue
            vertex = known[number]
            if vertex >= count or vertices[vertex].node != number:
                if count + 1 == len(vertices):
                    return NO_VERTICES
                vertex = known[number] = count
                made = vertices[count]
                made.node, made.event, made.starts = number, node.event, node.before == NO_SET
                made.taken = taken_of(node.event, node.stage)
                made.after_end, made.longest, made.lengths, made.matches = 0, -1, 0, 0
                count += 1
            vertices[vertex].after_end += 1
            before[place] = vertex
            place += 1
        vertices[expanded].before = end
        if expanded == count:
            return count
        earlier = nodes[vertices[expanded].node].before
        if earlier != NO_SET:
            if end == len(before):
                return NO_EDGES
            before[end] = earlier
            end += 1
        expanded += 1


@kernel
def sort_vertices(vertices: Records, order: Numbers, count: int) -> int:
    """Orders the vertices by node, as the nodes of a key are made in the order of their events. The vertices were found
    in a few runs, each from the latest to the earliest. These runs are merged until one is left. Returns the side of
    `order` that has it.
    """
    side = 0
    for i in range(count):
        order[0, i] = count - 1 - i
    while run_end(vertices, order[side], 0, count) < count:
        end = 0
        while end < count:
            first, middle = end, run_end(vertices, order[side], end, count)
            end = run_end(vertices, order[side], middle, count)
            merge(vertices, order[side], order[1 - side], first, middle, end)
        side = 1 - side
    return side


@inlined
def run_end(vertices: Records, order: Numbers, first: int, count: int) -> int:
    """Where the ascending run that begins at `first` ends."""
    end = min(first + 1, count)
    while end < count and vertices[order[end - 1]].node < vertices[order[end]].node:
        end += 1
    return end


@inlined
def merge(vertices: Records, order: Numbers, merged: Numbers, first: int, middle: int, end: int) -> None:
    left, right = first, middle
    for at in range(first, end):
        if right == end or (left < middle and vertices[order[left]].node < vertices[order[right]].node):
            merged[at] = order[left]
            left += 1
        else:
            merged[at] = order[right]
            right += 1


@kernel
def turn_around(vertices: Records, before: Numbers, after: Numbers, order: Numbers, count: int) -> int:
    """Fills in `after` from `before`, finds how many vertices may follow each vertex, and returns the number of
    matches. When called, Vertex.after_end is how often the vertex is in `before`; it becomes the end of the vertex's
    part of `after`.
    """
    end = found = 0
    for i in range(count):
        end += vertices[i].after_end
        vertices[i].after = vertices[i].after_end = end
    for i in range(vertices[0].before):
        last = vertices[before[i]]
        last.lengths, last.longest, last.matches = 1, 0, last.matches + 1
    for place in range(count - 1, -1, -1):  # the latest first, so that its lengths are known
        number = order[place]
        later = vertices[number]
        lengths, longest = later.lengths << 1 | (later.lengths & np.int64(-1) << MANY), later.longest + 1
        for i in range(later.before, vertices[number + 1].before):
            vertex = vertices[before[i]]
            vertex.lengths |= lengths
            vertex.longest = max(vertex.longest, longest)
            vertex.matches = min(MANY_OPEN, vertex.matches + later.matches)
            vertex.after -= 1
            after[vertex.after] = number
        if later.starts:
            found = min(MANY_OPEN, found + later.matches)
    return found


@kernel
def has_twins(vertices: Records, after: Numbers, order: Numbers, count: int) -> bool:
    """Whether two vertices of one event come after the same vertex."""
    twins = False
    for place in range(1, count):
        twins |= same_event(vertices, order[place - 1], order[place])
    if not twins:
        return False
    for i in range(count):
        for place in range(vertices[i].after + 1, vertices[i].after_end):
            if same_event(vertices, after[place - 1], after[place]):
                return True
    return False


@inlined
def same_event(vertices: Records, left: int, right: int) -> bool:
    return vertices[left].event == vertices[right].event


@inlined
def may_follow(vertex: Any, count: int) -> bool:
    """Whether a match may end `count` vertices after this vertex. For a cursor: after a vertex of its group, see
    `next_group`.
    """
    if count < MANY:
        return vertex.lengths >> count & 1 != 0
    return vertex.lengths < 0 and count <= vertex.longest


@kernel
def list_matches(graph: Graph, output: SetOutput, cursor: Cursor) -> bool:
    """Writes the matches of the graph. False if the output is full; it can then be called again."""
    vertices, after, steps, path = graph.vertices, graph.after, graph.steps, graph.path
    order = graph.order[cursor.side]
    while True:
        if cursor.depth == 0:
            if not next_start(vertices, order, cursor):
                end_group(output, cursor)
                if not next_group(vertices, order, cursor):
                    return True
                path[max(1, cursor.length - 1)] = NOTHING_TAKEN
                continue
            add_step(vertices, steps, path, 0, order[cursor.start])
            cursor.depth = 1
        depth, length = cursor.depth, cursor.length
        while depth:
            step, left = steps[depth - 1], length - depth  # vertices still to come
            if left <= 1:
                cursor.depth = depth
                if not write(vertices, after, path, step, output, cursor):
                    return False
                depth -= 1
                continue
            place, end = step.after, step.after_end
            while place < end and not may_follow(vertices[after[place]], left - 1):
                place += 1
            step.after = place + 1
            if place < end:
                add_step(vertices, steps, path, depth, after[place])
                depth += 1
            else:
                depth -= 1
        cursor.depth = 0


@inlined
def add_step(vertices: Records, steps: Records, path: Ints, depth: int, number: int) -> None:
    step, vertex = steps[depth], vertices[number]
    step.after, step.after_end = vertex.after, vertex.after_end
    path[depth] = vertex.taken


@inlined
def write(vertices: Records, after: Numbers, path: Ints, step: Any, output: SetOutput, cursor: Cursor) -> bool:
    """Writes the path if it is complete. If one vertex is missing, writes the path with each vertex that may be the
    last. False if there is no room for them.
    """
    at, taken, matches, length, tail = cursor.match_events, output.taken, cursor.matches, cursor.length, cursor.tail
    most = most_written(step)
    if len(output.end) - matches < most or len(taken) - at < most * (length + 1):
        return False
    if cursor.depth == length:
        at = write_tail(write_path(path, taken, at), taken, tail)
        matches += 1
    else:
        for place in range(step.after, step.after_end):
            vertex = vertices[after[place]]
            if vertex.lengths & 1:
                at = write_path(path, taken, at)
                taken[at] = vertex.taken
                at = write_tail(at + 1, taken, tail)
                matches += 1
    cursor.match_events, cursor.matches = at, matches
    return True


@inlined
def most_written(step: Any) -> int:
    """The most matches that are written at once."""
    return step.after_end - step.after + 1


@inlined
def write_path(path: Ints, taken: Ints, at: int) -> int:
    """Copies the path up to NOTHING_TAKEN. If the loop had a count, the compiler would optimize it for long paths,
    which is much slower for short ones.
    """
    i, word = 0, path[0]
    while word != NOTHING_TAKEN:
        taken[at + i] = word
        i += 1
        word = path[i]
    return at + i


@inlined
def write_tail(at: int, taken: Ints, tail: int) -> int:
    if tail == NOTHING_TAKEN:
        return at
    taken[at] = tail
    return at + 1


@inlined
def next_start(vertices: Records, order: Numbers, cursor: Cursor) -> bool:
    """Moves to the group's next vertex that starts matches of the current length. False if there is none."""
    place = cursor.start + 1
    while place < cursor.group_end:
        vertex = vertices[order[place]]
        if vertex.starts and may_follow(vertex, cursor.length - 1):
            cursor.start = place
            return True
        place += 1
    return False


@inlined
def next_group(vertices: Records, order: Numbers, cursor: Cursor) -> bool:
    """Moves to the next shorter length of the group's matches. After the shortest one, moves to the next group: the
    vertices of an event that starts matches. False if there is none.
    """
    length = cursor.length - 1
    while length > 0 and not may_follow(cursor, length - 1):
        length -= 1
    if length <= 0:
        first = cursor.group_end
        while first < cursor.vertices and not vertices[order[first]].starts:
            first += 1
        if first == cursor.vertices:
            return False
        cursor.group, cursor.group_end = first, first
        cursor.lengths, cursor.longest = 0, 0
        starts = 0
        while cursor.group_end < cursor.vertices and same_event(vertices, order[first], order[cursor.group_end]):
            vertex = vertices[order[cursor.group_end]]
            if vertex.starts:
                cursor.lengths |= vertex.lengths
                cursor.longest = max(cursor.longest, vertex.longest)
                starts += 1
            cursor.group_end += 1
        if starts > 1:
            cursor.ambiguous = 1
        length = cursor.longest + 1
    cursor.start, cursor.length = cursor.group - 1, length
    cursor.group_matches, cursor.group_events = cursor.matches, cursor.match_events
    return True


@inlined
def end_group(output: SetOutput, cursor: Cursor) -> None:
    """Finishes the matches of one group and length."""
    length = cursor.length + (cursor.tail != NOTHING_TAKEN)
    if cursor.ambiguous and cursor.matches > cursor.group_matches:
        sort_group(output.taken[cursor.group_events : cursor.match_events], length)
    end, now = cursor.group_events, cursor.now
    for match in range(cursor.group_matches, cursor.matches):
        end += length
        output.end[match], output.detected_at[match] = end, now


# If several stages may take an event, the matches of one start and length are not in order yet.


@kernel
def sort_group(taken: Ints, length: int) -> None:
    """Sorts matches of one length with a heap, whose top is the last match."""
    count = len(taken) // length
    if is_sorted(taken, length, count):
        return
    for top in range(count // 2 - 1, -1, -1):
        sink(taken, length, top, count)
    for last in range(count - 1, 0, -1):
        swap(taken, length, 0, last)
        sink(taken, length, 0, last)


@inlined
def is_sorted(taken: Ints, length: int, count: int) -> bool:
    match = 1
    while match < count and not comes_before(taken, length, match, match - 1):
        match += 1
    return match >= count


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
    """Whether a match comes before another: by events, then by stages."""
    earlier_stage = later_stage = False
    for i in range(length):
        a, b = taken[left * length + i], taken[right * length + i]
        if np.int32(a) != np.int32(b):  # the events
            return bool(np.int32(a) < np.int32(b))
        earlier_stage |= a < b and not later_stage
        later_stage |= b < a and not earlier_stage
    return earlier_stage
