"""The index of the live partial matches of the loaded key: an event finds those that it can change by their ties.

Each live row has a place: by its state, and in states with a lookup by the values of its side of the ties.

- EQUAL: rows with the same values are in one chain, one of `Cursor.buckets` chains, chosen by a hash of the values and
  of the state. The chain also has rows with other values; the hash, the row's key, tells them apart.
- ORDERED: the rows of a state are in a heap by value, so all rows up to a value are found without the others. If the
  event's value must be less than the row's, the key is the complement, which turns the order around.
- Other states, and rows whose values cannot be computed, are in one chain a state, which is visited whole.

A row is placed when it enters its state. Its values change only when it takes an event, which places it again. So an
event costs its candidates, and nothing that grows with the number of live partial matches. The index is made from the
ring of live rows when an event would visit many of them for the third time in a visit, and is not stored: a parked key,
a snapshot and a copy of a key have none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.tables import ALWAYS, Lookup, Tables
from cepheid.kernel.arrays import FOREVER, Events, Stack
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.scripts.interpreter import NO_FAILURE, run_code
from cepheid.kernel.stages.layout import ALL_VISITED, NOWHERE, START_ROW, Cursor, Index, PartialMatches
from cepheid.kernel.stages.lookup.deadline import deadline_of
from cepheid.kernel.stages.lookup.heap import add_up_to, push, take_out

FOUND, MISSING, FAILED = range(3)
"""Whether a side of the ties has a key, is NULL, or cannot be computed."""

_OF_ROW = -1
_LEAST = np.iinfo(np.int64).min
_NAN = int(np.float64(np.nan).view(np.int64))


# The roots: a chain for each state, a heap for each state, the heap of deadlines, and the chains for values.


@inlined
def heap_of(tables: Tables, state: int) -> int:
    return len(tables.states) + state


@inlined
def heap_of_deadlines(tables: Tables) -> int:
    return 2 * len(tables.states)


@inlined
def chain_for(tables: Tables, cursor: Cursor, key: int) -> int:
    return 2 * len(tables.states) + 1 + (key & (cursor.buckets - 1))


@inlined
def has_room_for(tables: Tables, partials: PartialMatches, buckets: int) -> bool:
    return heap_of_deadlines(tables) + 1 + buckets <= len(partials.lookup.roots)


@inlined
def pays(tables: Tables, partials: PartialMatches, cursor: Cursor) -> bool:
    """Whether an index should be made now, or made again with more chains."""
    settings = tables.settings[0]
    if cursor.buckets:
        return cursor.live > cursor.buckets and has_room_for(tables, partials, 2 * cursor.buckets)
    return settings.index_least != NONE and cursor.live >= settings.index_least and cursor.walks > settings.index_after


@kernel
def make_index(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, stack: Stack) -> None:
    """Places all live rows."""
    index, first = partials.lookup, heap_of_deadlines(tables) + 1
    cursor.buckets = 1
    while cursor.buckets < 2 * cursor.live and has_room_for(tables, partials, 2 * cursor.buckets):
        cursor.buckets *= 2
    index.roots[: first + cursor.buckets] = START_ROW
    cursor.wake = 0
    number = partials.links[START_ROW].next
    while number != START_ROW:
        cursor.wake |= tables.states[partials.rows[number].state].wake
        place(tables, events, partials, cursor, number, stack)
        number = partials.links[number].next


@inlined
def place(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, number: int, stack: Stack) -> None:
    """Puts a live row into the index; it is in none of its chains and heaps."""
    index, number_of_state = partials.lookup, partials.rows[number].state
    state = tables.states[number_of_state]
    if tables.settings[0].windows:
        deadline = deadline_of(tables, events, partials, number)
        push(index.deadlines, index.roots, heap_of_deadlines(tables), number, deadline)
    of_row: Any = np.int64(_OF_ROW)
    key: Any = np.int64(0)
    outcome, root = FAILED, number_of_state
    if state.lookup != Lookup.ALL:
        outcome, key = key_of(tables, events, partials, number, of_row, number_of_state, stack)
    if outcome == FOUND and state.lookup == Lookup.ORDERED:
        push(index.places, index.roots, heap_of(tables, number_of_state), number, key)
        return
    if outcome == FOUND:
        root = chain_for(tables, cursor, key)
    elif outcome == MISSING and not state.nulls:
        index.places[number].root = NOWHERE
        return
    entry, following = index.places[number], index.roots[root]
    entry.root, entry.key, entry.right, entry.above = root, key, following, START_ROW
    if following != START_ROW:
        index.places[following].above = number
    index.roots[root] = number


@kernel
def unplace(index: Index, cursor: Cursor, number: int) -> None:
    """Takes a live row out of the index."""
    entry = index.places[number]
    if cursor.windows:
        take_out(index.deadlines, index.roots, number)
    if entry.root == NOWHERE:
        return
    if cursor.states <= entry.root < 2 * cursor.states:
        take_out(index.places, index.roots, number)
        return
    if entry.right != START_ROW:
        index.places[entry.right].above = entry.above
    if entry.above == START_ROW:
        index.roots[entry.root] = entry.right
    else:
        index.places[entry.above].right = entry.right
    entry.root = NOWHERE


@inlined
def find_candidates(tables: Tables, events: Events, partials: PartialMatches, cursor: Cursor, stack: Stack) -> None:
    """Sets `Cursor.candidates` to the live rows that the event at the cursor can change, and maybe others; in a chain,
    those placed last come first.
    """
    event, index, count = cursor.event, partials.lookup, 0
    word = events.mask[event] | (np.int64(1) << ALWAYS)
    start_row: Any = np.int64(START_ROW)  # as a constant it would have a type of its own
    cursor.candidates = ALL_VISITED
    if word & cursor.wake:
        for number in range(len(tables.states)):
            state = tables.states[number]
            if word & state.wake == 0:
                continue
            row = index.roots[number]
            while row != START_ROW:
                index.found[count] = row
                count += 1
                row = index.places[row].right
            if state.lookup == Lookup.ALL:
                continue
            if word & state.visits_all:
                return
            outcome, key = key_of(tables, events, partials, start_row, event, number, stack)
            if outcome == FAILED or (outcome == MISSING and state.nulls):
                return
            if outcome == FOUND and state.lookup == Lookup.EQUAL:
                row = index.roots[chain_for(tables, cursor, key)]
                while row != START_ROW:
                    if index.places[row].key == key and partials.rows[row].state == number:
                        index.found[count] = row
                        count += 1
                    row = index.places[row].right
            elif outcome == FOUND:
                strict = tables.ties[state.ties].strict
                if not (strict and key == _LEAST):
                    top = index.roots[heap_of(tables, number)]
                    count = add_up_to(index.places, top, key - strict, index.found, count)
    cursor.candidates = count


@inlined
def key_of(
    tables: Tables, events: Events, partials: PartialMatches, row: int, event: int, number: int, stack: Stack
) -> tuple[int, int]:
    """What a side of the ties of state `number` is looked up by: the side of the event or, with _OF_ROW in its place,
    that of the row.
    """
    state = tables.states[number]
    outcome = FOUND
    key: Any = np.int64(number)
    for i in range(state.ties, state.ties_end):
        tie = tables.ties[i]
        first, end = (tie.value, tie.value_end) if event != _OF_ROW else (tie.earlier, tie.earlier_end)
        failure = run_code(tables, events, partials, row, event, first, end, stack)
        if failure != NO_FAILURE:
            return FAILED, key
        if stack.null[0]:
            outcome = MISSING
            continue
        value = ordinal(stack.values[0]) if tie.double else stack.values[0]
        if state.lookup == Lookup.EQUAL:
            key = mixed(key, value)
        else:
            key = ~value if tie.descending else value
    return outcome, key


@inlined
def ordinal(bits: int) -> int:
    """The bits of a double as an integer that is in Spark's order: -0.0 equals 0.0, NaN is equal to itself and the
    greatest.
    """
    word: Any = np.int64(bits)
    value = word.view(np.float64)
    if value == 0.0:
        return 0
    if math.isnan(value):
        return _NAN
    return bits if bits >= 0 else bits ^ FOREVER


@inlined
def mixed(key: int, value: int) -> int:
    """A hash of both; the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    word = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(value)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hash_: Any = np.int64(word ^ (word >> np.uint64(31)))
    return hash_


@inlined
def first_deadline(tables: Tables, partials: PartialMatches) -> int:
    """The earliest deadline of the live rows, if states have windows; FOREVER if there is none."""
    number = first_to_end(tables, partials)
    return FOREVER if number == START_ROW else partials.lookup.deadlines[number].key


@inlined
def first_to_end(tables: Tables, partials: PartialMatches) -> int:
    """The live row with the earliest deadline, if states have windows; START_ROW if there is none."""
    return partials.lookup.roots[heap_of_deadlines(tables)]
