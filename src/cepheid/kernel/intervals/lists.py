"""Lists of keys, all in one row: each has places of its own, so that adding to one list moves nothing of another.

A full list moves to the end of the used places, with twice the room; its former places are used again once all lists
are laid out anew. A row has PLACES_PER_ENTRY places for each entry that is put into it. That is always enough, so that
nothing asks for room while an event is taken: the rooms that a list of n entries had since it was laid out double from
LEAST_ROOM, or from twice what it had then, up to less than 2 n, and are less than 4 n together; a list that never moved
has at most 4 n.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.jit import kernel

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
    """Makes lists after the `used` places for entries with these keys, which are in order. Returns the place of each
    entry, and the number of places used then. These keys have no lists yet.
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
    """Gives a list twice the room after the `used` places, and returns the number of places used then."""
    room: int = max(2 * its.room, LEAST_ROOM)
    its.first, its.room = used, room
    return used + room


@kernel
def move_entries(row: Int32s, first: int, its: List) -> None:
    """Puts the entries where their list is now; they were at `first`."""
    for i in range(its.count):
        row[its.first + i] = row[first + i]


def entries_of(row: Int32s, lists: Records) -> Int32s:
    """The entries of these lists of a row, list after list."""
    entries: Int32s = row[_places(lists["first"], lists["count"])]
    return entries


def _places(first: Ints, count: Ints) -> Ints:
    """For each list `count` places from `first` on."""
    before = np.cumsum(count) - count
    places: Ints = np.repeat(first - before, count) + np.arange(int(count.sum()))
    return places
