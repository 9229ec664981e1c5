"""Evaluates conditions over variables: the values of the variables are written to where scripts read them."""

from __future__ import annotations

from cepheid.compile.occurrences.tables import NONE, PER_VARIABLE, AlgebraTables
from cepheid.kernel.arrays import Events
from cepheid.kernel.jit import kernel
from cepheid.kernel.occurrences.answers import follows
from cepheid.kernel.occurrences.layout import SEVERAL, UNBOUND, Bindings, Forest, NodeKind, TreeCursor
from cepheid.kernel.occurrences.nodes import has_room, next_bound, size_of
from cepheid.kernel.scripts.conditions import run_script
from cepheid.kernel.scripts.interpreter import NO_FAILURE


@kernel
def holds(
    tables: AlgebraTables, forest: Forest, bindings: Bindings, cursor: TreeCursor, row: int, node: int, other: int
) -> bool:
    """Whether the operator's condition is true for the variables in `node` and in `other`, which may be the same node.
    Sets the cursor's failure or shortage.
    """
    if not has_room(forest, cursor, size_of(forest.nodes, node) + size_of(forest.nodes, other)):
        return False
    variables = bindings.variables
    variables.slots[0, :] = NONE
    variables.outermost[:, :] = NONE
    variables.individuals[:] = UNBOUND
    bind_below(tables, forest, bindings, node)
    if other != node:
        bind_below(tables, forest, bindings, other)
    if tables.operators[row].filter != NONE:
        return follows(tables, bindings, cursor, tables.operators[row].filter)
    script = tables.operators[row].script
    true, failure = run_script(tables, variables, variables, 0, 0, script, variables.stack)
    if failure != NO_FAILURE:
        cursor.failure, cursor.failed_row = failure, row
        return False
    return true


@kernel
def bind_below(tables: AlgebraTables, forest: Forest, bindings: Bindings, node: int) -> None:
    """Binds all variables in a node."""
    nodes, stack = forest.nodes, forest.members
    bottom = len(stack) // 2  # the front is for `outermost`
    stack[bottom] = node
    bound, top = next_bound(nodes, stack, bottom, bottom + 1)
    while bound != NONE:
        bind(tables, forest, bindings, nodes[bound].number, nodes[bound].left)
        bound, top = next_bound(nodes, stack, bottom, top)


@kernel
def bind(tables: AlgebraTables, forest: Forest, bindings: Bindings, variable: int, node: int) -> None:
    """Binds a variable to a node. A single event gives its values. If scripts read times, every node gives the times of
    its first and its last member.
    """
    events, variables = bindings.events, bindings.variables
    place = PER_VARIABLE * variable
    first, last = outermost(forest, events, node, True), outermost(forest, events, node, False)
    time_value = tables.settings[0].time_value
    if first < 0 and last < 0:
        variables.outermost[0, variable], variables.outermost[1, variable] = ~first, ~last
    variables.individuals[variable] = ~first if first < 0 and first == last else SEVERAL
    if first < 0 and first == last:
        for column in tables.columns:
            variables.values[column, place] = events.values[column, ~first]
            variables.missing[column, place] = events.missing[column, ~first]
        variables.slots[0, place] = place
    if time_value == NONE:
        return
    start, end = time_of(forest, events, first, time_value), time_of(forest, events, last, time_value)
    variables.values[time_value, place + 1] = min(start, end)  # local times may go backwards
    variables.values[time_value, place + 2] = max(start, end)
    for offset in range(1, PER_VARIABLE):
        variables.missing[time_value, place + offset] = False
        variables.slots[0, place + offset] = place + offset


@kernel
def time_of(forest: Forest, events: Events, member: int, time_value: int) -> int:
    """The time of an event. For a temporal event: its delay after the last event below it."""
    nodes, delay = forest.nodes, 0
    while member >= 0:
        delay += nodes[member].number
        member = outermost(forest, events, nodes[member].left, False)
    return int(events.values[time_value, ~member] + delay)


@kernel
def outermost(forest: Forest, events: Events, node: int, first: bool) -> int:
    """The first or the last member of a node: `~position` of an event, or the node of a temporal event."""
    nodes, stack = forest.nodes, forest.members
    stack[0] = node
    top, best = 1, 0
    found = False
    while top > 0:
        top -= 1
        node = stack[top]
        if node >= 0 and nodes[node].kind != NodeKind.DELAYED:
            stack[top] = nodes[node].left
            top += 1
            if nodes[node].kind == NodeKind.JOINED:
                stack[top] = nodes[node].right
                top += 1
        elif not found or precedes(forest, events, node, best) == first:
            best, found = node, True
    return best


@kernel
def precedes(forest: Forest, events: Events, member: int, other: int) -> bool:
    """Whether a member comes before another: by time, then temporal events before events, then by delay or position."""
    nodes = forest.nodes
    time = nodes[member].end if member >= 0 else events.time[~member]
    other_time = nodes[other].end if other >= 0 else events.time[~other]
    if time != other_time:
        return bool(time < other_time)
    if member >= 0 and other >= 0:
        return bool(nodes[member].number < nodes[other].number)
    if member >= 0 or other >= 0:
        return bool(member >= 0)
    return bool(~member < ~other)
