"""The matcher that tells what holds for now: events count as they come, in any order of time, and what proves wrong is
taken back. No I/O, no clock, no threads.

Its meaning: behind each call what it has told, less what it has taken back, is what a matcher finds in all events that
were accepted so far, in their order, when time has passed to the clock: for patterns of stages
`kernel.real_time_reference` says which these are; for those of occurrences they are the ones that end up to the clock
(`kernel.algebra_reference`).

Events of a key go through the kernel as they come. One that comes behind a later one of its key, or behind a deadline
that has passed, lets its key, and no other, go back to a fork: a copy of what was open before (`forks`). What the key
has had since then goes through the kernel again, the new event among it; what comes of it is compared with what came of
it before. Events and rows are kept until no event that is not late can make their key go back behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.errors import SnapshotError
from cepheid.events.batch import ORDINAL, TIME, Batch, join
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Int32s, Visits
from cepheid.kernel.stages.withheld import ranges
from cepheid.lang.intervals.values import Consistency
from cepheid.matchers.conservative import detector_of, events_of, in_order
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.key_numbers import KeyNumbers
from cepheid.matchers.real_time.journal import Kept, Run
from cepheid.matchers.real_time.revisions import NOTHING_BEHIND, Behind, Telling
from cepheid.matchers.real_time.rollback_points import KeyStates
from cepheid.matchers.snapshot import Snapshot, fitting, opened, to_bytes
from cepheid.matchers.stages.detector import Found
from cepheid.matchers.watermark import Passed
from cepheid.matchers.working_set import relevant
from cepheid.output.changes import change_schema, inserted
from cepheid.output.stages import late_rows

FEW = 4096
"""Rows that may be kept in any case."""


class RealTimeMatcher:
    """Finds one pattern, whose plan has outputs, and tells matches as its consistency says."""

    def __init__(self, pattern: CompiledPattern | CompiledOccurrences, consistency: Consistency) -> None:
        self.detector = detector_of(pattern)
        self.consistency = consistency
        self.passed = Passed()
        self.clock = NO_TIME
        """Microseconds: time has passed to here for what is told: to the latest event, or further if it was told."""
        self.ties = 0
        """Events are counted again when they go through the kernel again."""
        self.keys = KeyNumbers()
        self.states = KeyStates(self.detector.kernel)
        self.waiting = Kept()
        """Events that an earlier one may still come before."""
        self.telling = Telling(self.detector.plan)
        self._step = 0
        self._most_kept = FEW

    def process(self, batch: Batch) -> pa.Table:
        """What these events change; late ones, if they are asked for, come first."""
        plan = self.detector.plan
        late, batch = self.passed.parted(batch)
        if len(batch):
            self.clock = max(self.clock, int(times_of(batch).max()))
        rows = self._tell(relevant(batch, self.detector.pattern))
        if len(late) and "late" in (plan.outputs or ()):
            rows.insert(0, inserted(plan, late_rows(plan, self.detector.schema, late, self.passed.now)))
        return self._table(rows)

    def advance_time(self, time: int) -> pa.Table:
        """No event up to `time` comes any more."""
        if not self.passed.has(time):
            self.passed.to(time)
            self.clock = max(self.clock, time)
        return self._table(self._tell())

    def settle(self, time: int) -> pa.Table:
        """No event before `time` comes any more and, where events have a sequence, of each key none that is not behind
        the last that came.
        """
        if not self.passed.has(time):
            here = self.waiting.at(time, TIME) if self._in_sequence else None
            self.passed.settle(time, None if here is None else Batch(here))
        return self._table(self._tell())

    def finish(self) -> pa.Table:
        """No event comes any more: every deadline passes and what is open ends."""
        rows = self.advance_time(FOREVER)
        self.forget()
        return rows

    def switch(self, consistency: Consistency) -> pa.Table:
        """What the change makes: in real time all that holds for now and is not told yet."""
        self.consistency = consistency
        return self._table(self._tell())

    def forget(self) -> None:
        """Forgets what no event that is not late can change."""
        least = self.passed.now + (self.passed.now_is_over and self.passed.now < FOREVER)
        points, oldest = self.states.settle(least, self._step)
        self.waiting.forget(points)
        self.telling.told.forget(points)
        self.telling.untold.forget_taken()
        settled = self.states.settled
        self.detector.kernel.drop(settled[self.detector.idle_from(settled) <= self.passed.now])
        over = self.states.over()
        if self.detector.told is not None:
            self.detector.told.forget(self.keys.name_of[key] for key in over.tolist())
            self.detector.told.pass_time(min(oldest, self.passed.now))
        self.keys.free(over)
        self._most_kept = max(FEW, 2 * self._kept_rows)

    @property
    def late(self) -> int:
        """How many events were late so far."""
        return self.passed.late.count

    @property
    def found(self) -> Found:
        """What was told, less what was taken back. What was over a limit counts each time."""
        return Found(self.telling.matches, self.telling.timeouts, *self.detector.kernel.dropped)

    @property
    def open_partial_matches(self) -> int:
        with self.detector.only(self.states.open):
            return self.detector.kernel.open_partial_matches(self.clock)

    def partial_matches(self, most: int) -> pa.Table:
        """Those that are open for now, as rows of `open_schema`; of each key at most `most`."""
        return self.detector.partial_matches(self.clock, most, self.states.open)

    @property
    def withheld(self) -> int:
        """How many matches are found and wait to be emitted, or would be matches if they ended now."""
        with self.detector.only(self.states.open):
            return self.detector.kernel.withheld

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All that is here; the arguments as in LiveMatcher.snapshot."""
        self.forget()
        self.detector.forget()
        told = {"matches": self.telling.matches, "timeouts": self.telling.timeouts}
        header = {
            "made_for": made_for,
            "kept": kept,
            **self.passed.header,
            "consistency": self.consistency.value,
            "clock": self.clock,
            "step": self._step,
            "counts": {"late": self.late, "ties": self.ties, **told},
        }
        arrays = {**self.detector.kernel.state(), **self.states.state()}
        batches = {"names": self.keys.listed, **self.passed.batches(self.detector.pattern.plan.schema)}
        if self.detector.told is not None:
            batches["told_timeouts"] = self.detector.told.all
        if (held := self.detector.working_set.all) is not None:
            batches["held"] = held.data
        all_kept = {"waiting": self.waiting, "told": self.telling.told, "untold": self.telling.untold}
        for name, rows_kept in all_kept.items():
            more, rows = rows_kept.state(name)
            arrays, batches = arrays | more, batches | rows
        return to_bytes(Snapshot(header, arrays, batches))

    @staticmethod
    def restored(
        pattern: CompiledPattern | CompiledOccurrences, data: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[RealTimeMatcher, dict[str, Any]]:
        """As LiveMatcher.restored; the consistency is that of the snapshot."""
        snapshot = opened(data, made_for)
        with fitting():
            matcher = RealTimeMatcher(pattern, Consistency(snapshot.header["consistency"]))
            matcher._take_over(snapshot, columns)
            kept: dict[str, Any] = snapshot.header["kept"]
        return matcher, kept

    def _take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        header, arrays, batches = snapshot
        held = events_of(batches, "held", columns.append(pa.field(ORDINAL, pa.int32())))
        self.detector.restore(arrays, held, Found())
        self.states.restore(arrays)
        self.keys = KeyNumbers.of(batches["names"])
        rows = self.detector.schema
        self.waiting, told, untold = (
            Kept.of(snapshot, name, of) for name, of in (("waiting", columns), ("told", rows), ("untold", rows))
        )
        self.telling.told, self.telling.untold = told, untold
        numbered = sorted(self.keys.number_of.values()) == self.states.used.tolist()
        if not numbered or not np.isin(np.concatenate([self.waiting.keys, told.keys]), self.states.used).all():
            raise SnapshotError("the snapshot's keys are not those of its partial matches")
        self.states.make_room(int(untold.keys.max(initial=-1)) + 1)
        if self.detector.told is not None:
            self.detector.told.restore(batches["told_timeouts"])
        self.passed = Passed.of(header, batches)
        self.clock, self._step = index(header["clock"]), index(header["step"])
        counts = (index(header["counts"][name]) for name in ("ties", "matches", "timeouts"))
        self.ties, self.telling.matches, self.telling.timeouts = counts

    def _tell(self, events: Batch | None = None) -> list[pa.RecordBatch]:
        """Brings what was told to where events and time are: retractions, then insertions, of each key in the order in
        which they became certain.

        Raises:
            ConditionError, SkipError, LimitExceeded: the matcher is of no use afterwards.
        """
        behind, found = self._go_through(events) if events is not None and len(events) else (NOTHING_BEHIND, [])
        found += self._pass_time()
        rows = self.telling.difference(behind, found, until=self._certain_until, clock=self.clock)
        if self._kept_rows > self._most_kept:
            self.forget()
        return rows

    def _go_through(self, events: Batch) -> tuple[Behind, list[Run]]:
        """Lets events go through the kernel, each behind those of its key that are before it."""
        keys, times = self.keys.numbers(events), times_of(events)
        self.states.make_room(len(self.keys.name_of))
        wrong = times < self.states.behind[keys]
        behind, again = self._go_back(keys[wrong], times[wrong])
        if again is not None:
            events, keys = join([events, Batch(again.rows)]), np.concatenate([keys, again.key])
        ordered, keys, ties = in_order(events, keys)
        self.ties += ties
        return behind, self._in_pieces(ordered, keys)

    def _go_back(self, keys: Int32s, times: npt.NDArray[np.int64]) -> tuple[Behind, Run | None]:
        """The keys go back to before these times. What they had come to, and the events behind."""
        if not len(keys):
            return NOTHING_BEHIND, None
        order = np.lexsort((times, keys))
        keys, first = np.unique(keys[order], return_index=True)
        points = np.full(len(self.states.forks), np.iinfo(np.int64).max)
        points[keys] = self.states.go_back(keys, times[order][first])
        behind, rows = self.telling.go_back(keys, points)
        if self.detector.told is not None:
            for part in rows:
                self.detector.told.take_back(part)
        return behind, self.waiting.take_behind(points)

    def _in_pieces(self, events: Batch, keys: Int32s) -> list[Run]:
        """What comes of the events, which are in order. Many of a key are cut in two, so that there is a fork close to
        the last of them. More pieces were slower: each costs a call of the kernel, and the rows that come of it.
        """
        found: list[Run] = []
        used, at, left = np.unique(keys, return_index=True, return_counts=True)
        while len(used):
            piece = left if found else np.where(left <= self.states.every, left, left - left // 4)
            whole = len(events) == piece.sum()
            batch = events if whole else events.take(pa.array(ranges(at, at + piece)))
            self.states.fork(used, self._step)
            numbers = self.states.numbers(used)
            visits = Visits(numbers, np.cumsum(piece), np.full(len(used), NO_TIME), np.zeros(len(used), np.bool_))
            found.append(self._run(batch, visits))
            rows = batch.data.drop_columns([ORDINAL])
            self.waiting.add(Run(rows, np.repeat(used, piece), np.full(len(batch), self._step)))
            self.states.move(used, times_of(batch)[np.cumsum(piece) - 1] + 1, piece)
            at, left = at + piece, left - piece
            used, at, left = used[left > 0], at[left > 0], left[left > 0]
        return found

    def _pass_time(self) -> list[Run]:
        """What deadlines up to the clock make certain, or the end of the input."""
        kernel = self.detector.kernel
        closes = self.passed.now == FOREVER
        # Nothing comes of the deadlines of sets: what is out of time may stay until that is certain.
        until = self.passed.now if self.detector.in_sets else self.clock
        keys = self.states.keys(kernel.open_keys if closes else kernel.due(until))
        if not len(keys):
            return []
        if not closes:
            self.states.fork(keys, self._step)
        ends = np.zeros(len(keys), np.int64)
        visits = Visits(self.states.numbers(keys), ends, np.full(len(keys), until), np.full(len(keys), closes))
        found = self._run(self.detector.working_set.take(np.zeros(0, np.int32)), visits)
        # Deadlines pass before the events of their time, and occurrences end when all of these are there.
        behind = until + 1 if self.detector.whole_instants and until < FOREVER else until
        self.states.move(keys, np.full(len(keys), behind), ends)
        return [found]

    def _run(self, batch: Batch, visits: Visits) -> Run:
        self._step += 1
        rows = whole(self.detector.step(batch, visits))
        key = [rows.column(name) for name in self.detector.pattern.plan.schema.key]
        return Run(rows, self.keys.known(key, len(rows)), np.full(len(rows), self._step))

    @property
    def _certain_until(self) -> int | None:
        """Up to when what is found may be told now; None: all of it."""
        now = self.passed.now
        if self.consistency is Consistency.REALTIME or now == FOREVER:
            return None
        is_over = self.passed.now_is_over or self._in_sequence
        return now if is_over or now == NO_TIME else now - 1

    @property
    def _kept_rows(self) -> int:
        return self.waiting.size + self.telling.told.size + self.telling.untold.size

    @property
    def _in_sequence(self) -> bool:
        return self.detector.pattern.plan.schema.sequence != ()

    def _table(self, rows: list[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(rows, change_schema(self.detector.plan))


def whole(rows: pa.Table) -> pa.RecordBatch:
    """The rows in one piece."""
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
