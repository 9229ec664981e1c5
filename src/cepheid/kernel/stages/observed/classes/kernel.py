"""Runs the kernel that counts starts by class, and owns its arrays."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from cepheid.compile.arrays import NONE, Ints, Records
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.kernel.arrays import Visits, grown
from cepheid.kernel.jit import compiling_alone
from cepheid.kernel.stages.layout import Cursor
from cepheid.kernel.stages.lookup.index import mixed
from cepheid.kernel.stages.observed.classes.layout import (
    CLASS,
    COUNTS,
    FIRST_CLASS,
    MOVE,
    MOVING,
    NO_CLASS,
    NO_START,
    START,
    Classes,
)
from cepheid.kernel.stages.observed.classes.moves import Moves, StartClass
from cepheid.kernel.stages.observed.classes.step import Status, run
from cepheid.kernel.stages.observed.fates import Fate
from cepheid.kernel.stages.observed.tally import Tally


class ClassKernel:
    """Counts what becomes of each start of a pattern whose partial matches are stored in sets. Matches are neither
    listed nor counted, and no limit applies. One key is open at a time.
    """

    def __init__(self, compiled: CompiledPattern, *, capacity: int = 1024) -> None:
        self._moves = Moves(compiled)
        self._window = int(compiled.tables.settings["window"][0])
        self._each = [self._moves.first]
        self._numbers = {self._moves.first: FIRST_CLASS}
        self._known = 0
        _warm_up()  # now, as events would have to wait for it
        self.classes = _new_classes(capacity if self._window >= 0 else 1)
        self.cursor = _new_counts()
        self.classes.classes["wake"] = self.cursor.wake = self._moves.wake(self._moves.first)

    def run(self, times: Ints, masks: Ints, visits: Visits) -> None:
        """Makes the visits to the events, of which the kernel retains none."""
        self.cursor.visit = self.cursor.event = 0
        while True:
            match run(times, masks, visits, self.classes, self.cursor, self._window):
                case Status.DONE:
                    return
                case Status.MOVE_MISSING:
                    self._learn(int(self.cursor.source), int(self.cursor.word))
                case _:
                    self._make_room()

    def tally(self) -> Tally:
        """The counts of all starts. Call it after the last key is closed."""
        tally = Tally()
        for one, entry in zip(self._each, self.classes.classes, strict=False):
            for fate, field in ((Fate.BROKEN, "ended"), (Fate.OUT_OF_TIME, "expired"), (Fate.STILL_OPEN, "left")):
                if count := int(entry[field]):
                    tally.add(_counted(one, fate, count))
        return tally

    def _learn(self, source: int, word: int) -> None:
        """Adds the move of a class at an event."""
        after = self._moves.after(self._each[source], word)
        target = NO_CLASS if after is None else self._number_of(after)
        self._known += 1
        if 2 * self._known > len(self.classes.moves):
            moves = self.classes.moves
            self.classes = self.classes._replace(moves=_no_moves(2 * len(moves)))
            for move in moves[moves["source"] != NO_CLASS]:
                self._add(*move.tolist())
        self._add(source, word, target)

    def _add(self, source: int, word: int, target: int) -> None:
        moves = self.classes.moves
        place = mixed(source, word) & (len(moves) - 1)
        while moves[place]["source"] != NO_CLASS:
            place = (place + 1) & (len(moves) - 1)
        moves[place] = source, word, target

    def _number_of(self, one: StartClass) -> int:
        number = self._numbers.setdefault(one, len(self._numbers))
        if number < len(self._each):
            return number
        self._each.append(one)
        classes = self.classes
        if number == len(classes.classes):
            room = 2 * number
            live, moving = grown(classes.live, room), grown(classes.moving, room)
            self.classes = classes._replace(classes=grown(classes.classes, room), live=live, moving=moving)
        entry = self.classes.classes[number]
        entry["wake"], entry["closed"] = self._moves.wake(one), not one.places
        return number

    def _make_room(self) -> None:
        """Forgets the starts that are not open any more. At least half of the room is then free."""
        starts, cursor, classes = self.classes.starts, self.cursor, self.classes.classes
        end = int(cursor.end)
        root = starts["parent"][:end].copy()
        while (root != (above := root[root])).any():
            root = above
        owner = starts["owner"][root[int(cursor.first) :]]
        open_ = owner != NO_CLASS
        kept, owner = np.flatnonzero(open_) + int(cursor.first), owner[open_]
        room = len(starts) if 2 * len(kept) <= len(starts) else 2 * len(starts)
        fresh = np.zeros(room, START)
        number, first = np.unique(owner, return_index=True)
        classes["root"][:] = NO_START
        classes["root"][number] = first
        fresh["time"][: len(kept)] = starts["time"][kept]
        fresh["parent"][: len(kept)] = classes["root"][owner]
        fresh["owner"][: len(kept)] = owner
        self.classes = self.classes._replace(starts=fresh)
        cursor.first, cursor.end = 0, len(kept)


@cache
def _warm_up() -> None:
    """Loads the compiled functions. Compiles them if they are not in the disk cache, one process at a time."""
    none, keys = np.zeros(0, np.int64), np.zeros(0, np.int32)
    with compiling_alone(__name__):
        run(none, none, Visits(keys, none, none, np.zeros(0, np.bool_)), _new_classes(1), _new_counts(), NONE)


def _new_classes(starts: int) -> Classes:
    """The class of what has not started, and room for so many starts."""
    return Classes(
        classes=np.zeros(1, CLASS),
        moves=_no_moves(64),
        live=np.zeros(1, np.int64),
        moving=np.zeros(1, MOVING),
        starts=np.zeros(starts, START),
    )


def _new_counts() -> Cursor:
    return np.zeros(1, COUNTS).view(np.recarray)[0]


def _no_moves(room: int) -> Records:
    moves = np.zeros(room, MOVE)
    moves["source"] = NO_CLASS
    return moves


def _counted(one: StartClass, fate: Fate, count: int) -> Tally:
    """The counts of so many starts of a class whose open partial matches all end so."""
    stop = one.ended(fate)
    return Tally(
        matched=count if stop is None else 0,
        reached=Counter(dict.fromkeys(one.taken, count)),
        stopped=Counter() if stop is None else Counter({stop: count}),
    )
