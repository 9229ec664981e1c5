"""Lists of keys, all in one row: each has places of its own, so that what is put into one moves nothing of another.

A full list moves to the end of what is used, with twice the room; what it leaves behind is used again once all are laid
out anew. A row has PLACES_PER_ENTRY places for each entry that is put into it, which is always enough, so that nothing
asks for room while an event is taken: the rooms that a list of n entries had since it was laid out double from
LEAST_ROOM, or from twice what it had then, up to less than 2 n, and are less than 4 n together; a list that never moved
has at most 4 n.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from cepheid.compile.stages.tables import Ints, Records
from cepheid.kernel.jit import kernel
from cepheid.kernel.stages.layout import Int32s

LIST = np.dtype(
    [
        ("first", np.int64),  # its first place
        ("count", np.int64),  # entries
        ("room", np.int64),  # places
    ]
)
List: TypeAlias = Any
"""One record of LIST."""

LEAST_ROOM = 4
PLACES_PER_ENTRY = 4


def lay_out(lists: Records, keys: Ints, used: int) -> tuple[Ints, int]:
    """Makes lists behind the `used` places, of entries with these keys, which are in order: the place of each entry,
    and how many are used then. There are no lists of these keys before.
    """
    if not len(keys):
        return keys, used
    starts = np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1])
    numbers, counts = keys[starts], np.diff(starts, append=len(keys))
    rooms = np.maximum(2 * counts, LEAST_ROOM)
    ends = used + np.cumsum(rooms)
    lists["first"][numbers], lists["count"][numbers], lists["room"][numbers] = ends - rooms, counts, rooms
    return _places(ends - rooms, counts), int(ends[-1])


@kernel
def doubled(its: List, used: int) -> int:
    """Gives a list twice the room behind the `used` places, and says how many are used then."""
    room: int = max(2 * its.room, LEAST_ROOM)
    its.first, its.room = used, room
    return used + room


@kernel
def move_entries(row: Int32s, first: int, its: List) -> None:
    """Puts the entries where their list is now; they were at `first`."""
    for i in range(its.count):
        row[its.first + i] = row[first + i]


def entries_of(row: Int32s, lists: Records) -> Int32s:
    """What is in these lists of a row, list after list."""
    entries: Int32s = row[_places(lists["first"], lists["count"])]
    return entries


def _places(first: Ints, count: Ints) -> Ints:
    """So many places from each first one on."""
    before = np.cumsum(count) - count
    places: Ints = np.repeat(first - before, count) + np.arange(int(count.sum()))
    return places
