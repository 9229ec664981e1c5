"""Runs the compiled kernel for patterns with `begin_without`: it also stores the earlier events that may matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.tables import Tables
from cepheid.errors import SnapshotError
from cepheid.events.batch import TIME, Batch
from cepheid.events.identity import as_integers
from cepheid.kernel.arrays import FOREVER, Events, Flags, Int32s, Visits, grown, ranges
from cepheid.kernel.scripts.interpreter import NO_FAILURE
from cepheid.kernel.stages.before.look_back import look_back
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.kernel.stages.layout import EARLIER, Earlier

STORED = np.dtype([("key", np.int64), ("event", np.int64)])
"""An earlier event in a snapshot: the number of its key, and its place among the held events."""


class LookingBackKernel(CompiledKernel):
    """The compiled kernel, with earlier events. A key that has some is open, and has a deadline when the first of them
    is too long ago.
    """

    def __init__(self, tables: Tables, *, capacity: int = 1024) -> None:
        super().__init__(tables, capacity=capacity)
        self.earlier = _new_earlier(len(self.partials.parked.keys))
        self._used = 0
        self._slots = np.zeros((1, len(tables.slots)), np.int64)

    def run(self, events: Events, visits: Visits) -> Emitted:
        self.make_keys(int(visits.key.max(initial=-1)) + 1)
        self._make_room_for_earlier(visits)
        scratch = self.partials._replace(slots=self._slots)
        self._used = look_back(self.tables, events, visits, self.earlier, self._used, scratch, self.cursor, self.stack)
        if self.cursor.failure != NO_FAILURE:
            raise self._failure()
        return super().run(events, visits)

    def hold(self) -> Int32s:
        self._pack_earlier()
        earlier = self.earlier.events[: self._used]
        held = self._hold(earlier)
        earlier[:] = np.searchsorted(held, earlier)
        return held

    @property
    def size(self) -> int:
        return super().size + self._used

    def is_open(self, keys: Int32s) -> Flags:
        entries = self.earlier.keys[keys]
        flags: Flags = super().is_open(keys) | (entries["end"] > entries["first"])
        return flags

    @property
    def open_keys(self) -> Int32s:
        return np.union1d(super().open_keys, self._keys_with_earlier).astype(np.int32)

    def first_starts(self, keys: Int32s, times: Ints) -> list[int]:
        """As for any kernel; FOREVER for a key that only has earlier events."""
        starts, started = np.full(len(keys), FOREVER), super().is_open(keys)
        starts[started] = super().first_starts(keys[started], times)
        return starts.tolist()

    def due(self, time: int) -> Int32s:
        ending = np.flatnonzero(self.earlier.due <= time)
        return np.union1d(super().due(time), ending).astype(np.int32)

    @property
    def next_due(self) -> int:
        return min(super().next_due, int(self.earlier.due.min(initial=FOREVER)))

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        earlier = self.earlier
        try:
            with super().only(keys):
                yield
        finally:
            self.earlier = earlier

    def renumber(self, keys: Int32s) -> None:
        super().renumber(keys)
        self.earlier = self.earlier._replace(keys=self.earlier.keys[keys], due=self.earlier.due[keys])

    def fork(self, source: Int32s, target: Int32s) -> None:
        super().fork(source, target)
        self.earlier.keys[target], self.earlier.due[target] = self.earlier.keys[source], self.earlier.due[source]

    def drop(self, keys: Int32s) -> None:
        super().drop(keys)
        self.earlier.keys[keys], self.earlier.due[keys] = np.zeros((), EARLIER), FOREVER

    def make_keys(self, keys: int) -> None:
        super().make_keys(keys)
        earlier, length = self.earlier, len(self.partials.parked.keys)
        if len(earlier.keys) < length:
            self.earlier = earlier._replace(keys=grown(earlier.keys, length), due=grown(earlier.due, length, FOREVER))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        keys = self._keys_with_earlier
        entries = self.earlier.keys[keys]
        stored = np.empty(self._used, STORED)
        stored["key"] = np.repeat(keys, entries["end"] - entries["first"])
        stored["event"] = self.earlier.events[: self._used]
        return {**super().state(), "earlier": stored}

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        stored = _checked(state["earlier"], len(state["keys"]), 0 if held is None else len(held))
        super().restore(state, held)
        self.earlier = _new_earlier(len(self.partials.parked.keys), stored["event"])
        self._used = len(stored)
        if held is None or not self._used:
            return
        keys, first, count = np.unique(stored["key"], return_index=True, return_counts=True)
        self.earlier.keys["first"][keys], self.earlier.keys["end"][keys] = first, first + count
        times = as_integers(held.column(TIME))
        assert times is not None
        self.earlier.due[keys] = times[stored["event"][first]] + int(self.tables.settings["without"][0]) + 1

    @property
    def _keys_with_earlier(self) -> Ints:
        return np.flatnonzero(self.earlier.keys["end"] > self.earlier.keys["first"])

    def _pack_earlier(self) -> None:
        """Frees the unused entries; those of a key stay next to each other, and keys are in order."""
        keys = self._keys_with_earlier
        entries = self.earlier.keys[keys]
        events = self.earlier.events[ranges(entries["first"], entries["end"])]
        ends = np.cumsum(entries["end"] - entries["first"])
        self.earlier.keys["first"][keys] = ends - (entries["end"] - entries["first"])
        self.earlier.keys["end"][keys] = ends
        if len(events) > len(self.earlier.events):  # copies of a key had the same entries, now each has its own
            self.earlier = self.earlier._replace(events=np.zeros(2 * len(events), np.int64))
        self.earlier.events[: len(events)] = events
        self._used = len(events)

    def _make_room_for_earlier(self, visits: Visits) -> None:
        """Makes room for what `look_back` stores. At least half is then free, so the cost of packing is amortized."""
        entries = self.earlier.keys[visits.key]
        more = _most_stored(visits, int(self.cursor.event), entries["end"] - entries["first"])
        if self._used + more <= len(self.earlier.events):
            return
        self._pack_earlier()
        if len(self.earlier.events) < 2 * (self._used + more):
            self.earlier = self.earlier._replace(events=grown(self.earlier.events, 4 * (self._used + more)))


def _most_stored(visits: Visits, first: int, stored: Ints) -> int:
    """How many events `look_back` stores at most. The visits' events begin at `first`; `stored` has, for each visit,
    how many are stored for its key before. A visit stores all that the visits before it have left of its key again; one
    that closes the key leaves nothing.
    """
    order = np.argsort(visits.key, kind="stable")
    keys, counts = visits.key[order], np.diff(visits.end, prepend=first)[order]
    is_first, after_close = np.diff(keys, prepend=-1) != 0, np.zeros(len(keys), np.bool_)
    after_close[1:] = visits.closes[order][:-1]
    begins = np.flatnonzero(is_first | after_close)
    so_far = np.cumsum(counts)
    left = np.where(is_first[begins], stored[order][begins], 0) - (so_far - counts)[begins]
    return int((so_far + np.repeat(left, np.diff(begins, append=len(keys)))).sum())


def _new_earlier(keys: int, events: npt.ArrayLike = ()) -> Earlier:
    return Earlier(np.zeros(keys, EARLIER), np.full(keys, FOREVER), np.array(events, np.int64))


def _checked(stored: npt.NDArray[Any], keys: int, held: int) -> npt.NDArray[Any]:
    """The earlier events of a snapshot.

    Raises:
        SnapshotError: they are of another type, not in order, or point to keys or events that are not there.
    """
    fits = stored.dtype == STORED and stored.ndim == 1
    if not fits or any(
        ((stored[name] < 0) | (stored[name] >= most)).any() for name, most in (("key", keys), ("event", held))
    ):
        raise SnapshotError(
            "the snapshot's earlier events are not those of this pattern, or point to none that is held"
        )
    keys_, events = np.diff(stored["key"]), np.diff(stored["event"])
    if ((keys_ < 0) | ((keys_ == 0) & (events <= 0))).any():
        raise SnapshotError("the snapshot's earlier events are not in order")
    return stored
