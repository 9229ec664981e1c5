"""The matcher of inputs that go on: events of all keys come mixed, wait until their order is certain, and time is told.

A pattern compiles to a small program; a matcher runs that program over events in time order, moving partial matches
from state to state, and emits a match when one reaches the end; a host only feeds the matcher and keeps its state. No
I/O, no clock, no threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.errors import SnapshotError
from cepheid.events.batch import MASK, ORDINAL, TIME, Batch, join
from cepheid.events.order import Ordering, leaves
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Int32s, Visits
from cepheid.matchers.event_queue import Waiting
from cepheid.matchers.key_numbers import FEW_KEYS, KeyNumbers
from cepheid.matchers.occurrences.detector import OccurrenceDetector
from cepheid.matchers.snapshot import Snapshot, fitting, opened, to_bytes
from cepheid.matchers.stages.detector import Detector, Found
from cepheid.matchers.watermark import Passed
from cepheid.matchers.working_set import relevant
from cepheid.output.stages import late_rows


class LiveMatcher:
    """Finds one pattern in events that come in any order of keys and, until time has passed them, of time."""

    def __init__(self, pattern: CompiledPattern | CompiledOccurrences) -> None:
        self.detector = detector_of(pattern)
        self.keys = KeyNumbers()
        self.passed = Passed()
        self.waiting = Waiting()
        self.ties = 0
        self._idle_from = NO_TIME
        """When idle keys are looked for again, unless there are more keys than `_most_keys` before."""
        self._most_keys = FEW_KEYS

    def process(self, batch: Batch) -> pa.Table:
        """Takes events, which wait for time to pass them. The rows are those of the late events, if they are asked for.

        Nothing is emitted for an event before `advance_time` or `settle` has passed it.
        """
        plan = self.detector.plan
        late, batch = self.passed.parted(batch)
        self.waiting.add(relevant(batch, self.detector.pattern))
        if not len(late) or "late" not in (plan.outputs or ()):
            return self.detector.schema.empty_table()
        return pa.Table.from_batches([late_rows(plan, self.detector.schema, late, self.now)])

    def advance_time(self, time: int) -> pa.Table:
        """No event up to `time` comes any more: those that wait are processed, and every deadline up to it passes.

        Raises:
            ConditionError, SkipError, LimitExceeded: the matcher is of no use afterwards.
        """
        if self.passed.has(time):
            return self.detector.schema.empty_table()
        rows = self._pass(time, self.waiting.take(time), until=time, closes=False)
        self.passed.to(time)
        if time >= self._idle_from or len(self.keys.number_of) > self._most_keys:
            self.forget_idle()
        return rows

    def settle(self, time: int) -> pa.Table:
        """No event before `time` comes any more, and of each key none at `time` whose sequence is not greater than the
        last that came. Without a sequence the events at `time` itself wait on, as others may come before them.
        """
        if self.passed.has(time):
            return self.detector.schema.empty_table()
        in_sequence = self.detector.pattern.plan.schema.sequence != ()
        events = self.waiting.take(time if in_sequence else time - 1)
        rows = self._pass(time, events, until=time, closes=False)
        self.passed.settle(time, events if in_sequence else None)
        return rows

    def finish(self) -> pa.Table:
        """The input is complete: every deadline passes and what is open ends."""
        rows = self._pass(FOREVER, self.waiting.take(FOREVER), until=FOREVER, closes=True)
        self.passed.to(FOREVER)
        return rows

    def forget_idle(self) -> int:
        """Lets go of the keys of which all that is remembered is too old to count. Time does it, too, when there are so
        many that what this costs is little for each.

        Returns in microseconds when the last of the others will be idle, of those that will without another event;
        FOREVER if none will.
        """
        kernel = self.detector.kernel
        keys = kernel.open_keys
        from_ = self.detector.idle_from(keys)
        idle = keys[from_ <= self.now]
        kernel.drop(idle)
        self.keys.free(idle)
        later = from_[(from_ > self.now) & (from_ < FOREVER)]
        last = int(later.max()) if len(later) else FOREVER
        self._idle_from = last if len(idle) < len(keys) else NO_TIME
        self._most_keys = max(FEW_KEYS, 2 * len(self.keys.number_of))
        return last

    @property
    def now(self) -> int:
        """Microseconds: time has passed to here."""
        return self.passed.now

    @property
    def late(self) -> int:
        """How many events were late so far."""
        return self.passed.late.count

    @property
    def found(self) -> Found:
        return self.detector.found

    @property
    def open_partial_matches(self) -> int:
        return self.detector.kernel.open_partial_matches(self.now)

    def partial_matches(self, most: int) -> pa.Table:
        """Those that are open, as rows of `open_schema`; of each key at most `most`, those that started last."""
        return self.detector.partial_matches(self.now, most)

    @property
    def withheld(self) -> int:
        """How many matches are found and wait to be emitted, or would be matches if they ended now."""
        return self.detector.kernel.withheld

    @property
    def due(self) -> int:
        """Microseconds: when time comes to it, an event or a deadline is next to be processed; FOREVER if nothing is.

        A deadline at the time of its key's last event passes only when time moves on.
        """
        return min(self.waiting.earliest, max(self.detector.kernel.next_due, self.now + 1))

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All that is open and waits.

        `made_for` says in JSON values what the matcher is of, which `restore` compares; `kept` is what the host keeps,
        which `restore` gives back.
        """
        header = {
            "made_for": made_for,
            "kept": kept,
            **self.passed.header,
            "counts": {"late": self.late, "ties": self.ties},
            "found": asdict(self.detector.found),
        }
        batches = {"names": self.keys.listed, **self.passed.batches(self.detector.pattern.plan.schema)}
        if self.detector.told is not None:
            batches["told"] = self.detector.told.all
        if (waiting := self.waiting.all) is not None:
            batches["waiting"] = waiting.data
        self.detector.forget()
        if (held := self.detector.working_set.all) is not None:
            batches["held"] = held.data
        return to_bytes(Snapshot(header, self.detector.kernel.state(), batches))

    @staticmethod
    def restored(
        pattern: CompiledPattern | CompiledOccurrences, data: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[LiveMatcher, dict[str, Any]]:
        """A matcher that is where the one was that wrote the snapshot, and what the host had kept. `columns` are those
        of its batches.

        Raises:
            SnapshotError: it is damaged, or of another pattern or other columns.
        """
        snapshot = opened(data, made_for)
        matcher = LiveMatcher(pattern)
        with fitting():
            matcher._take_over(snapshot, columns)
            kept: dict[str, Any] = snapshot.header["kept"]
        return matcher, kept

    def _take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        header, arrays, batches = snapshot
        waiting = events_of(batches, "waiting", columns)
        held = events_of(batches, "held", columns.append(pa.field(ORDINAL, pa.int32())))
        self.detector.restore(arrays, held, Found(**header["found"]))
        self.keys = KeyNumbers.of(batches["names"])
        if sorted(self.keys.number_of.values()) != self.detector.kernel.open_keys.tolist():
            raise SnapshotError("the snapshot's keys are not those of its partial matches")
        if self.detector.told is not None:
            self.detector.told.restore(batches["told"])
        self.passed = Passed.of(header, batches)
        if waiting is not None:
            self.waiting.add(waiting)
        self.ties = index(header["counts"]["ties"])

    def _pass(self, time: int, events: Batch | None, *, until: int, closes: bool) -> pa.Table:
        """Visits the keys that have events or, up to `time`, a deadline."""
        schema = self.detector.schema
        kernel = self.detector.kernel
        due = kernel.open_keys if closes else kernel.due(time)
        if events is None:
            if not len(due):
                return schema.empty_table()
            batch, numbers = self.detector.working_set.take(np.zeros(0, np.int32)), np.zeros(0, np.int32)
        else:
            batch, numbers, ties = in_order(events, self.keys.numbers(events))
            self.ties += ties
        keys = np.unique(np.concatenate([numbers, due]))
        ends = np.searchsorted(numbers, keys, side="right")
        visits = Visits(keys, ends, np.full(len(keys), until), np.full(len(keys), closes))
        rows = self.detector.step(batch, visits)
        is_open = kernel.is_open(keys)
        self.detector.forget_told(keys, is_open, self.keys.name_of)
        self.keys.free(keys[~is_open])
        if self.keys.is_sparse:
            kernel.renumber(self.keys.renumbered())
        return rows


def detector_of(pattern: CompiledPattern | CompiledOccurrences) -> Detector | OccurrenceDetector:
    """A new one."""
    return OccurrenceDetector(pattern) if isinstance(pattern, CompiledOccurrences) else Detector(pattern)


def in_order(events: Batch, keys: Int32s) -> tuple[Batch, Int32s, int]:
    """The events by key number, time and sequence, ties by their content; their key numbers; and how many are tied."""
    ranks = [leaf for column in events.order for leaf in leaves(column)]
    columns = {f"c{i}": column for i, column in enumerate([pa.array(keys), *ranks])}
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    ordering = Ordering()
    parts = [*ordering.process(events.take(order)), *ordering.finish()]
    return join([part.batch for part in parts]), keys[order.to_numpy()], ordering.ties


def events_of(batches: Mapping[str, pa.RecordBatch], name: str, columns: pa.Schema) -> Batch | None:
    """Events from a snapshot, if they are the matcher's."""
    if name not in batches:
        return None
    events = Batch(batches[name])
    if events.data.schema != columns or any(events.column(column).null_count for column in (TIME, MASK)):
        raise SnapshotError(f"the snapshot's events have other columns: {events.data.schema}")
    return events
