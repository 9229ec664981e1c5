"""Rollback points: copies of a key's open partial matches (forks in the kernel), to which the key can be rolled back.

A point is made before a key's next events whenever it has had `every` events since the last point. Points are closer
together towards the present: the middle one of three is removed if the outer ones are near enough to each other. So a
key has few points: their number grows with the logarithm of its events. And a rollback replays about as many events as
came after the out-of-order one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError
from cepheid.kernel.arrays import NO_TIME, Flags, Int32s, grown
from cepheid.kernel.key_room import room_for

NOTHING = -1
"""Stands for a number in the kernel where nothing was open at the rollback point."""


KEY_STATE = np.dtype([(name, np.int64) for name in ("key", "number", "behind", "seen", "forked")])
"""For snapshots: a key, and the elements of RollbackPoints' arrays for it."""
FORK = np.dtype([(name, np.int64) for name in ("key", "behind", "step", "seen", "number")])
"""For snapshots: a key, and one of its RollbackPoints; the points of a key are adjacent."""


class RollbackPoint(NamedTuple):
    after: int
    """See `RollbackPoints.after`."""
    step: int
    """The last step that the copy includes."""
    seen: int
    """The number of the key's events that the copy includes."""
    number: int
    """The copy's number in the kernel, or NOTHING."""


class ForkingKernel(Protocol):
    """What a kernel offers for its keys, which are numbers."""

    @property
    def open_keys(self) -> Int32s:
        """The keys that have something open, ascending."""

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) whether each of the keys has something open."""

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies what is open for source[i] to target[i], which has nothing open; the copies are independent."""

    def drop(self, keys: Int32s) -> None:
        """Forgets what is open for these keys, without emitting anything."""


class RollbackPoints:
    """The state of each key, by its number. The kernel uses other numbers, as it also has the rollback points."""

    every = 256
    """The least number of a key's events between two points. Measured in benchmarks/real_time.py: a smaller number
    means more calls of the kernel, which cost more than the events that need not be replayed.
    """

    def __init__(self, kernel: ForkingKernel) -> None:
        self._kernel = kernel
        self.number: Int32s = np.zeros(0, np.int32)
        """The key's number in the kernel."""
        self.after = np.zeros(0, np.int64)
        """Microseconds: an event before this is out of order: later events or deadlines have been processed already."""
        self.seen = np.zeros(0, np.int64)
        """The number of events that the key has had."""
        self.forked = np.zeros(0, np.int64)
        """The value of `seen` at the key's last point; negative if it has none."""
        self.forks: list[list[RollbackPoint]] = []
        """Each key's points, the oldest first."""
        self._key: Int32s = np.zeros(0, np.int32)
        """The key of each number in the kernel; NOTHING for a point's number and for an unused one."""
        self._unused: list[int] = []

    def make_room(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        before = len(self.forks)
        if keys <= before:
            return
        more = 2 * keys
        self.number, self.after = grown(self.number, more, NOTHING), grown(self.after, more, NO_TIME)
        self.seen, self.forked = grown(self.seen, more), grown(self.forked, more, -self.every)
        self.forks += [[] for _ in range(more - before)]

    def numbers(self, keys: Int32s) -> Int32s:
        """The keys' numbers in the kernel; a key without a number gets one."""
        for key in keys[self.number[keys] == NOTHING].tolist():
            self.number[key] = self._new(key)
        numbers: Int32s = self.number[keys]
        return numbers

    def keys(self, numbers: Int32s) -> Int32s:
        """The keys that have these numbers in the kernel; numbers of rollback points are left out."""
        keys: Int32s = self._key[numbers]
        own: Int32s = keys[keys != NOTHING]
        return own

    @property
    def open(self) -> Int32s:
        """The numbers in the kernel of the keys that have something open, without those of rollback points."""
        numbers: Int32s = self._kernel.open_keys
        own: Int32s = numbers[self._key[numbers] != NOTHING]
        return own

    def fork(self, keys: Int32s, step: int) -> None:
        """Makes a point for each of the keys that has had enough events since its last; `step` is the latest step."""
        due = keys[self.seen[keys] - self.forked[keys] >= self.every]
        if not len(due):
            return
        numbers = self.numbers(due)
        targets = self._copies(numbers, self._kernel.is_open(numbers))
        self.forked[due] = self.seen[due]
        rest = zip(self.after[due].tolist(), self.seen[due].tolist(), targets, strict=True)
        removed: list[int] = []
        for key, (after, seen, number) in zip(due.tolist(), rest, strict=True):
            self.forks[key].append(RollbackPoint(after, step, seen, number))
            removed += _thinned(self.forks[key])
        self._drop(removed)

    def move(self, keys: Int32s, after: npt.NDArray[np.int64], seen: npt.NDArray[np.int64]) -> None:
        """Moves each key on to its time in `after` (microseconds), after `seen` further events."""
        self.after[keys] = np.maximum(self.after[keys], after)
        self.seen[keys] += seen

    def roll_back(self, keys: Int32s, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rolls each key back to its last point that is not after its time; returns the step of that point."""
        removed, points = [], []
        for key, time in zip(keys.tolist(), times.tolist(), strict=True):
            forks = self.forks[key]
            while forks[-1].after > time:
                removed.append(forks.pop().number)
            points.append(forks[-1])
        before = self.number[keys]
        self._kernel.drop(before)
        self._drop(removed)
        source = np.array([point.number for point in points], np.int32)
        self._kernel.fork(source[source != NOTHING], before[source != NOTHING])
        self.after[keys] = [point.after for point in points]
        self.seen[keys] = self.forked[keys] = [point.seen for point in points]
        return np.array([point.step for point in points], np.int64)

    def settle(self, least: int, step: int) -> tuple[npt.NDArray[np.int64], int]:
        """Removes points that are not needed once events before `least` (microseconds) are late. Returns two things:
        for each key the step up to which nothing will be replayed, and the earliest time (microseconds) of a point that
        still has open partial matches, or `least`.
        """
        points, oldest, removed = np.full(len(self.forks), step, np.int64), least, []
        for key in np.flatnonzero(self.forked >= 0).tolist():
            forks = self.forks[key]
            if self.after[key] <= least:
                removed += [fork.number for fork in forks]
                forks.clear()
                self.seen[key], self.forked[key] = 0, -self.every
                continue
            while len(forks) > 1 and forks[1].after <= least:
                removed.append(forks.pop(0).number)
            points[key] = forks[0].step
            if forks[0].number != NOTHING:
                oldest = min(oldest, forks[0].after)
        self._drop(removed)
        return points, oldest

    def remove_closed(self) -> Int32s:
        """Removes and returns the keys that have no rollback points and nothing open."""
        used = np.flatnonzero(self._is_settled).astype(np.int32)
        closed: Int32s = used[~self._kernel.is_open(self.number[used])]
        self._drop(self.number[closed].tolist())
        self.number[closed], self.after[closed], self.seen[closed] = NOTHING, NO_TIME, 0
        return closed

    @property
    def settled(self) -> Int32s:
        """The numbers in the kernel of the keys that have no rollback points."""
        numbers: Int32s = self.number[self._is_settled]
        return numbers

    @property
    def _is_settled(self) -> Flags:
        settled: Flags = (self.number != NOTHING) & (self.forked < 0)
        return settled

    @property
    def used(self) -> Int32s:
        """The keys that have a number in the kernel, ascending."""
        return np.flatnonzero(self.number != NOTHING).astype(np.int32)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The keys' states and rollback points, as arrays for a snapshot."""
        used = self.used
        columns = (used, self.number[used], self.after[used], self.seen[used], self.forked[used])
        keys = zip(*(column.tolist() for column in columns), strict=True)
        forks = [(key, *fork) for key in used.tolist() for fork in self.forks[key]]
        return {"key_states": np.array([*keys], KEY_STATE), "forks": np.array(forks, FORK)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continues from what `state` returned. The kernel must be restored already, and this object empty.

        Raises:
            SnapshotError: the state does not fit the kernel.
        """
        states, forks = state["key_states"], state["forks"]
        typed = states.dtype == KEY_STATE and forks.dtype == FORK
        if not (typed and _agree(states, forks, self._kernel.open_keys)):
            raise SnapshotError("the snapshot's forks are not those of its partial matches")
        self.make_room(room_for(states["key"]))
        keys = states["key"]
        self.number[keys], self.after[keys] = states["number"], states["behind"]
        self.seen[keys], self.forked[keys] = states["seen"], states["forked"]
        for key, *fork in forks.tolist():
            self.forks[key].append(RollbackPoint(*fork))
        numbers = np.concatenate([states["number"], forks["number"]])
        length = room_for(numbers)
        self._key = np.full(length, NOTHING, np.int32)
        self._key[states["number"]] = states["key"]
        self._unused = np.setdiff1d(np.arange(length), numbers).tolist()
        self._kernel.make_keys(length)

    def _copies(self, numbers: Int32s, is_open: Flags) -> list[int]:
        """The numbers of copies of what is open; NOTHING where nothing is open."""
        targets = [self._new(NOTHING) if there else NOTHING for there in is_open.tolist()]
        copies = np.array(targets, np.int32)[is_open]
        self._kernel.fork(numbers[is_open], copies)
        return targets

    def _new(self, key: int) -> int:
        if not self._unused:
            before = len(self._key)
            self._key = grown(self._key, max(1, 2 * before), NOTHING)
            self._unused += range(len(self._key) - 1, before - 1, -1)
            self._kernel.make_keys(len(self._key))
        number = self._unused.pop()
        self._key[number] = key
        return number

    def _drop(self, numbers: list[int]) -> None:
        dropped = np.array([number for number in numbers if number != NOTHING], np.int32)
        self._kernel.drop(dropped)
        self._key[dropped] = NOTHING
        self._unused += dropped.tolist()


def _agree(states: npt.NDArray[Any], forks: npt.NDArray[Any], open_keys: Int32s) -> bool:
    """Whether each number in the kernel belongs to one key or one point, and each point to a key that has points. The
    points of a key must be in order.
    """
    numbers = np.concatenate([states["number"], forks["number"][forks["number"] != NOTHING]])
    keys, forked = states["key"], states["key"][states["forked"] >= 0]
    once = len(np.unique(numbers)) == len(numbers) and len(np.unique(keys)) == len(keys)
    ascends = (np.diff(forks["step"])[np.diff(forks["key"]) == 0] > 0).all()
    known = np.isin(open_keys, numbers).all() and np.array_equal(np.unique(forks["key"]), forked)
    return bool(once and ascends and known and (numbers >= 0).all() and (keys >= 0).all())


def _thinned(forks: list[RollbackPoint]) -> list[int]:
    """Removes points that are closer to their neighbours than necessary; returns their numbers."""
    last, removed, at = forks[-1].seen, [], len(forks) - 2
    while at > 0:
        if last - forks[at - 1].seen <= 2 * (last - forks[at + 1].seen):
            removed.append(forks.pop(at).number)
        at -= 1
    return removed
