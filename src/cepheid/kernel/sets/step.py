"""The compiled kernel of sets. It equals `kernel.stages.reference` if all conditions look at single events.

Such partial matches differ in what comes next only by their state: an event does the same to all of them in one state.
So each state has one set of partial matches. The cost of an event depends on the number of states and edges, not on the
number of open partial matches. Matches are listed only when an event completes them, see `kernel.sets.listing`.

`run` is a loop of small steps. All state is in the arrays and the cursor, so it may return between any two steps, to
get more room, and be called again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.stages.tables import ALWAYS, IGNORED, STOPPED, Tables
from cepheid.kernel.arrays import NO_TIME, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.sets.layout import NO_SET, NOTHING_TAKEN, Graph, SetOutput, Sets
from cepheid.kernel.sets.listing import NO_EDGES, gather, list_matches
from cepheid.kernel.sets.lone_match import write_lone_match
from cepheid.kernel.sets.nodes import deadline_of, extend, limit_of, new_node, taken_of, unite
from cepheid.kernel.stages.layout import Cursor


class Status(IntEnum):
    """Why `run` returned."""

    DONE = 0
    """All visits are made."""
    OUTPUT_FULL = 1
    NODES_FULL = 2
    """See `nodes_needed`."""
    VERTICES_FULL = 3
    EDGES_FULL = 4
    TOO_MANY_MATCHES = 5
    """The event before the cursor completes more matches than the limit."""
    MANY_OPEN = 6
    """There might be more partial matches than the limit: see `recount`."""


class Task(IntEnum):
    """What is to be done next."""

    MOVE = 0
    """Process the next event, or end the visit."""
    GATHER = 1
    """Make the graph of the matches that the last event completes."""
    LIST = 2
    """List these matches; some may be listed already."""


@kernel
def run(
    tables: Tables,
    times: Ints,
    masks: Ints,
    visits: Visits,
    sets: Sets,
    graph: Graph,
    output: SetOutput,
    cursor: Cursor,
) -> int:
    """Makes the visits from the cursor on; returns a Status. `times` and `masks` are those of the events."""
    states, edges, settings = tables.states, tables.edges, tables.settings[0]
    needed = nodes_needed(len(edges))
    while True:
        if cursor.task == Task.GATHER and write_lone_match(
            sets, graph, output, cursor, limit_of(settings.window, cursor.now)
        ):
            cursor.task, cursor.nodes = Task.MOVE, cursor.kept_nodes
        if cursor.task == Task.GATHER:
            found = gather(sets, graph, cursor, limit_of(settings.window, cursor.now))
            if found < 0:
                return Status.EDGES_FULL if found == NO_EDGES else Status.VERTICES_FULL
            if cursor.found > settings.most_matches:
                return Status.TOO_MANY_MATCHES
            cursor.task = Task.LIST
        if cursor.task == Task.LIST:
            if not list_matches(graph, output, cursor):
                return Status.OUTPUT_FULL
            cursor.task, cursor.nodes = Task.MOVE, cursor.kept_nodes
        if cursor.open > settings.most_in_sets and cursor.patience == 0:
            return Status.MANY_OPEN
        if cursor.visit == len(visits.key):
            return Status.DONE
        key, end = visits.key[cursor.visit], visits.end[cursor.visit]
        if not cursor.begun:
            cursor.begun, cursor.first, cursor.base = 1, cursor.event, cursor.nodes
            update_wake(states, sets, key, settings.start, cursor)
            cursor.open = cursor.patience = 0
        event, wake = cursor.event, cursor.wake
        while event < end and (masks[event] | (np.int64(1) << ALWAYS)) & wake == 0:
            event += 1
        cursor.event = event
        if event == end:
            if cursor.open > settings.most_in_sets:
                return Status.MANY_OPEN
            end_visit(visits, times, sets, cursor, settings.window)
        elif len(sets.nodes) - cursor.nodes < needed:
            sets.now[key] = times[event]
            return Status.NODES_FULL
        else:
            word = masks[event] | (np.int64(1) << ALWAYS)
            process(states, edges, sets, graph, cursor, key, settings.start, times[event], word, settings.window)
            cursor.event += 1
            cursor.patience = max(0, cursor.patience - 1)


@inlined
def nodes_needed(edges: int) -> int:
    """The most nodes that an event makes: two per edge, and one if the edge completes matches."""
    return 3 * edges


@inlined
def update_wake(states: Records, sets: Sets, key: int, start: int, cursor: Cursor) -> None:
    """Sets which events can change a set of the key or start one, and the greatest number of partial matches that the
    key may have.
    """
    wake, open_ = states[start].wake, 0
    for state in range(len(states)):
        head = sets.heads[key, state]
        if head != NO_SET:
            wake |= states[state].wake
            if cursor.limited:
                open_ += sets.paths[head]
    cursor.wake, cursor.open = wake, open_


@inlined
def end_visit(visits: Visits, times: Ints, sets: Sets, cursor: Cursor, window: int) -> None:
    """Advances time to the visit's `until`. Sets end if they are out of time, or if the key closes."""
    key = visits.key[cursor.visit]
    now = max(sets.now[key], visits.until[cursor.visit])
    if cursor.event > cursor.first:
        now = max(now, times[cursor.event - 1])
    if visits.closes[cursor.visit]:
        now, cursor.nodes = NO_TIME, cursor.base
    sets.now[key] = now
    limit, latest = limit_of(window, now), NO_TIME
    for state in range(sets.heads.shape[1]):
        head = sets.heads[key, state]
        if head != NO_SET and (visits.closes[cursor.visit] or sets.nodes[head].start <= limit):
            sets.heads[key, state] = NO_SET
        elif head != NO_SET:
            latest = max(latest, sets.nodes[head].start)
    sets.due[key] = deadline_of(window, latest)
    cursor.begun = cursor.open = 0
    cursor.visit += 1


@inlined
def process(
    states: Records,
    edges: Records,
    sets: Sets,
    graph: Graph,
    cursor: Cursor,
    key: int,
    start: int,
    time: int,
    word: int,
    window: int,
) -> None:
    """Moves the key's sets that the event at the cursor wakes, and starts new partial matches with it."""
    limit = limit_of(window, time)
    count = take_out(states, edges, sets, graph, key, start, word, limit)
    for i in range(count):
        moving = graph.moving[i]
        if moving.set != NO_SET and moving.goes_on:
            for number in range(states[moving.state].edges, states[moving.state].edges_end):
                edge = edges[number]
                if edge.stage == IGNORED and edge.target >= 0 and follows(edge, word):
                    sets.heads[key, edge.target] = unite(sets, cursor, sets.heads[key, edge.target], moving.set)
    completes = False
    # States are numbered from the start state on, so the latest starts come last here, and `extend` makes one node.
    for i in range(count - 1, -1, -1):
        moving = graph.moving[i]
        for number in range(states[moving.state].edges, states[moving.state].edges_end):
            edge = edges[number]
            if not follows(edge, word) or (edge.stage == IGNORED and moving.set == NO_SET):
                continue
            completes |= edge.completes != 0
            if edge.stage != IGNORED and edge.target >= 0 and moving.goes_on:
                sets.heads[key, edge.target] = extend(
                    sets, cursor, cursor.event, time, edge.stage, moving.set, sets.heads[key, edge.target], limit
                )
    if completes:
        complete(states, edges, sets, graph, cursor, count, time, word)
    update_wake(states, sets, key, start, cursor)


@inlined
def take_out(
    states: Records, edges: Records, sets: Sets, graph: Graph, key: int, start: int, word: int, limit: int
) -> int:
    """Moves the sets that the event wakes out of their states into Graph.moving, and returns their number. If the event
    wakes the start state, its empty set comes first.
    """
    count = 0
    if word & states[start].wake:
        add_moving(states, edges, graph, count, start, NO_SET, word)
        count += 1
    for state in range(len(states)):
        head = sets.heads[key, state]
        if head != NO_SET and word & states[state].wake:
            sets.heads[key, state] = NO_SET
            if sets.nodes[head].start > limit:
                add_moving(states, edges, graph, count, state, head, word)
                count += 1
    return count


@inlined
def add_moving(states: Records, edges: Records, graph: Graph, at: int, state: int, head: int, word: int) -> None:
    moving = graph.moving[at]
    moving.state, moving.set, moving.goes_on = state, head, 1
    for number in range(states[state].edges, states[state].edges_end):
        if edges[number].target == STOPPED and follows(edges[number], word):
            moving.goes_on = 0


@kernel
def complete(
    states: Records, edges: Records, sets: Sets, graph: Graph, cursor: Cursor, count: int, time: int, word: int
) -> None:
    """Records the sets that the event completes. If one stage takes the event after all of them, the event is their
    common tail. Otherwise it gets nodes of its own, which are freed when the matches are listed.
    """
    cursor.task, cursor.now = Task.GATHER, time
    cursor.kept_nodes, cursor.roots = cursor.nodes, 0
    stage, alike = IGNORED, True
    for i in range(count):
        moving = graph.moving[i]
        for number in range(states[moving.state].edges, states[moving.state].edges_end):
            edge = edges[number]
            if edge.completes and follows(edge, word) and (edge.stage != IGNORED or moving.set != NO_SET):
                alike &= moving.set != NO_SET and (cursor.roots == 0 or edge.stage == stage)
                stage = edge.stage
                root = graph.roots[cursor.roots]
                root.set, root.stage = moving.set, edge.stage
                cursor.roots += 1
    cursor.tail = taken_of(cursor.event, stage) if alike and stage != IGNORED else NOTHING_TAKEN
    for i in range(cursor.roots):
        root = graph.roots[i]
        if root.stage != IGNORED and cursor.tail == NOTHING_TAKEN:
            start = time if root.set == NO_SET else sets.nodes[root.set].start
            root.set = new_node(sets, cursor, cursor.event, root.stage, root.set, NO_SET, start)


@inlined
def follows(edge: Any, word: int) -> bool:
    return word & edge.require == edge.require and word & edge.forbid == 0
