"""The matcher of interval patterns: events are taken as they arrive, in any order of time, and what is certain, or in
real time what holds for now, is told at once. No I/O, no clock, no threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.compile.stages.tables import Ints
from cepheid.errors import SnapshotError
from cepheid.events.batch import ORDINAL, TIME, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel.intervals.kernel import IntervalKernel
from cepheid.kernel.intervals.layout import LATE, RETRACTION, IntervalEvents, ToldIntervals
from cepheid.kernel.intervals.state import kernel_state, restore_kernel
from cepheid.kernel.stages.kernel import JointConditionFailed
from cepheid.kernel.stages.layout import Int32s, distinct
from cepheid.lang.intervals.values import Consistency, End
from cepheid.matchers.key_numbers import KeyNumbers
from cepheid.matchers.snapshot import Snapshot, fitting, opened, to_bytes
from cepheid.matchers.working_set import WorkingSet, joint_error, mask_of
from cepheid.output.intervals import END, identity, told_rows, told_schema
from cepheid.plan.intervals.bounds import FREE
from cepheid.plan.intervals.plan import IntervalPlan

_PIECE = 1 << 14
"""Events taken at once: memory is looked through between pieces."""
_LEAST_HELD = 1 << 15
"""Events that are held before what is not needed any more is looked for."""


class LiveIntervalMatcher:
    """Finds one interval pattern. Batches have the events in the order of their arrival, with their starts as `_time`
    and their ends as `_end`.
    """

    def __init__(self, pattern: CompiledIntervals) -> None:
        tables = pattern.tables
        constants = tables.constants.copy()  # those that are strings change with every working set
        self.pattern = replace(pattern, tables=tables._replace(constants=constants, settings=tables.settings.copy()))
        self.kernel = IntervalKernel(self.pattern, pattern.plan.pattern.consistency)
        self.working_set = WorkingSet(self.pattern)
        self.keys = KeyNumbers()
        self._end = np.zeros(0, np.int64)
        self._key = np.zeros(0, np.int64)
        self._ordinal = np.zeros(0, np.int32)
        """How many held events before it are the same in all that an event is known by; of a late event what tells it
        from equal ones.
        """
        self._twin = np.zeros(0, np.bool_)
        self._late = LateOrdinals()
        self._most_held = _LEAST_HELD

    def process(self, batch: Batch) -> pa.Table:
        """The rows that these events make: see `told_schema`.

        Raises:
            ConditionError, LimitExceeded: the matcher is of no use afterwards.
        """
        rows = [told_schema(self.pattern.plan).empty_table()]
        for start in range(0, len(batch), _PIECE):
            piece = batch.slice(start, min(start + _PIECE, len(batch)))
            self._add(piece)
            try:
                told = self.kernel.run(self._events, len(self.working_set))
            except JointConditionFailed as failed:
                raise joint_error(failed, self.working_set, self.pattern.plan.pattern.variables) from failed
            self._number_twins(len(piece))
            self._number_late(told)
            rows.append(self._rows(told))
            if len(self.working_set) > self._most_held:
                self.forget()
        return pa.concat_tables(rows)

    def switch(self, consistency: Consistency) -> pa.Table:
        """The rows that the change makes: in real time all matches that hold for now and are not told yet."""
        return self._rows(self.kernel.switch(consistency))

    def advance_time(self, time: int) -> pa.Table:
        """The rows that are certain once the clock is at `time`, in microseconds, as if an event had ended then."""
        return self._rows(self.kernel.advance(time))

    def finish(self) -> pa.Table:
        """The rows of all matches that are left: no event comes any more."""
        return self._rows(self.kernel.finish())

    @property
    def late(self) -> int:
        """How many events were late so far."""
        return int(self.kernel.cursor.late)

    @property
    def dropped(self) -> int:
        """How many matches were over `max_matches_per_event` and dropped so far."""
        return int(self.kernel.cursor.dropped)

    @property
    def open_matches(self) -> int:
        """Matches that an event to come could forbid, or that wait until none can."""
        return self.kernel.open_matches

    @property
    def clock(self) -> int:
        """Microseconds."""
        return int(self.kernel.cursor.clock)

    @property
    def due(self) -> int:
        """Microseconds: once the clock is behind it, a match is certain; FOREVER if none ever is."""
        return self.kernel.next_due

    @property
    def over(self) -> int:
        """Microseconds: once the clock is behind it and no event has come, nothing is open and no event is needed."""
        return self.kernel.over(self._events)

    @property
    def held(self) -> int:
        """How many events are in memory."""
        return len(self.working_set)

    def forget(self) -> None:
        """Forgets the events that no match to come can be about, and that no open one is about."""
        if self.working_set.all is None:
            return
        positions = self.kernel.needed(self._events)
        self.working_set.keep(positions)
        self._end, self._key = self._end[positions], self._key[positions]
        self._ordinal, self._twin = self._ordinal[positions], self._twin[positions]
        self._free_keys()
        self.kernel.keep(positions, self._events)
        self._most_held = max(_LEAST_HELD, 2 * len(positions))

    def _free_keys(self) -> None:
        """Frees the numbers of keys that have no event, before the kernel orders all by them."""
        used = np.unique(self._key)
        self.keys.free(np.setdiff1d(np.array([*self.keys.number_of.values()], np.int32), used).astype(np.int32))
        if self.keys.is_sparse:
            number = np.zeros(len(self.keys.name_of), np.int64)
            before = self.keys.renumbered()
            number[before] = np.arange(len(before))
            self._key = number[self._key]

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All that is held and open; the arguments as in LiveMatcher.snapshot."""
        self.forget()
        header = {"made_for": made_for, "kept": kept, "consistency": self.kernel.consistency.value}
        held = self.working_set.all
        batches = {} if held is None else {"held": held.data}
        if self.late:
            batches["late"] = self._late.listed
        return to_bytes(Snapshot(header, {**kernel_state(self.kernel), "ordinal": self._ordinal}, batches))

    @staticmethod
    def restored(
        pattern: CompiledIntervals, data: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[LiveIntervalMatcher, dict[str, Any]]:
        """A matcher that is where the one was that wrote the snapshot, and what the host had kept; `columns` are those
        of its batches.

        Raises:
            SnapshotError: it is damaged, or of another pattern or other columns.
        """
        snapshot = opened(data, made_for)
        matcher = LiveIntervalMatcher(pattern)
        with fitting():
            if (held := snapshot.batches.get("held")) is not None:
                if held.schema != columns:
                    raise SnapshotError(f"the snapshot's events have other columns: {held.schema}")
                matcher._add(Batch(held))
                matcher._take_ordinals(snapshot.arrays["ordinal"])
            restore_kernel(matcher.kernel, snapshot.arrays, matcher._events, len(matcher.working_set))
            matcher._late = LateOrdinals.restored(matcher.late, snapshot.batches.get("late"))
            matcher.kernel.consistency = Consistency(snapshot.header["consistency"])
            kept: dict[str, Any] = snapshot.header["kept"]
        return matcher, kept

    def _add(self, batch: Batch) -> None:
        numbers = self.keys.numbers(batch) if batch.keys else np.zeros(len(batch), np.int64)
        self.working_set.add(batch)
        self._end = np.concatenate([self._end, batch.column(END).cast(pa.int64()).to_numpy()])
        self._key = np.concatenate([self._key, numbers.astype(np.int64)])
        self._ordinal = np.concatenate([self._ordinal, np.zeros(len(batch), np.int32)])
        self._twin = np.concatenate([self._twin, np.zeros(len(batch), np.bool_)])

    def _number_twins(self, added: int) -> None:
        """Gives the last events, so many, their ordinals. Only those whose times another has are looked at."""
        if not self._twin[-added:].any():
            return
        count = len(self.working_set)
        times = self._events.start[:count] * 31 + self._end * 37 + self._key  # of different ones rarely equal
        positions = np.flatnonzero(np.isin(times, times[self._twin])).astype(np.int32)
        seen: Counter[bytes] = Counter()
        for position, name in zip(positions.tolist(), self._identities(positions).to_pylist(), strict=True):
            if position >= count - added:
                self._ordinal[position] = seen[name]
            seen[name] = max(seen[name], int(self._ordinal[position])) + 1

    def _number_late(self, told: ToldIntervals) -> None:
        """Gives those that were late their ordinals."""
        late = told.event[told.sign == LATE].astype(np.int32)
        if len(late):
            self._ordinal[late] = self._late.of(self._identities(late))

    def _identities(self, positions: Int32s) -> pa.Array:
        found = self.working_set.take(positions)
        return canonical_bytes(identity(self.pattern.plan, found), len(found))

    def _take_ordinals(self, ordinals: npt.NDArray[Any]) -> None:
        if ordinals.shape != self._ordinal.shape or ordinals.dtype.kind != "i":
            raise SnapshotError("the snapshot's ordinals are not those of its events")
        self._ordinal = ordinals.astype(np.int32)

    @property
    def _events(self) -> IntervalEvents:
        time, mask, values, missing = self.working_set.events
        return IntervalEvents(time, self._end, self._key, mask, self._twin, values, missing)

    def _rows(self, told: ToldIntervals) -> pa.Table:
        if not len(told.event):
            return told_schema(self.pattern.plan).empty_table()
        late = told.sign == LATE
        if self.pattern.told:
            told = told._replace(clock=self._made_at(told))
        about = np.concatenate([told.event[late].astype(np.int32), told.match[~late].ravel()])
        positions = distinct(about, len(self.working_set))
        place = np.full(len(self.working_set), -1, np.int32)
        place[positions] = np.arange(len(positions), dtype=np.int32)
        events = self.working_set.take(positions).with_column(ORDINAL, pa.array(self._ordinal[positions]))
        return told_rows(self.pattern.plan, told, events, place)

    def _made_at(self, told: ToldIntervals) -> Ints:
        """Where the clock is told: the end of the match or of the event that forbids it, wherever the clock was when
        they came; of late events how far time had passed.
        """
        ends = np.where(told.sign == RETRACTION, self._end[np.minimum(told.event, len(self._end) - 1)], told.end)
        made_at: Ints = np.where(told.sign == LATE, told.clock - 1, ends)
        return made_at


def in_order_of_content(events: Batch) -> Batch:
    """By end and start, then by all else: it does not matter in which order they came."""
    starts, ends = (events.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END))
    order = np.lexsort((starts, ends))
    same = (np.diff(ends[order]) == 0) & (np.diff(starts[order]) == 0)
    if same.any():  # what else they have is only looked at where it matters
        tied = np.union1d(order[1:][same], order[:-1][same])
        content = canonical_bytes([column.take(pa.array(tied)) for column in events.data.columns], len(tied))
        ranks = np.zeros(len(events), np.int64)
        ranks[tied[pc.sort_indices(content).to_numpy()]] = np.arange(len(tied))
        order = np.lexsort((ranks, starts, ends))
    return events.take(pa.array(order))


class AllMatches(NamedTuple):
    rows: pa.Table
    """As `told_schema` has them; all are insertions."""
    dropped: int
    """Matches over a limit."""


def all_matches(plan: IntervalPlan, batch: Batch) -> AllMatches:
    """All matches in the events of a batch, in whatever order they are.

    Raises:
        ConditionError, LimitExceeded: as the matcher.
    """
    starts, ends = (batch.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END))
    # In order of ends, with the longest duration as the delay, nothing is late, and what is over is forgotten soon.
    batch = batch.take(pa.array(np.lexsort((starts, ends))))
    longest = min(int((ends - starts).max(initial=0)), FREE)
    pattern = compile_intervals(plan, delay=longest, lateness=End.START, frequencies=_frequencies(plan, batch))
    matcher = LiveIntervalMatcher(pattern)
    matcher.kernel.consistency = Consistency.EARLIEST
    rows = pa.concat_tables([matcher.process(batch), matcher.finish()])
    return AllMatches(rows, matcher.dropped)


def _frequencies(plan: IntervalPlan, batch: Batch) -> dict[str, float]:
    """How many events there are for each type that the pattern asks for."""
    mask = mask_of(batch)
    bits = zip(plan.pattern.positives, plan.variable_bits, strict=False)
    return {positive.type: float((mask >> bit & 1).sum()) for positive, bit in bits}
