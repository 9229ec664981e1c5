"""The matcher that emits at once what holds for now: it processes events as they come, in any order of time, and
retracts what proves wrong. No I/O, no clock, no threads.

Its meaning: take all events accepted so far, in order, and let time advance to the clock. After each call, the rows
emitted and not retracted are the rows that a matcher finds in these events. For patterns of stages,
`kernel.stages.real_time_reference` defines them. For patterns of occurrences, they are the occurrences that end up to
the clock (`kernel.occurrences.reference`).

Events of a key go through the kernel as they come. An event is out of order if it comes after a later event of its key,
or after an expired deadline. It rolls back its key, and no other, to a rollback point: a copy of what was open before.
The key's events since then go through the kernel again, together with the new one. The results are compared with the
earlier ones. Events and rows are retained until only late events could roll their key back to before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import ORDINAL, TIME, Batch, join
from cepheid.kernel.arrays import FOREVER, NO_TIME, Int32s, Visits, ranges
from cepheid.kernel.key_room import room_for
from cepheid.lang.consistency import Consistency
from cepheid.matchers.conservative import events_of, in_order
from cepheid.matchers.counts import Found
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.key_numbers import KeyNumbers
from cepheid.matchers.protocols import Detector
from cepheid.matchers.real_time.journal import Journal, Segment
from cepheid.matchers.real_time.revisions import NOTHING_ROLLED_BACK, Revisions, RolledBack
from cepheid.matchers.real_time.rollback_points import RollbackPoints
from cepheid.matchers.snapshot import Snapshot, ids_of, stored_number, to_bytes
from cepheid.matchers.watermark import Watermark
from cepheid.matchers.working_set import relevant
from cepheid.output.changes import Changes
from cepheid.output.common import late_rows

Times = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]

FEW = 4096
"""Up to this many rows are retained in any case."""


class RealTimeMatcher:
    """Finds one pattern, whose plan has outputs, and emits matches as its consistency says."""

    def __init__(self, detector: Detector, consistency: Consistency) -> None:
        self.detector = detector
        self.consistency = consistency
        self.watermark = Watermark()
        self.clock = NO_TIME
        """Microseconds: the time up to which rows hold. It is the latest event's, or a later one given by the caller.
        """
        self.ties = 0
        """Replayed events are counted again."""
        self.keys = KeyNumbers()
        self.states = RollbackPoints(self.detector.kernel)
        self.waiting = Journal()
        """Processed events that may have to be replayed, as an earlier event may still come."""
        changes = Changes(self.schema, detector.plan.outputs or ())
        self.revisions = Revisions(changes, rebinds=detector.rebinds)
        self._step = 0
        self._most_kept = FEW

    @property
    def schema(self) -> pa.Schema:
        """The columns of the detector's rows."""
        (schema,) = self.detector.schemas
        return schema

    def process(self, batch: Batch) -> pa.Table:
        """The changes that these events make, after the rows of late events, if requested."""
        plan = self.detector.plan
        late, batch = self.watermark.parted(batch)
        if len(batch):
            self.clock = max(self.clock, int(times_of(batch).max()))
        rows = self._revise(relevant(batch, self.detector.relevant))
        if len(late) and "late" in (plan.outputs or ()):
            rows.insert(0, self._late_rows(late))
        return self._table(rows)

    def advance_time(self, time: int) -> pa.Table:
        """Advances the watermark past `time` (microseconds)."""
        if not self.watermark.has(time):
            self.watermark.advance_past(time)
            self.clock = max(self.clock, time)
        return self._table(self._revise())

    def settle(self, time: int) -> pa.Table:
        """Advances the watermark to within `time`: earlier events are late from now on. With a sequence, an event at
        `time` is late, too, if its sequence is not greater than that of its key's last event.
        """
        if not self.watermark.has(time):
            here = self.waiting.at(time, TIME) if self._in_sequence else None
            self.watermark.advance_within(time, None if here is None else Batch(here))
        return self._table(self._revise())

    def finish(self) -> pa.Table:
        """Ends the input: every deadline expires, and open partial matches end."""
        rows = self.advance_time(FOREVER)
        self.forget()
        return rows

    def switch(self, consistency: Consistency) -> pa.Table:
        """Changes the consistency; returns the rows that result: in real time, all that hold and were not emitted."""
        self.consistency = consistency
        return self._table(self._revise())

    def forget(self) -> None:
        """Forgets what only late events could change."""
        least = self.watermark.now + (self.watermark.now_is_over and self.watermark.now < FOREVER)
        points, oldest = self.states.settle(least, self._step)
        self.waiting.forget(points)
        self.revisions.emitted.forget(points)
        self.revisions.pending.forget_taken()
        settled = self.states.settled
        self.detector.kernel.drop(settled[self.detector.idle_from(settled) <= self.watermark.now])
        closed = self.states.remove_closed()
        self.detector.reported.forget(self.keys.name_of[key] for key in closed.tolist())
        self.detector.reported.forget_expired(min(oldest, self.watermark.now))
        self.keys.free(closed)
        self._most_kept = max(FEW, 2 * self._kept_rows)

    @property
    def late(self) -> int:
        """The number of late events so far."""
        return self.watermark.late.count

    @property
    def found(self) -> Found:
        """The numbers of rows emitted, less those retracted. What a limit drops again in a replay is counted again."""
        return replace(self.detector.found, matches=self.revisions.matches, timeouts=self.revisions.timeouts)

    @property
    def open_partial_matches(self) -> int:
        with self.detector.only(self.states.open):
            return self.detector.kernel.open_partial_matches(self.clock)

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as rows of `open_schema`; for each key at most the `most` that started last."""
        return self.detector.partial_matches(self.clock, most, self.states.open)

    @property
    def withheld(self) -> int:
        """The number of matches that are complete but not emitted yet, or that would be matches if they ended now."""
        with self.detector.only(self.states.open):
            return self.detector.kernel.withheld

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """The whole state; the arguments as in LiveMatcher.snapshot."""
        self.forget()
        self.detector.forget()
        emitted = {"matches": self.revisions.matches, "timeouts": self.revisions.timeouts}
        header = {
            "made_for": made_for,
            "kept": kept,
            "ids": self.detector.ids,
            **self.watermark.header,
            "consistency": self.consistency.value,
            "clock": self.clock,
            "step": self._step,
            "counts": {"late": self.late, "ties": self.ties, **emitted},
        }
        arrays = {**self.detector.kernel.state(), **self.states.state()}
        batches = {"names": self.keys.listed, **self.watermark.batches(self.detector.plan.schema)}
        batches |= self.detector.reported.saved("told_timeouts")
        if (held := self.detector.working_set.all) is not None:
            batches["held"] = held.data
        journals = {"waiting": self.waiting, "told": self.revisions.emitted, "untold": self.revisions.pending}
        for name, journal in journals.items():
            more, rows = journal.state(name)
            arrays, batches = arrays | more, batches | rows
        return to_bytes(Snapshot(header, arrays, batches))

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """The consistency is the snapshot's."""
        header, arrays, batches = snapshot
        self.detector.ids = ids_of(header)
        self.consistency = Consistency(header["consistency"])
        held = events_of(batches, "held", columns.append(pa.field(ORDINAL, pa.int32())))
        self.detector.restore(arrays, held, Found())
        self.states.restore(arrays)
        self.keys = KeyNumbers.of(batches["names"], self.states.used)
        rows = self.schema
        self.waiting, emitted, pending = (
            Journal.of(snapshot, name, fields)
            for name, fields in (("waiting", columns), ("told", rows), ("untold", rows))
        )
        self.revisions.emitted, self.revisions.pending = emitted, pending
        if not np.isin(np.concatenate([self.waiting.keys, emitted.keys]), self.states.used).all():
            raise SnapshotError("the snapshot's keys are not those of its partial matches")
        self.states.make_room(room_for(pending.keys))
        self.detector.reported.restore(batches, "told_timeouts")
        self.watermark = Watermark.of(header, batches)
        self.clock, self._step = stored_number(header["clock"]), stored_number(header["step"])
        counts = (stored_number(header["counts"][name]) for name in ("ties", "matches", "timeouts"))
        self.ties, self.revisions.matches, self.revisions.timeouts = counts

    def _revise(self, events: Batch | None = None) -> list[pa.RecordBatch]:
        """Processes the events, if any, and advances time to the clock. Returns retractions, then insertions; within
        each, the rows of a key are in the order in which they became certain.

        Raises:
            ConditionError, SkipError, LimitExceeded: the matcher cannot be used afterwards.
        """
        rolled_back, segments = (
            self._go_through(events) if events is not None and len(events) else (NOTHING_ROLLED_BACK, [])
        )
        segments += self._pass_time()
        rows = self.revisions.difference(rolled_back, segments, until=self._certain_until, clock=self.clock)
        if self._kept_rows > self._most_kept:
            self.forget()
        return rows

    def _late_rows(self, late: Batch) -> pa.RecordBatch:
        detector = self.detector
        rows = late_rows(detector.plan, self.schema, late, self.watermark.now, detector.ids)
        return self.revisions.changes.inserted(rows)

    def _go_through(self, events: Batch) -> tuple[RolledBack, list[Segment]]:
        """Runs the events through the kernel, each key's in order. First rolls back keys with an out-of-order event."""
        keys, times = self.keys.numbers(events), times_of(events)
        self.states.make_room(self.keys.size)
        wrong = times < self.states.after[keys]
        rolled_back, again = self._roll_back(keys[wrong], times[wrong])
        if again is not None:
            events, keys = join([events, Batch(again.rows)]), np.concatenate([keys, again.key])
        ordered, keys, ties = in_order(events, keys)
        self.ties += ties
        return rolled_back, self._in_pieces(ordered, keys)

    def _roll_back(self, keys: Int32s, times: Times) -> tuple[RolledBack, Segment | None]:
        """Rolls keys back to before these times; returns their emitted rows and their events since then."""
        if not len(keys):
            return NOTHING_ROLLED_BACK, None
        order = np.lexsort((times, keys))
        keys, first = np.unique(keys[order], return_index=True)
        points = np.full(len(self.states.forks), np.iinfo(np.int64).max)
        points[keys] = self.states.roll_back(keys, times[order][first])
        rolled_back, rows = self.revisions.roll_back(keys, points)
        for part in rows:
            self.detector.reported.take_back(part)
        return rolled_back, self.waiting.take_after(points)

    def _in_pieces(self, events: Batch, keys: Int32s) -> list[Segment]:
        """The rows that these events, which are in order, produce. Many events of one key are cut into two pieces, so
        that there is a rollback point close to the last of them. More pieces were slower, because each costs a call of
        the kernel and one to make rows. Events of one time stay in one piece: equal events are numbered together.
        """
        segments: list[Segment] = []
        used, at, left = np.unique(keys, return_index=True, return_counts=True)
        while len(used):
            piece = left if segments else self._first_piece(times_of(events), at, left)
            whole = len(events) == piece.sum()
            batch = events if whole else events.take(pa.array(ranges(at, at + piece)))
            self.states.fork(used, self._step)
            numbers = self.states.numbers(used)
            visits = Visits(numbers, np.cumsum(piece), np.full(len(used), NO_TIME), np.zeros(len(used), np.bool_))
            segments.append(self._run(batch, visits))
            rows = batch.data.drop_columns([ORDINAL])
            self.waiting.add(Segment(rows, np.repeat(used, piece), np.full(len(batch), self._step)))
            self.states.move(used, times_of(batch)[np.cumsum(piece) - 1] + 1, piece)
            at, left = at + piece, left - piece
            used, at, left = used[left > 0], at[left > 0], left[left > 0]
        return segments

    def _first_piece(self, times: Times, at: Positions, count: Positions) -> Positions:
        """(k,) how many of each key's `count` events, from `at` on, come before its next rollback point."""
        cut = at + count - count // 4
        is_last = np.append(times[1:] != times[:-1], True)
        is_last[at + count - 1] = True  # the key's last event
        ends = np.flatnonzero(is_last) + 1
        piece: Positions = ends[np.searchsorted(ends, cut)] - at
        return np.where(count <= self.states.every, count, piece)

    def _pass_time(self) -> list[Segment]:
        """The rows that deadlines up to the clock, or the end of the input, make certain."""
        kernel = self.detector.kernel
        closes = self.watermark.now == FOREVER
        # Deadlines of sets emit nothing, so partial matches may stay until the watermark is past their deadlines.
        until = self.watermark.now if self.detector.drops_deadlines_silently else self.clock
        keys = self.states.keys(kernel.open_keys if closes else kernel.due(until))
        if not len(keys):
            return []
        if not closes:
            self.states.fork(keys, self._step)
        ends = np.zeros(len(keys), np.int64)
        visits = Visits(self.states.numbers(keys), ends, np.full(len(keys), until), np.full(len(keys), closes))
        segment = self._run(self.detector.working_set.take(np.zeros(0, np.int32)), visits)
        # Deadlines expire before the events of their time. Occurrences end only after all events of their time.
        after = until + 1 if self.detector.closes_instants and until < FOREVER else until
        self.states.move(keys, np.full(len(keys), after), ends)
        return [segment]

    def _run(self, batch: Batch, visits: Visits) -> Segment:
        self._step += 1
        (table,) = self.detector.step(batch, visits)
        rows = whole(table)
        key = [rows.column(name) for name in self.detector.plan.schema.key]
        return Segment(rows, self.keys.known(key, len(rows)), np.full(len(rows), self._step))

    @property
    def _certain_until(self) -> int | None:
        """Microseconds: rows that are certain by this time are emitted now; None: all rows are."""
        now = self.watermark.now
        if self.consistency is Consistency.REALTIME or now == FOREVER:
            return None
        is_over = self.watermark.now_is_over or self._in_sequence
        return now if is_over or now == NO_TIME else now - 1

    @property
    def _kept_rows(self) -> int:
        return self.waiting.size + self.revisions.emitted.size + self.revisions.pending.size

    @property
    def _in_sequence(self) -> bool:
        return self.detector.plan.schema.sequence != ()

    def _table(self, rows: list[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(rows, self.revisions.changes.schema)


def whole(rows: pa.Table) -> pa.RecordBatch:
    """The rows in one piece."""
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
