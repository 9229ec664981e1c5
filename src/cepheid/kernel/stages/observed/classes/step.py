"""Moves starts from class to class, key after key."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.stages.tables import ALWAYS
from cepheid.kernel.arrays import NO_TIME, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.stages.layout import Cursor
from cepheid.kernel.stages.lookup.deadline import later
from cepheid.kernel.stages.lookup.index import mixed
from cepheid.kernel.stages.observed.classes.layout import FIRST_CLASS, NO_CLASS, NO_START, Classes


class Status(IntEnum):
    """Why `run` returned."""

    DONE = 0
    """All visits are made."""
    MOVE_MISSING = 1
    """The move of `source` at `word` is not known yet."""
    STARTS_FULL = 2


@kernel
def run(times: Ints, masks: Ints, visits: Visits, classes: Classes, cursor: Cursor, window: int) -> int:
    """Makes the visits from the cursor on; one key is open at a time. `window` is in microseconds, -1 for none."""
    while cursor.visit < len(visits.key):
        end, event = visits.end[cursor.visit], cursor.event
        while event < end and (masks[event] | (np.int64(1) << ALWAYS)) & cursor.wake == 0:
            event += 1
        cursor.event = event
        if event < end:
            if cursor.end == len(classes.starts):
                return Status.STARTS_FULL
            expire(classes, cursor, times[event], window)
            if not process(classes, cursor, masks[event] | (np.int64(1) << ALWAYS), times[event], window):
                return Status.MOVE_MISSING
            cursor.event += 1
        else:
            expire(classes, cursor, visits.until[cursor.visit], window)
            if visits.closes[cursor.visit]:
                close(classes, cursor)
            cursor.visit += 1
    return Status.DONE


@inlined
def expire(classes: Classes, cursor: Cursor, now: int, window: int) -> None:
    """Ends the starts whose window is over at `now`."""
    if window < 0 or now == NO_TIME:
        return
    starts = classes.starts
    while cursor.first < cursor.end and later(starts[cursor.first].time, window) <= now:
        owner = starts[root_of(starts, cursor.first)].owner
        if owner != NO_CLASS:
            classes.classes[owner].expired += 1
            classes.classes[owner].count -= 1
        cursor.first += 1


@inlined
def root_of(starts: Records, number: int) -> int:
    """The root of the start's tree. Halves the way to it."""
    at: Any = np.int64(number)
    while starts[at].parent != at:
        starts[at].parent = starts[starts[at].parent].parent
        at = starts[at].parent
    return at


@inlined
def process(classes: Classes, cursor: Cursor, word: int, time: int, window: int) -> bool:
    """Offers an event to all starts of the key, and may start one. False: a move is missing, and nothing changed."""
    first: Any = np.int64(FIRST_CLASS)
    count, begins = 0, NO_CLASS
    for i in range(cursor.live):
        source = classes.live[i]
        if classes.classes[source].count and classes.classes[source].wake & word:
            target, known = target_of(classes, cursor, source, word)
            if not known:
                return False
            if target != source:
                classes.moving[count].target, classes.moving[count].root = target, source
                count += 1
    if classes.classes[first].wake & word:
        begins, known = target_of(classes, cursor, first, word)
        if not known:
            return False
    for i in range(count):
        source = classes.moving[i].root
        classes.moving[i].root = classes.classes[source].root
        classes.moving[i].count = classes.classes[source].count
        classes.classes[source].count = 0
    keep_live(classes, cursor)
    for i in range(count):
        moving = classes.moving[i]
        join(classes, cursor, moving.target, moving.count, moving.root)
    if begins != NO_CLASS:
        begin(classes, cursor, begins, time, window)
    update_wake(classes, cursor)
    return True


@inlined
def target_of(classes: Classes, cursor: Cursor, source: int, word: int) -> tuple[int, bool]:
    """The class to which an event moves the starts of a class, and whether that is known."""
    moves = classes.moves
    place = mixed(source, word) & (len(moves) - 1)
    while moves[place].source != NO_CLASS:
        if moves[place].source == source and moves[place].word == word:
            return moves[place].target, True
        place = (place + 1) & (len(moves) - 1)
    cursor.source, cursor.word = source, word
    return NO_CLASS, False


@inlined
def keep_live(classes: Classes, cursor: Cursor) -> None:
    """Takes the classes without open starts out of the live ones."""
    kept = 0
    for i in range(cursor.live):
        number = classes.live[i]
        if classes.classes[number].count:
            classes.live[kept] = number
            kept += 1
    cursor.live = kept


@inlined
def join(classes: Classes, cursor: Cursor, target: int, count: int, root: int) -> None:
    """Adds `count` starts, whose tree has this root, to a class."""
    into, starts = classes.classes[target], classes.starts
    if into.closed:
        into.ended += count
        if root != NO_START:
            starts[root].owner = NO_CLASS
        return
    if into.count == 0:
        into.root = root
        classes.live[cursor.live] = target
        cursor.live += 1
    elif root != NO_START and count > into.count:
        starts[into.root].parent, into.root = root, root
    elif root != NO_START:
        starts[root].parent = into.root
    into.count += count
    if root != NO_START:
        starts[into.root].owner = target


@inlined
def begin(classes: Classes, cursor: Cursor, target: int, time: int, window: int) -> None:
    """Adds a start, which begins in this class."""
    root: Any = np.int64(NO_START)
    if window >= 0 and not classes.classes[target].closed:
        root = cursor.end
        start = classes.starts[root]
        start.time, start.parent = time, root
        cursor.end += 1
    join(classes, cursor, target, 1, root)


@inlined
def update_wake(classes: Classes, cursor: Cursor) -> None:
    wake = classes.classes[FIRST_CLASS].wake
    for i in range(cursor.live):
        wake |= classes.classes[classes.live[i]].wake
    cursor.wake = wake


@inlined
def close(classes: Classes, cursor: Cursor) -> None:
    """Ends the key: its starts that are open remain without a match."""
    for i in range(cursor.live):
        left = classes.classes[classes.live[i]]
        left.left += left.count
        left.count = 0
    cursor.live = cursor.first = cursor.end = 0
    update_wake(classes, cursor)
