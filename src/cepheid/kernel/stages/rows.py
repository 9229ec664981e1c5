"""The parts of a partial match: its row, its nodes and its slots."""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.instructions import SlotKind
from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import Events, Flags
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import compare_doubles, sum_overflows
from cepheid.kernel.stages.layout import START_ROW, Cursor, PartialMatches
from cepheid.kernel.stages.lookup.index import unplace


@inlined
def copy_row(partials: PartialMatches, cursor: Cursor, number: int) -> int:
    cursor.free -= 1
    copy = partials.free[cursor.free]
    partials.rows[copy] = partials.rows[number]
    for slot in range(partials.slots.shape[1]):
        partials.slots[copy, slot] = partials.slots[number, slot]
    return copy


@inlined
def append_node(partials: PartialMatches, cursor: Cursor, event: int, stage: int, parent: int) -> int:
    node = cursor.nodes
    entry = partials.nodes[node]
    entry.event, entry.stage, entry.parent, entry.holders = event, stage, parent, 0
    cursor.nodes += 1
    return node


@inlined
def take_into_slots(
    tables: Tables, events: Events, partials: PartialMatches, number: int, stage: int, event: int
) -> None:
    """Updates the slots that read `stage` with an event that the stage takes."""
    slots = partials.slots[number]
    for i in range(tables.stage_slots[stage], tables.stage_slots[stage + 1]):
        slot = tables.slots[i]
        kind, column, source = slot.kind, slot.column, slot.source
        if kind == SlotKind.LAST:
            slots[i] = event if source < 0 else slots[source]
        elif kind == SlotKind.FIRST:
            if slots[i] < 0 and (source < 0 or slots[source] >= 0):
                slots[i] = event
        elif column >= 0 and events.missing[column, event]:
            continue
        elif kind == SlotKind.COUNT:
            slots[i] += 1
        elif kind == SlotKind.CARRY:
            value = events.values[column, event]
            if sum_overflows(slots[source], value):
                slots[i] += 1 if value > 0 else -1
        elif kind == SlotKind.SUM_I:
            slots.view(np.uint64)[i] += np.uint64(events.values[column, event])  # may wrap around; CARRY counts that
        elif kind == SlotKind.SUM_F:
            slots.view(np.float64)[i] += events.values[column].view(np.float64)[event]
        elif kind == SlotKind.SUM_I_AS_F:
            slots.view(np.float64)[i] += np.float64(events.values[column, event])
        elif kind < SlotKind.SUM_I:
            take_into_fold(tables, events, partials, number, stage, event, i)
        elif slots[i] < 0 or beats(events.values[column], event, slots[i], kind):
            slots[i] = event


@kernel
def take_into_fold(
    tables: Tables, events: Events, partials: PartialMatches, number: int, stage: int, event: int, place: int
) -> None:
    """The same for one slot of a variance or a number of different values. It is a function of its own, so that the
    code for all other slots stays short.
    """
    slots, slot = partials.slots[number], tables.slots[place]
    doubles, values = slots.view(np.float64), events.values[slot.column]
    if slot.kind == SlotKind.MEAN:
        doubles[place] += (values.view(np.float64)[event] - doubles[place]) / slots[slot.source]
    elif slot.kind == SlotKind.DEVIATIONS:
        delta = values.view(np.float64)[event] - doubles[slot.source]
        doubles[place] += delta * (delta - delta / slots[tables.slots[slot.source].source])
    else:
        slots[place] += is_new(values, events.missing[slot.column], partials, number, stage, event, slot.kind)


@kernel
def is_new(
    values: Ints, missing: Flags, partials: PartialMatches, number: int, stage: int, event: int, kind: int
) -> bool:
    """Whether no earlier event that the stage has taken has the value of the one that it has taken last."""
    last = partials.rows[number].node
    node = partials.nodes[last].parent if last >= 0 else last
    doubles = values.view(np.float64)
    while node >= 0:
        entry = partials.nodes[node]
        if entry.stage == stage and not missing[entry.event]:
            if kind == SlotKind.DISTINCT_I:
                same = values[entry.event] == values[event]
            else:
                same = compare_doubles(doubles[entry.event], doubles[event]) == 0
            if same:
                return False
        node = entry.parent
    return True


@kernel
def beats(values: Ints, event: int, other: int, kind: int) -> bool:
    """Whether an event's value is less (or greater, as `kind` says) than another's; NaN is the greatest."""
    if kind == SlotKind.LEAST_I:
        return values[event] < values[other]
    if kind == SlotKind.GREATEST_I:
        return values[event] > values[other]
    doubles = values.view(np.float64)
    left, right = doubles[event], doubles[other]
    if kind == SlotKind.GREATEST_F:
        left, right = right, left
    return left < right or (np.isnan(right) and not np.isnan(left))


@kernel
def drop_first(partials: PartialMatches, cursor: Cursor, count: int) -> None:
    """Ends the first `count` live partial matches."""
    for _ in range(count):
        remove(partials, cursor, partials.links[START_ROW].next)


@inlined
def put_before(partials: PartialMatches, cursor: Cursor, number: int, place: int) -> None:
    """Makes a row live, before the live row `place`. Before START_ROW is after all others."""
    links = partials.links
    links[number].previous, links[number].next = links[place].previous, place
    links[links[place].previous].next = number
    links[place].previous = number
    cursor.live += 1


@inlined
def remove(partials: PartialMatches, cursor: Cursor, number: int) -> None:
    """Ends a live partial match, and frees its row."""
    if cursor.buckets:
        unplace(partials.lookup, cursor, number)
    links = partials.links
    links[links[number].previous].next = links[number].next
    links[links[number].next].previous = links[number].previous
    cursor.live -= 1
    partials.free[cursor.free] = number
    cursor.free += 1
