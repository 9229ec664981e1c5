"""What is open for each key, and copies of it from before, its forks, to which a key can go back.

A fork is made before a key's next events whenever it has had so many (`every`) since the last one. The closer to the
present, the closer they are: of three the middle one is let go where the outer ones are near enough, so that a key has
few (their number grows with the logarithm of its events), and what is gone through again is about as much as comes
behind the late event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError
from cepheid.kernel.stages.layout import NO_TIME, Flags, Int32s, grown

NOTHING = -1
"""In place of its number in the kernel, for a fork at which nothing was open."""


KEY_STATE = np.dtype([(name, np.int64) for name in ("key", "number", "behind", "seen", "forked")])
"""For snapshots: a key, and what KeyStates has of it."""
FORK = np.dtype([(name, np.int64) for name in ("key", "behind", "step", "seen", "number")])
"""For snapshots: a key, and a Fork of it; those of a key stand together."""


class Fork(NamedTuple):
    behind: int
    """See `KeyStates.behind`."""
    step: int
    """The last step that it has."""
    seen: int
    """How many events of the key it has."""
    number: int


class ForkingKernel(Protocol):
    """What a kernel does for its keys, which are numbers."""

    @property
    def open_keys(self) -> Int32s:
        """Those that have something open, ascending."""

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) of each of the keys, whether it has something open."""

    def make_keys(self, keys: int) -> None:
        """Makes room for keys of numbers below `keys`."""

    def fork(self, source: Int32s, target: Int32s) -> None:
        """What is open for source[i] is open for target[i], too, of which nothing was; each goes on without the
        other.
        """

    def drop(self, keys: Int32s) -> None:
        """Nothing is open for these keys any more, and nothing is told of it."""


class KeyStates:
    """By the number of a key: where it stands. The kernel has other numbers, as it has the forks, too."""

    every = 256
    """Events of a key between two forks, at least. Measured in benchmarks/real_time.py: with fewer there are more
    calls of the kernel, which cost more than the events that need not be gone through again.
    """

    def __init__(self, kernel: ForkingKernel) -> None:
        self._kernel = kernel
        self.number: Int32s = np.zeros(0, np.int32)
        """The key's number in the kernel."""
        self.behind = np.zeros(0, np.int64)
        """Microseconds: an event before it is out of order, as later ones, or time, have passed already."""
        self.seen = np.zeros(0, np.int64)
        """How many events the key has had."""
        self.forked = np.zeros(0, np.int64)
        """How many it had had at its last fork; less than none where it has none."""
        self.forks: list[list[Fork]] = []
        """Of each key, the oldest first."""
        self._key: Int32s = np.zeros(0, np.int32)
        """The key of each number in the kernel; NOTHING for a fork's, and for one that is not used."""
        self._unused: list[int] = []

    def make_room(self, keys: int) -> None:
        """For keys of numbers below `keys`."""
        before = len(self.forks)
        if keys <= before:
            return
        more = 2 * keys
        self.number, self.behind = grown(self.number, more, NOTHING), grown(self.behind, more, NO_TIME)
        self.seen, self.forked = grown(self.seen, more), grown(self.forked, more, -self.every)
        self.forks += [[] for _ in range(more - before)]

    def numbers(self, keys: Int32s) -> Int32s:
        """The keys' numbers in the kernel; those that have none get one."""
        for key in keys[self.number[keys] == NOTHING].tolist():
            self.number[key] = self._new(key)
        numbers: Int32s = self.number[keys]
        return numbers

    def keys(self, numbers: Int32s) -> Int32s:
        """The keys of the kernel's numbers, without those of forks."""
        found: Int32s = self._key[numbers]
        own: Int32s = found[found != NOTHING]
        return own

    @property
    def open(self) -> Int32s:
        """The kernel's numbers of the keys that have something open, without those of forks."""
        numbers: Int32s = self._kernel.open_keys
        own: Int32s = numbers[self._key[numbers] != NOTHING]
        return own

    def fork(self, keys: Int32s, step: int) -> None:
        """Forks those of the keys that have had enough events since the last time; `step` is that of the last one."""
        due = keys[self.seen[keys] - self.forked[keys] >= self.every]
        if not len(due):
            return
        numbers = self.numbers(due)
        targets = self._copies(numbers, self._kernel.is_open(numbers))
        self.forked[due] = self.seen[due]
        rest = zip(self.behind[due].tolist(), self.seen[due].tolist(), targets, strict=True)
        let_go: list[int] = []
        for key, (behind, seen, number) in zip(due.tolist(), rest, strict=True):
            self.forks[key].append(Fork(behind, step, seen, number))
            let_go += _thinned(self.forks[key])
        self._drop(let_go)

    def move(self, keys: Int32s, behind: npt.NDArray[np.int64], seen: npt.NDArray[np.int64]) -> None:
        """The keys have come to a time, with so many further events."""
        self.behind[keys] = np.maximum(self.behind[keys], behind)
        self.seen[keys] += seen

    def go_back(self, keys: Int32s, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Each key goes back to before its time; the steps that it has then."""
        let_go, found = [], []
        for key, time in zip(keys.tolist(), times.tolist(), strict=True):
            forks = self.forks[key]
            while forks[-1].behind > time:
                let_go.append(forks.pop().number)
            found.append(forks[-1])
        before = self.number[keys]
        self._kernel.drop(before)
        self._drop(let_go)
        source = np.array([fork.number for fork in found], np.int32)
        self._kernel.fork(source[source != NOTHING], before[source != NOTHING])
        self.behind[keys] = [fork.behind for fork in found]
        self.seen[keys] = self.forked[keys] = [fork.seen for fork in found]
        return np.array([fork.step for fork in found], np.int64)

    def settle(self, least: int, step: int) -> tuple[npt.NDArray[np.int64], int]:
        """No event before `least` comes any more: lets go of forks that none can go back to. Returns for each key the
        step up to which nothing is gone through again, and the least time from which what was open may be.
        """
        points, oldest, let_go = np.full(len(self.forks), step, np.int64), least, []
        for key in np.flatnonzero(self.forked >= 0).tolist():
            forks = self.forks[key]
            if self.behind[key] <= least:
                let_go += [fork.number for fork in forks]
                forks.clear()
                self.seen[key], self.forked[key] = 0, -self.every
                continue
            while len(forks) > 1 and forks[1].behind <= least:
                let_go.append(forks.pop(0).number)
            points[key] = forks[0].step
            if forks[0].number != NOTHING:
                oldest = min(oldest, forks[0].behind)
        self._drop(let_go)
        return points, oldest

    def over(self) -> Int32s:
        """Lets go of the keys that have no forks and nothing open; which they are."""
        used = np.flatnonzero(self._is_settled).astype(np.int32)
        over: Int32s = used[~self._kernel.is_open(self.number[used])]
        self._drop(self.number[over].tolist())
        self.number[over], self.behind[over], self.seen[over] = NOTHING, NO_TIME, 0
        return over

    @property
    def settled(self) -> Int32s:
        """The kernel's numbers of the keys that have no forks."""
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
        """All that is here, as arrays."""
        used = self.used
        columns = (used, self.number[used], self.behind[used], self.seen[used], self.forked[used])
        keys = zip(*(column.tolist() for column in columns), strict=True)
        forks = [(key, *fork) for key in used.tolist() for fork in self.forks[key]]
        return {"key_states": np.array([*keys], KEY_STATE), "forks": np.array(forks, FORK)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Goes on from what `state` gave; the kernel is restored, and nothing is here yet.

        Raises:
            SnapshotError: it does not fit the kernel.
        """
        states, forks = state["key_states"], state["forks"]
        typed = states.dtype == KEY_STATE and forks.dtype == FORK
        if not (typed and _agree(states, forks, self._kernel.open_keys)):
            raise SnapshotError("the snapshot's forks are not those of its partial matches")
        self.make_room(int(states["key"].max(initial=-1)) + 1)
        for name in ("number", "behind", "seen", "forked"):
            getattr(self, name)[states["key"]] = states[name]
        for key, *fork in forks.tolist():
            self.forks[key].append(Fork(*fork))
        numbers = np.concatenate([states["number"], forks["number"]])
        length = int(numbers.max(initial=-1)) + 1
        self._key = np.full(length, NOTHING, np.int32)
        self._key[states["number"]] = states["key"]
        self._unused = np.setdiff1d(np.arange(length), numbers).tolist()
        self._kernel.make_keys(length)

    def _copies(self, numbers: Int32s, is_open: Flags) -> list[int]:
        """Copies of what is open; NOTHING where nothing is."""
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
    """Whether each number in the kernel is of one key or fork, and each fork of a key that says so."""
    numbers = np.concatenate([states["number"], forks["number"][forks["number"] != NOTHING]])
    keys, forked = states["key"], states["key"][states["forked"] >= 0]
    once = len(np.unique(numbers)) == len(numbers) and len(np.unique(keys)) == len(keys)
    ascends = (np.diff(forks["step"])[np.diff(forks["key"]) == 0] > 0).all()
    known = np.isin(open_keys, numbers).all() and np.array_equal(np.unique(forks["key"]), forked)
    return bool(once and ascends and known and (numbers >= 0).all() and (keys >= 0).all())


def _thinned(forks: list[Fork]) -> list[int]:
    """Takes out what is closer to its neighbours than it need be; the numbers that it had."""
    last, let_go, at = forks[-1].seen, [], len(forks) - 2
    while at > 0:
        if last - forks[at - 1].seen <= 2 * (last - forks[at + 1].seen):
            let_go.append(forks.pop(at).number)
        at -= 1
    return let_go
