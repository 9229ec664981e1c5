"""The matcher for interval patterns: it processes events as they arrive, in any order of time, and emits at once what
is certain or, in real time, what holds for now. No I/O, no clock, no threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.intervals.compiled import reordered
from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.intervals.layout import LATE, RETRACTION, EmittedIntervals
from cepheid.kernel.intervals.state import kernel_state, restore_kernel
from cepheid.lang.consistency import Consistency
from cepheid.matchers.intervals.joiner import IntervalJoiner
from cepheid.matchers.snapshot import Snapshot, ids_of, to_bytes
from cepheid.matchers.working_set import joint_error

_PIECE = 1 << 15
"""Events processed at once; between pieces, events that are not needed may be forgotten."""


class LiveIntervalMatcher(IntervalJoiner):
    """Finds one interval pattern in whole events."""

    def process(self, batch: Batch) -> pa.Table:
        """The rows that these events make.

        Raises:
            ConditionError, LimitExceeded: the matcher cannot be used afterwards.
        """
        rows = [self._maker.schema.empty_table()]
        for start in range(0, len(batch), _PIECE):
            piece = batch.slice(start, min(start + _PIECE, len(batch)))
            self._add(piece)
            self._choose_order()
            try:
                emitted = self.kernel.run(self._events, len(self.working_set))
            except JointConditionFailed as failed:
                raise joint_error(failed, self.working_set, self.pattern.plan.pattern.variables) from failed
            self._number_duplicates(len(piece))
            self._number_late(emitted)
            rows.append(self._rows(emitted))
            is_last = start + _PIECE >= len(batch)
            if len(self.working_set) > self._most_held and not (is_last and self._is_shared):
                self.forget()
        return pa.concat_tables(rows)

    def switch(self, consistency: Consistency) -> pa.Table:
        """Changes the consistency; returns the rows of the matches that the new one lets be emitted at once."""
        return self._rows(self.kernel.switch(consistency))

    def advance_time(self, time: int) -> pa.Table:
        """Moves the clock to `time` (microseconds), as if an event had ended then. Returns the rows certain by then."""
        return self._rows(self.kernel.advance(time))

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows."""
        return self._rows(self.kernel.finish())

    @property
    def late(self) -> int:
        """The number of late events so far."""
        return int(self.kernel.cursor.late)

    @property
    def dropped(self) -> int:
        """The number of matches dropped so far because of `max_matches_per_event`."""
        return int(self.kernel.cursor.dropped)

    @property
    def open_matches(self) -> int:
        return self.kernel.open_matches

    @property
    def clock(self) -> int:
        return int(self.kernel.cursor.clock)

    @property
    def due(self) -> int:
        """Microseconds: once the clock is after this, a match becomes certain; FOREVER if none does."""
        return self.kernel.next_due

    @property
    def over(self) -> int:
        """Microseconds: without further events, nothing is open and no event is needed once the clock is after this."""
        return self.kernel.over(self._events)

    def forget(self) -> None:
        if len(self.working_set):
            self._keep(self.kernel.needed(self._events))

    def keep_only(self, names: Collection[bytes]) -> None:
        """Forgets all keys but those with these names (canonical bytes), with their events and open matches."""
        if not len(self.working_set):
            return
        named = zip(self.key_names, range(len(self._keys)), strict=True)
        others = np.array([number for name, number in named if name not in names], np.int32)
        self.kernel.drop(others, self._events)
        needed = self.kernel.needed(self._events)
        self._keep(needed[~np.isin(self._key[needed], others)])

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All held events and open matches; the arguments as in LiveMatcher.snapshot."""
        self.forget()
        header = {"made_for": made_for, "kept": kept, "ids": self.ids, "consistency": self.kernel.consistency.value}
        arrays, batches = self._stored_events()
        if self.late:
            batches["late"] = self._late.listed
        return to_bytes(Snapshot(header, {**kernel_state(self.kernel), "ordinal": self._ordinal, **arrays}, batches))

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        self.ids = ids_of(snapshot.header)
        if (held := self._restored_events(snapshot, columns)) is not None:
            self._add(held)
            self._take_ordinals(snapshot.arrays["ordinal"])
        restore_kernel(self.kernel, snapshot.arrays, self._events, len(self.working_set))
        self._late = LateOrdinals.restored(self.late, snapshot.batches.get("late"))
        self.kernel.consistency = Consistency(snapshot.header["consistency"])

    def _choose_order(self) -> None:
        """Chooses the order of joins by the rates of events, which does not change what is found."""
        if not self.pattern.has_rates and (rates := self._rates.looked_at()) is not None:
            self.pattern = self.kernel.pattern = reordered(self.pattern, rates)

    def _number_duplicates(self, added: int) -> None:
        """Gives the last `added` events their ordinals. Only events with equal times and keys are compared."""
        if not self._duplicate[-added:].any():
            return
        count = len(self.working_set)
        times = self._events.start[:count] * 31 + self._end * 37 + self._key  # a hash, rarely equal for different ones
        positions = np.flatnonzero(np.isin(times, times[self._duplicate])).astype(np.int32)
        seen: Counter[tuple[int, bytes]] = Counter()
        names = zip(self._key[positions].tolist(), self._identities(positions).to_pylist(), strict=True)
        for position, name in zip(positions.tolist(), names, strict=True):
            if position >= count - added:
                self._ordinal[position] = seen[name]
            seen[name] = max(seen[name], int(self._ordinal[position])) + 1

    def _number_late(self, emitted: EmittedIntervals) -> None:
        """Gives late events their ordinals."""
        late = emitted.event[emitted.sign == LATE].astype(np.int32)
        if len(late):
            self._ordinal[late] = self._late.of(self._identities(late))

    def _take_ordinals(self, ordinals: npt.NDArray[Any]) -> None:
        if ordinals.shape != self._ordinal.shape or ordinals.dtype.kind != "i":
            raise SnapshotError("the snapshot's ordinals are not those of its events")
        self._ordinal = ordinals.astype(np.int32)

    def _rows(self, emitted: EmittedIntervals) -> pa.Table:
        if not len(emitted.event):
            return self._maker.schema.empty_table()
        if self.pattern.external_clock:
            emitted = emitted._replace(clock=self._made_at(emitted))
        return self._placed_rows(emitted)

    def _made_at(self, emitted: EmittedIntervals) -> Ints:
        """The times of rows with an external clock. For a match it is its end, or the end of the event that forbids it:
        so it does not depend on the clock. For a late event it is the watermark.
        """
        ends = np.where(
            emitted.sign == RETRACTION, self._end[np.minimum(emitted.event, len(self._end) - 1)], emitted.end
        )
        made_at: Ints = np.where(emitted.sign == LATE, emitted.clock - 1, ends)
        return made_at
