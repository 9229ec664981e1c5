"""Growing lists, one per key, that share one array. Each has places of its own, so adding to one list moves no other.

A full list moves to the end of the used places and gets twice the room. Its former places are reused when all lists are
laid out again.

An array has PLACES_PER_ENTRY places per entry. That is always enough, so processing an event never asks for room. A
list of n entries began with LEAST_ROOM places, or with twice the entries that it had when the lists were laid out. Its
room doubled with each move, up to less than 2 n. So all its rooms together are less than 4 n. A list that never moved
has a room of at most 4 n.
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
    """Makes lists, after the `used` places, for entries with these keys, which are ascending and have no lists yet.
    Returns the place of each entry, and the new number of used places.
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
def doubled(list_: List, used: int) -> int:
    """Gives a list twice its room, after the `used` places, and returns the new number of used places."""
    room: int = max(2 * list_.room, LEAST_ROOM)
    list_.first, list_.room = used, room
    return used + room


@kernel
def move_entries(row: Int32s, first: int, list_: List) -> None:
    """Copies the entries of a list from its former place `first` to its present place."""
    for i in range(list_.count):
        row[list_.first + i] = row[first + i]


def entries_of(row: Int32s, lists: Records) -> Int32s:
    """The entries of these lists of a row, list after list."""
    entries: Int32s = row[_places(lists["first"], lists["count"])]
    return entries


def _places(first: Ints, count: Ints) -> Ints:
    """For each list `count` places from `first` on."""
    before = np.cumsum(count) - count
    places: Ints = np.repeat(first - before, count) + np.arange(int(count.sum()))
    return places
