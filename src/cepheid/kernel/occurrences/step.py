"""Evaluates the event algebra over the events of many keys. Equal operators are shared, so the expressions form a
graph.

`kernel.occurrences.reference` is the definition. Time moves from one instant to the next at which there are events or
timers. When all events of an instant are known, the operators that they touch make the occurrences that end at this
instant, children first. An operator is evaluated at most once per instant, even if it stands in several expressions.
"""

from __future__ import annotations

from cepheid.compile.occurrences.tables import NONE, AlgebraTables, Regime
from cepheid.kernel.arrays import FOREVER, Events, Int32s, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.occurrences.contexts import evaluate_in_context
from cepheid.kernel.occurrences.layout import Answers, Bindings, Forest, OccurrenceStatus, TreeCursor, Variables
from cepheid.kernel.occurrences.lists import append, drop_earliest, drop_first, keep_since, reserve
from cepheid.kernel.occurrences.operators import evaluate
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.plan.occurrences.constants import UNBOUNDED, Kind


@kernel
def visit_keys(
    tables: AlgebraTables,
    events: Events,
    forest: Forest,
    variables: Variables,
    answers: Answers,
    cursor: TreeCursor,
    visits: Visits,
) -> int:
    """Makes the visits from Cursor.visit on, and returns an OccurrenceStatus. If a call needs more room, the next call
    continues where it stopped.
    """
    rows = len(tables.operators)
    bindings = Bindings(events, variables, answers)
    in_context = tables.settings[0].regime >= Regime.SNOOP_RECENT
    while cursor.visit < len(visits.key):
        key = visits.key[cursor.visit]
        first_list = key * tables.settings[0].lists
        if cursor.row == NONE:
            end, until = visits.end[cursor.visit], min(visits.until[cursor.visit], FOREVER - 1)
            found = next_instant(events, forest, cursor, key, first_list, end, until)
            if cursor.shortage:
                return take_shortage(cursor)
            if not found:
                closes = visits.closes[cursor.visit]
                if closes or (forest.keys[key].due == FOREVER and forest.keys[key].remembered == 0):
                    forget_key(tables, forest, key)
                cursor.visit += 1
                continue
            if not begin_instant(tables, events, forest, cursor, key, first_list):
                return take_shortage(cursor)
        while cursor.row < rows:
            row = cursor.row
            if forest.touched[row]:
                first, nodes = cursor.made, cursor.nodes
                if in_context and tables.operators[row].kind != Kind.WITHIN:
                    evaluate_in_context(tables, forest, cursor, row, first_list)
                else:
                    evaluate(tables, forest, bindings, cursor, row, first_list)
                if cursor.failure != NO_FAILURE:
                    return OccurrenceStatus.FAILED
                if cursor.shortage:
                    cursor.made, cursor.nodes = first, nodes
                    return take_shortage(cursor)
                record_made(tables, forest, cursor, row, first)
            cursor.row += 1
        if not emit_roots(tables, forest, cursor):
            return OccurrenceStatus.MORE_FOUND
        cursor.row = NONE
        cursor.made = 0
        if not end_instant(tables, forest, cursor, key, first_list):
            return OccurrenceStatus.TOO_MANY
    return OccurrenceStatus.DONE


@inlined
def next_instant(
    events: Events, forest: Forest, cursor: TreeCursor, key: int, first_list: int, end: int, until: int
) -> bool:
    """Sets Cursor.now to the next instant that is certain, and Cursor.instant_end to the position after its events.
    False if there is none, or no room for the events that wait for others of the same time.
    """
    cursor.instant_end = cursor.event
    if cursor.event < end:
        time = events.time[cursor.event]
        if forest.keys[key].due < time:
            cursor.now = forest.keys[key].due
            return True
        while cursor.instant_end < end and events.time[cursor.instant_end] == time:
            cursor.instant_end += 1
        if cursor.instant_end < end or time <= until:
            cursor.now = time
            return True
        if not reserve(forest, cursor, first_list, cursor.instant_end - cursor.event):
            return False
        for position in range(cursor.event, cursor.instant_end):
            append(forest, first_list, time, time, ~position)
        cursor.event = cursor.instant_end
        forest.keys[key].now = time
        forest.keys[key].due = time
    if forest.keys[key].due <= until:
        cursor.now = forest.keys[key].due
        return True
    return False


@inlined
def take_shortage(cursor: TreeCursor) -> int:
    """Returns the status that says what needs room, and clears it."""
    status = cursor.shortage
    cursor.shortage = OccurrenceStatus.DONE
    return status


@kernel
def forget_keys(tables: AlgebraTables, forest: Forest, keys: Int32s) -> None:
    for key in keys:
        forget_key(tables, forest, key)


@inlined
def forget_key(tables: AlgebraTables, forest: Forest, key: int) -> None:
    """Clears the state of the key; its lists keep their room."""
    forest.keys[key].due = FOREVER
    forest.keys[key].remembered = 0
    lists = tables.settings[0].lists
    for number in range(key * lists, (key + 1) * lists):
        list_ = forest.lists[number]
        list_.first, list_.count, list_.latest, list_.pruned_at = list_.base, 0, -UNBOUNDED, 0


@inlined
def record_made(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, row: int, first: int) -> None:
    """Records that the operator has made the occurrences from `first` on. If there are any, its parents must be
    evaluated.
    """
    cursor.evaluated += 1
    forest.made_from[row], forest.made_count[row] = first, cursor.made - first
    if cursor.made > first:
        for at in range(tables.operators[row].parents, tables.operators[row].parents_end):
            forest.touched[tables.parents[at]] = True


@inlined
def begin_instant(
    tables: AlgebraTables, events: Events, forest: Forest, cursor: TreeCursor, key: int, first_list: int
) -> bool:
    """Begins an instant: makes the occurrences of the leaves, which are events. False if there is no room."""
    now = cursor.now
    for row in range(len(tables.operators)):
        forest.made_count[row], forest.touched[row] = 0, False
    waited = forest.lists[first_list].count if forest.keys[key].now == now else 0
    waiting = forest.lists[first_list].first
    mask = 0
    for at in range(waiting, waiting + waited):
        mask |= events.mask[~forest.entries[at].node]
    for position in range(cursor.event, cursor.instant_end):
        mask |= events.mask[position]
    recent = tables.settings[0].regime == Regime.MOST_RECENT
    bit = 0
    while mask:
        row = tables.leaves[bit] if mask & 1 else NONE
        if row != NONE:
            first = cursor.made
            for at in range(waiting, waiting + waited):
                if events.mask[~forest.entries[at].node] >> bit & 1:
                    put_event(forest, cursor, first, recent, now, forest.entries[at].node)
            for position in range(cursor.event, cursor.instant_end):
                if events.mask[position] >> bit & 1:
                    put_event(forest, cursor, first, recent, now, ~position)
            if cursor.shortage:
                cursor.made = 0
                return False
            record_made(tables, forest, cursor, row, first)
        mask >>= 1
        bit += 1
    drop_first(forest, first_list, waited)
    cursor.event = cursor.instant_end
    for row in tables.delayed:
        timers = forest.lists[first_list + tables.operators[row].memory]
        if timers.count and forest.entries[timers.first].end <= now:
            forest.touched[row] = True
    cursor.row = 0
    return True


@inlined
def put_event(forest: Forest, cursor: TreeCursor, first: int, recent: bool, now: int, node: int) -> None:
    """As `put`, for an event. Events come in order, so the last one of an instant is the most recent."""
    if recent and cursor.made > first:
        forest.made[first].node = node
    elif cursor.made >= len(forest.made):
        cursor.shortage = OccurrenceStatus.MORE_MADE
    else:
        made = forest.made[cursor.made]
        made.start, made.node = now, node
        cursor.made += 1


@inlined
def emit_roots(tables: AlgebraTables, forest: Forest, cursor: TreeCursor) -> bool:
    """Writes what the roots have made to Forest.found. If there is no room, writes nothing and returns False."""
    count = 0
    for row in tables.roots:
        count += forest.made_count[row]
    if cursor.found + count > len(forest.found):
        cursor.needed = count
        return False
    for root in range(len(tables.roots)):
        row = tables.roots[root]
        for at in range(forest.made_from[row], forest.made_from[row] + forest.made_count[row]):
            found = forest.found[cursor.found]
            found.root, found.instant, found.end = root, cursor.instant, cursor.now
            found.start, found.node = forest.made[at].start, forest.made[at].node
            cursor.found += 1
    cursor.instant += 1
    return True


@inlined
def count_remembered(forest: Forest, first_list: int, lists: int) -> int:
    remembered = 0
    for number in range(first_list + 1, first_list + lists):
        remembered += forest.lists[number].count
    return remembered


@kernel
def forget_old(tables: AlgebraTables, forest: Forest, now: int, first_list: int) -> None:
    """Removes what is too old to be part of an occurrence that ends after `now`. Not for contexts, where it may still
    consume another.
    """
    for row in range(len(tables.operators)):
        op = tables.operators[row]
        lists = 2 if op.kind == Kind.BOTH else 1 if op.kind in (Kind.THEN, Kind.WITHOUT) else 0
        for number in range(first_list + op.memory, first_list + op.memory + lists):
            keep_since(forest, number, now + 1 - op.window)


@inlined
def end_instant(tables: AlgebraTables, forest: Forest, cursor: TreeCursor, key: int, first_list: int) -> bool:
    """Counts what the key remembers, and sets when its next instant is due. False if there is more than the limit."""
    settings = tables.settings[0]
    remembered = count_remembered(forest, first_list, settings.lists)
    if remembered > settings.most_open and settings.regime <= Regime.MOST_RECENT:
        forget_old(tables, forest, cursor.now, first_list)
        remembered = count_remembered(forest, first_list, settings.lists)
    while remembered > settings.most_open:
        if not settings.limits_drop:
            return False
        drop_earliest(forest, first_list + 1, settings.lists - 1)
        remembered -= 1
        cursor.dropped += 1
    forest.keys[key].remembered = remembered
    due = FOREVER
    for row in tables.delayed:
        timers = forest.lists[first_list + tables.operators[row].memory]
        if timers.count:
            due = min(due, forest.entries[timers.first].end)
    if forest.lists[first_list].count:
        due = min(due, forest.keys[key].now)
    forest.keys[key].due = due
    return True
