"""Stored events by a value: for `a.x = b.x`, the events of b with the x of an event of a.

For each such column of a variable (an index) and each key, the events with one value are a list in the order of their
starts, as in `kernel.intervals.lists`. A hash table with open addressing finds the list of a value. NULL has no list,
as it equals nothing.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.intervals.tables import IntervalTables
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.intervals.layout import IntervalEvents, JoinCursor, Stores
from cepheid.kernel.intervals.lists import doubled, move_entries
from cepheid.kernel.jit import kernel

_NUMBER, _INFINITE, _NAN = np.int64(0x7FFF_FFFF_FFFF_FFFF), np.int64(0x7FF0 << 48), np.int64(0x7FF8 << 48)
_MIXED, _KEYS = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xC2B2_AE3D_27D4_EB4F)


@kernel
def search(order: Int32s, low: int, high: int, times: Ints, time: int) -> int:
    """The first place from `low` to `high` whose time is not before `time`. The positions at these places are ordered
    by time.

    It steps back from the end, each time twice as far, and then halves the last step: most times are recent.
    """
    step = 1
    top = high
    while top - step >= low and times[order[top - step]] >= time:
        high = top - step
        step *= 2
    low = max(low, top - step + 1)
    while low < high:
        middle = (low + high) // 2
        if times[order[middle]] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def word_of(events: IntervalEvents, column: int, is_double: int, position: int) -> int:
    """An event's value as a word that is equal exactly if the values are: doubles have one zero and one NaN."""
    word: int = events.values[column, position]
    if is_double:
        size = word & _NUMBER
        if size == 0:
            return 0
        if size > _INFINITE:
            return int(_NAN)
    return word


@kernel
def bucket_of(stores: Stores, index: int, key: int, word: int) -> int:
    """The place in `buckets` of the list of this value, or the free place where it belongs."""
    last = len(stores.buckets) - 1
    mixed = (np.uint64(word) ^ np.uint64(key) * _KEYS ^ np.uint64(index)) * _MIXED
    mixed = (mixed ^ mixed >> np.uint64(29)) * _MIXED
    at = int(mixed >> np.uint64(32)) & last
    while stores.buckets[at]:
        value = stores.values[stores.buckets[at] - 1]
        if value.word == word and value.key == key and value.index == index:
            break
        at = (at + 1) & last
    return at


@kernel
def store_values(
    tables: IntervalTables, events: IntervalEvents, stores: Stores, cursor: JoinCursor, variable: int, position: int
) -> None:
    """Adds an event of a variable to the lists of its values."""
    for number in range(len(tables.indexes)):
        index = tables.indexes[number]
        if index.variable == variable and not events.missing[index.column, position]:
            word = word_of(events, index.column, index.is_double, position)
            store_value(events, stores, cursor, number, word, position)


@kernel
def store_value(
    events: IntervalEvents, stores: Stores, cursor: JoinCursor, index: int, word: int, position: int
) -> None:
    key = events.key[position]
    at = bucket_of(stores, index, key, word)
    if not stores.buckets[at]:
        made, value = stores.value_lists[cursor.value_lists], stores.values[cursor.value_lists]
        made.first, made.count, made.room = 0, 0, 0
        value.index, value.key, value.word = index, key, word
        cursor.value_lists += 1
        stores.buckets[at] = cursor.value_lists
    list_ = stores.value_lists[stores.buckets[at] - 1]
    if list_.count == list_.room:
        former = list_.first
        cursor.valued = doubled(list_, cursor.valued)
        move_entries(stores.by_value, former, list_)
    first, stop = list_.first, list_.first + list_.count
    place = search(stores.by_value, first, stop, events.start, events.start[position] + 1)
    for i in range(stop, place, -1):
        stores.by_value[i] = stores.by_value[i - 1]
    stores.by_value[place] = position
    list_.count += 1


@kernel
def store_all_values(
    tables: IntervalTables,
    events: IntervalEvents,
    stores: Stores,
    cursor: JoinCursor,
    variable: int,
    positions: Ints,
) -> None:
    """Adds events of a variable, which should be in the order of their starts."""
    for position in positions:
        store_values(tables, events, stores, cursor, variable, position)


@kernel
def fill_buckets(stores: Stores, count: int) -> None:
    """Enters the first `count` lists of values in `buckets`, which are empty."""
    for number in range(count):
        value = stores.values[number]
        stores.buckets[bucket_of(stores, value.index, value.key, value.word)] = number + 1
