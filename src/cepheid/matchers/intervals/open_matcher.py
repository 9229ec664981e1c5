"""The matcher for events that rows open and close: it emits matches whose open ends do not matter any more.

The kernel joins events as if each open one ended after all times. That finds all matches that are certain at some time
before the ends are known, and others. From when on a match is certain is then computed by `Certainty`, from its times
and from the events that may forbid it. When an event is closed, it is joined anew, with its end.

Unlike the kernel's own matches, those here are Python objects: some microseconds each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.errors import SnapshotError
from cepheid.events.batch import EVENT_ID, MASK, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.kernel.arrays import FOREVER, Flags, Int32s
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.intervals.layout import BEGINNING, LATE, OPEN_END, EmittedIntervals
from cepheid.kernel.scripts.python_values import script_values
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.intervals.joiner import IntervalJoiner
from cepheid.matchers.intervals.rows import RowKind, Step
from cepheid.matchers.intervals.uncertain.certain import times_of
from cepheid.matchers.intervals.uncertain.changeable import Needs
from cepheid.matchers.intervals.uncertain.held_events import HeldEvent
from cepheid.matchers.intervals.uncertain.matching import OpenMatching
from cepheid.matchers.shared.events import Share
from cepheid.matchers.snapshot import Snapshot, ids_of, to_bytes
from cepheid.matchers.working_set import joint_error, mask_of
from cepheid.output.intervals.rows import row_schema
from cepheid.plan.intervals.ends import reads_end
from cepheid.plan.intervals.growth import Purge, purge_of
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import MOST


class LiveOpenMatcher(IntervalJoiner):
    """Finds one interval pattern in events that rows open and close."""

    def __init__(
        self,
        plan: IntervalPlan,
        *,
        delay: int | None,
        lateness: End,
        revises: bool = False,
        external_clock: bool = False,
        frequencies: Mapping[str, float] | None,
        share: Share | None = None,
    ) -> None:
        """With `revises`, a row may give an event another end as long as both ends are in time, or withdraw it. With an
        `external_clock`, `detected_at` is the latest known time of a match's events, as the clock depends on the host.
        With a `share`, it holds events together with others.
        """
        super().__init__(_joins(plan, lateness, frequencies), share=share)
        self.plan = plan
        self._lateness = lateness
        self._external_clock = external_clock
        self._matching = OpenMatching(plan, lateness, delay=delay, revises=revises)
        self._end_bits = reads_end(plan).bits
        self._purges = {purge_of(plan.pattern, negation) for negation in plan.pattern.negations}
        self._reads_values = any(plan.negated)
        self.late_rows = 0
        self._needs: Needs | None = None
        """Which events are needed after the last call; None until asked."""

    # The calls

    def process_steps(self, batch: Batch, steps: Sequence[Step]) -> pa.Table:
        """The rows that these steps make. `batch` has a row for each step but DROPS, in their order; an opening row's
        end is its start.

        Raises:
            ConditionError, LimitExceeded: the matcher cannot be used afterwards.
        """
        self._needs = None
        position, matching, number = len(self.working_set), self._matching, 0
        found = self._joined(batch, steps) if len(batch) else {}
        for step in steps:
            kind = step.kind
            matching.clock = max(matching.clock, step.clock)
            if kind is RowKind.DROPS:
                matching.drop(step.name)
            elif kind is RowKind.LATE:
                self.late_rows += 1
                matching.late(position + number)
            else:
                is_known = kind is RowKind.CLOSES or kind is RowKind.REVISES
                matching.arrive(self._added[number], found.get(position + number, ()), is_known=is_known)
            number += step.row >= 0
            if step.is_last and kind is not RowKind.LATE and not self._external_clock:
                matching.emit_ready()
        if self._external_clock:
            matching.emit_ready()
        rows = self._emitted_rows()
        if len(self.working_set) > self._most_held and not self._is_shared:
            self.forget()
        return rows

    def move_clock(self, time: int, steps: Sequence[Step]) -> pa.Table:
        """Moves the clock to `time`; `steps` are the events that are then open for too long."""
        self._needs = None
        for step in steps:
            self._matching.drop(step.name)
        self._matching.clock = max(self._matching.clock, time)
        self._matching.emit_ready()
        return self._emitted_rows()

    def end(self, steps: Sequence[Step]) -> pa.Table:
        """Ends the input; `steps` are the events that are still open, which are dropped."""
        self._needs = None
        for step in steps:
            self._matching.drop(step.name)
        self._matching.end()
        rows = self._emitted_rows()
        self._matching.clock = FOREVER
        return rows

    def switch(self, consistency: Consistency) -> pa.Table:
        self._matching.change(consistency)
        self._matching.emit_ready()
        return self._emitted_rows()

    @property
    def consistency(self) -> Consistency:
        return self._matching.matches.consistency

    @property
    def clock(self) -> int:
        return self._matching.clock

    @property
    def late(self) -> int:
        return self.late_rows

    @property
    def due(self) -> int:
        return self._matching.matches.next_due

    @property
    def over(self) -> int:
        """As in LiveIntervalMatcher; FOREVER while an event is open."""
        closed = self._end[self._end != OPEN_END]
        if self._matching.events.has_open:
            return FOREVER
        is_kept = self.plan.window is None and len(self.plan.pattern.variables) > 1
        if is_kept or Purge.KEEP in self._purges:
            return FOREVER if len(closed) else BEGINNING
        return int(closed.max()) + (self.plan.window or 0) if len(closed) else BEGINNING

    @property
    def open_matches(self) -> int:
        return self._matching.open_matches

    def holds(self, name: bytes) -> bool:
        """Whether the event with this id is needed: a row may change it, a match may contain it, or it may forbid one.
        The answer does not depend on what has been forgotten.
        """
        event = self._matching.events.get(name)
        if event is None:
            return False
        return self._needs_now.has(event) or self._matching.uses(name)

    @property
    def needs_none(self) -> bool:
        """Whether no event is needed: none may change, no match is open, and no later one can have any of them."""
        return self._matching.is_over and not any(map(self._needs_now.has, self._matching.events.all))

    @property
    def _needs_now(self) -> Needs:
        if self._needs is None:
            self._needs = Needs(self.plan, self._lateness, self._matching.changeable)
        return self._needs

    @property
    def opened(self) -> dict[bytes, int]:
        """The start of each open event."""
        return {event.name: event.times.start for event in self._matching.events.all if event.times.is_open}

    # What a row changes

    def _joined(self, batch: Batch, steps: Sequence[Step]) -> dict[int, list[tuple[int, ...]]]:
        """Adds the rows and finds the matches that each completes if open events end after all times: their events'
        positions, by the position of the row.
        """
        there = [step for step in steps if step.row >= 0]
        kinds = np.array([step.kind for step in there])
        first = len(self.working_set)
        self._add(self._masked(batch, kinds == RowKind.LATE, kinds == RowKind.OPENS))
        self._end[first:][kinds == RowKind.OPENS] = OPEN_END
        self._matching.events.name_at += [step.name for step in there]
        try:
            emitted = self.kernel.run(self._events, len(self.working_set))
        except JointConditionFailed as failed:
            raise joint_error(failed, self.working_set, self.plan.pattern.variables) from failed
        self._read(batch, first)
        late = first + np.flatnonzero(kinds == RowKind.LATE).astype(np.int32)
        if len(late):
            self._ordinal[late] = self._late.of(self._identities(late.astype(np.int32)))
        each = zip(emitted.event.tolist(), map(tuple, emitted.match.tolist()), strict=True)
        return {event: [match for _, match in group] for event, group in groupby(each, key=lambda one: one[0])}

    def _masked(self, batch: Batch, late: Flags, opened: Flags) -> Batch:
        """The rows with the conditions that hold of them: none of a late one, and none that reads an open end."""
        mask = mask_of(batch).copy()
        mask[late] = 0
        mask[opened] &= ~self._end_bits
        place, column = batch.data.schema.get_field_index(MASK), batch.data.schema.field(MASK)
        return batch.with_data(batch.data.set_column(place, column, pa.array(mask).cast(column.type, safe=False)))

    def _read(self, batch: Batch, first: int) -> None:
        """Notes what negations read of the added events."""
        columns = [script_values(column) for column in batch.values] if self._reads_values else []
        values = [*zip(*columns, strict=True)] if columns else [()] * len(batch)
        added = slice(first, len(self.working_set))
        events = self._events
        each = (
            self._matching.events.name_at[added],
            range(added.start, added.stop),
            self._key[added].tolist(),
            map(times_of, events.start[added].tolist(), self._end[added].tolist()),
            events.mask[added].tolist(),
            values,
        )
        self._added = [*map(HeldEvent._make, zip(*each, strict=True))]

    def _emitted_rows(self) -> pa.Table:
        """The rows of what was emitted since the last call."""
        changes, self._matching.changes = self._matching.changes, []
        if not changes:
            return row_schema(self.plan).empty_table()
        event, sign, clock, start, end, match = (np.array(part) for part in zip(*changes, strict=True))
        if self._external_clock:
            clock = np.where(sign == LATE, clock - 1, self._known_until(match).max(axis=1))
        return self._placed_rows(EmittedIntervals(event, sign, clock, start, end, match.astype(np.int32)))

    def _known_until(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The latest known times of the events at these positions."""
        ends = np.where(self._end == OPEN_END, self._events.start[: len(self._end)], self._end)
        found: npt.NDArray[np.int64] = ends[positions]
        return found

    # Memory

    def forget(self) -> None:
        """Forgets the events and matches that no row in time can change or need."""
        if not len(self.working_set):
            return
        used = self._matching.forget()
        self._keep(self._needs_now.positions(used))

    def _keep(self, positions: Int32s) -> None:
        super()._keep(positions)
        place = {former: now for now, former in enumerate(positions.tolist())}
        self._matching.keep(place, lambda position: int(self._key[position]))

    # Snapshots

    def stored(
        self, header: Mapping[str, Any], arrays: Mapping[str, Any], batches: Mapping[str, pa.RecordBatch]
    ) -> bytes:
        """A snapshot with the matcher's state and with these parts."""
        self.forget()
        known = [*self._matching.matches.all.values()]
        own = {
            "opened": (self._end == OPEN_END).astype(np.int64),
            "matches": np.array([match.positions for match in known], np.int32).reshape(
                len(known), self.plan.positives
            ),
            "out": np.array([match.is_out for match in known], np.int64),
            "clock": np.array([self._matching.clock, self.late_rows]),
        }
        numbers, more = self._stored_events()
        if self.late_rows:
            more["late"] = self._late.listed
        state = {**header, "ids": self.ids, "consistency": self.consistency.value}
        return to_bytes(Snapshot(state, {**own, **numbers, **arrays}, {**more, **batches}))

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        self.ids = ids_of(snapshot.header)
        arrays = snapshot.arrays
        self._matching.clock, self.late_rows = arrays["clock"].tolist()
        if (batch := self._restored_events(snapshot, columns)) is not None:
            opened = arrays["opened"] == 1
            self._add(self._masked(batch, np.zeros(len(batch), np.bool_), opened))
            self._end[opened] = OPEN_END
            self._matching.events.name_at = canonical_bytes([batch.column(EVENT_ID)], len(batch)).to_pylist()
            none = np.zeros((0, self.plan.positives), np.int32)
            self.kernel.restore_open(none, {}, self._events, len(batch))
            self._read(batch, 0)
            for event in self._added:
                self._matching.events.add(event)
        self._matching.restart(Consistency(snapshot.header["consistency"]))
        for positions, is_out in zip(arrays["matches"].tolist(), arrays["out"].tolist(), strict=True):
            if (match := self._matching.match_of(tuple(positions))) is None:
                raise SnapshotError("the snapshot has a match that its events do not make")
            match.is_out = bool(is_out)
            self._matching.matches.add(match)
        self._late = type(self._late).restored(self.late_rows, snapshot.batches.get("late"))


def _joins(plan: IntervalPlan, lateness: End, frequencies: Mapping[str, float] | None) -> CompiledIntervals:
    """What the kernel runs: the pattern without negations, which emits at once, on events of which none is late."""
    pattern = replace(plan.pattern, negations=(), consistency=Consistency.REALTIME)
    limits = replace(plan.limits, max_matches_per_event=MOST)  # some that it finds contain an event's open form, too
    joined = replace(
        plan, pattern=pattern, variable_bits=plan.variable_bits[: plan.positives], negated=(), limits=limits
    )
    return compile_intervals(joined, delay=0, lateness=lateness, frequencies=frequencies, external_clock=True)
