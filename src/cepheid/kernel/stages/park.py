"""Loads the open matches of a key when a visit begins, and parks them when the visit ends."""

from __future__ import annotations

from typing import Any

from cepheid.compile.stages.tables import Tables
from cepheid.kernel.arrays import FOREVER, Events
from cepheid.kernel.jit import kernel
from cepheid.kernel.stages.layout import START_ROW, Cursor, PartialMatches
from cepheid.kernel.stages.lookup.deadline import deadline_of


@kernel
def has_room_to_load(partials: PartialMatches, key: int) -> bool:
    """Whether there is room for the key's number and for its waiting matches."""
    if key >= len(partials.parked.keys):
        return False
    entry = partials.parked.keys[key]
    waiting: int = entry.completed_end - entry.completed
    return waiting <= len(partials.completed)


@kernel
def load(partials: PartialMatches, cursor: Cursor, key: int) -> None:
    """Makes the key's partial matches and waiting matches the live ones."""
    parked, entry = partials.parked, partials.parked.keys[key]
    live = entry.live_end - entry.live
    last = START_ROW
    for i in range(live):
        number = parked.live[entry.live + i]
        partials.links[last].next, partials.links[number].previous = number, last
        last = number
    partials.links[last].next, partials.links[START_ROW].previous = START_ROW, last
    completed = entry.completed_end - entry.completed
    for i in range(completed):
        assign(partials.completed[i], parked.completed[entry.completed + i])
    cursor.live, cursor.completed = live, completed
    cursor.wake, cursor.earliest, cursor.reached = entry.wake, entry.deadline, entry.reached
    cursor.parked -= live
    entry.live_end, entry.completed_end = entry.live, entry.completed
    cursor.loaded = 1


@kernel
def has_room_to_park(partials: PartialMatches, cursor: Cursor) -> bool:
    parked = partials.parked
    live: int = cursor.parked_live + cursor.live
    completed: int = cursor.parked_completed + cursor.completed
    return live <= len(parked.live) and completed <= len(parked.completed)


@kernel
def park(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, key: int) -> None:
    """Ends the visit: stores the open matches for the key's next visit."""
    parked, entry = partials.parked, partials.parked.keys[key]
    entry.live, entry.completed = cursor.parked_live, cursor.parked_completed
    entry.live_end, entry.completed_end = entry.live + cursor.live, entry.completed + cursor.completed
    entry.wake, entry.deadline, entry.reached = cursor.wake, FOREVER, cursor.reached
    number = partials.links[START_ROW].next
    for i in range(cursor.live):
        parked.live[entry.live + i] = number
        entry.deadline = min(entry.deadline, deadline_of(tables, events, partials, number))
        number = partials.links[number].next
    partials.links[START_ROW].next = partials.links[START_ROW].previous = START_ROW
    parked.due[key] = entry.deadline
    for i in range(cursor.completed):
        assign(parked.completed[entry.completed + i], partials.completed[i])
    cursor.parked += cursor.live
    cursor.parked_live, cursor.parked_completed = entry.live_end, entry.completed_end
    cursor.live = cursor.completed = cursor.buckets = cursor.walks = 0
    cursor.visit += 1
    cursor.loaded = 0


@kernel
def assign(target: Any, source: Any) -> None:
    """Copies a record of COMPLETED."""
    target.step, target.timeout, target.start = source.step, source.timeout, source.start
    target.node, target.length = source.node, source.length
