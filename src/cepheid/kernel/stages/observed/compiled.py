"""The compiled kernel that also counts what becomes of each start."""

from __future__ import annotations

from collections import Counter

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.stages.tables import Tables
from cepheid.compile.stages.untils import Untils
from cepheid.kernel.arrays import Events, Flags, Int32s, Visits, grown
from cepheid.kernel.stages.before.looking_back import LookingBackKernel
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.kernel.stages.layout import MATCHED_START, NO_END, START_END, FateCode, Starts
from cepheid.kernel.stages.observed.fates import Fate
from cepheid.kernel.stages.observed.tally import Stop, Tally


class CountingKernel(CompiledKernel):
    """The compiled kernel that also records starts. It counts those that are closed when the working set changes."""

    starts: Starts

    def __init__(self, tables: Tables, untils: Untils | None = None, *, capacity: int = 1024) -> None:
        """`untils` of the pattern; None if no loop has an `until`."""
        super().__init__(tables, capacity=capacity)
        self._tally = Tally()
        self.starts = _new_starts(_no_untils(tables) if untils is None else untils)

    def run(self, events: Events, visits: Visits) -> Emitted:
        room = len(events.time)
        if len(self.starts.ends) < room:
            taken, ends = grown(self.starts.taken, room), grown(self.starts.ends, room)
            ends["fate"][len(self.starts.ends) :] = NO_END
            self.starts = self.starts._replace(ends=ends, taken=taken)
        return super().run(events, visits)

    def _hold(self, also: Ints) -> Int32s:
        used = int(self.cursor.event)
        held = super()._hold(also)
        self._count(used, held)
        return held

    def tally(self) -> Tally:
        """The counts of all starts. Call it after the last key is closed."""
        self.hold()
        return self._tally

    def _count(self, used: int, held: Int32s) -> None:
        """Counts the starts among the `used` events that are closed. The others are named by their new positions."""
        now = self._open_starts()
        before = held[now]
        ends, taken = self.starts.ends[:used], self.starts.taken[:used]
        closed = ends["fate"] != NO_END
        closed[before] = False
        self._tally.add(_tally_of(ends["fate"][closed], ends["reached"][closed], ends["by"][closed], taken[closed]))
        stay = ends[before], taken[before]
        ends["fate"], taken[:] = NO_END, False
        ends[now], taken[now] = stay

    def _open_starts(self) -> Ints:
        """The positions of the first events of all that is open and of all matches that wait."""
        partials, cursor = self.partials, self.cursor
        live = partials.rows["start"][partials.parked.live[: cursor.parked_live]]
        return np.union1d(live, partials.parked.completed["start"][: cursor.parked_completed])


def _no_untils(tables: Tables) -> Untils:
    return Untils(len(tables.stage_slots) - 1, np.zeros((len(tables.states), 0), np.int64))


def _new_starts(untils: Untils) -> Starts:
    taken = np.zeros((0, untils.first), np.bool_)
    return Starts(np.zeros(0, START_END), taken, np.zeros(1, np.int64), untils.masks)


def _tally_of(fate: Int32s, reached: Int32s, by: Int32s, taken: Flags) -> Tally:
    """The counts of closed starts, from the fields of START_END and the flags of Starts."""
    stopped = fate != MATCHED_START
    shape = taken.shape[1], len(FateCode), int(by.max(initial=NONE)) + 2
    code = np.ravel_multi_index((reached[stopped], fate[stopped], by[stopped] + 1), shape)
    counts = np.bincount(code)
    ends = np.flatnonzero(counts)
    each = zip(*(numbers.tolist() for numbers in (*np.unravel_index(ends, shape), counts[ends])), strict=True)
    return Tally(
        matched=len(fate) - int(np.count_nonzero(stopped)),
        reached=Counter(dict(enumerate(np.count_nonzero(taken, axis=0).tolist()))),
        stopped=Counter(
            {
                Stop(at, Fate[FateCode(code).name], None if number == 0 else number - 1): count
                for at, code, number, count in each
            }
        ),
    )


class CountingLookingBackKernel(CountingKernel, LookingBackKernel):
    """The same for patterns with `begin_without`."""
