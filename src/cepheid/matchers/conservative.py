"""The matcher for unbounded input: events of all keys come mixed, and wait until the caller advances time past them.

A conservative matcher emits a match only when it is final: only late events could still change it. It never retracts a
match (the matcher in `real_time/matcher.py` does). `process` only stores events; `advance_time` runs the detector over
them. No I/O, no clock, no threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import ORDINAL, Batch
from cepheid.events.order import Ordering, check_times, ranks_of
from cepheid.kernel.arrays import FOREVER, NO_TIME, Int32s, Visits
from cepheid.kernel.order import order_by
from cepheid.kernel.order_of_columns import above_least
from cepheid.matchers.counts import Found
from cepheid.matchers.event_queue import EventQueue
from cepheid.matchers.key_numbers import FEW_KEYS, KeyNumbers
from cepheid.matchers.protocols import Detector
from cepheid.matchers.snapshot import Snapshot, ids_of, stored_number, stored_numbers, to_bytes, with_columns
from cepheid.matchers.watermark import Watermark
from cepheid.matchers.working_set import relevant
from cepheid.output.common import late_rows

_MANY = 1 << 12
"""From this many rows on, a radix sort is faster."""


class ConservativeMatcher:
    """Finds one pattern in events that come in any order of keys. Events after the watermark may come in any order of
    time.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.keys = KeyNumbers()
        self.watermark = Watermark()
        self.waiting = EventQueue()
        self.ties = 0
        self.visited: dict[bytes, bool] | None = None
        """The names of the keys visited since they were asked for, in order, and whether each had something open before
        its first visit; None: no one asks.
        """
        self._idle_from = NO_TIME
        """Microseconds: the time of the next search for idle keys, unless there are more than `_most_keys` keys before.
        """
        self._most_keys = FEW_KEYS

    def process(self, batch: Batch) -> pa.Table:
        """Takes events, which then wait for the watermark. Returns the rows of late events, if requested.

        Nothing is emitted for an event until `advance_time` or `settle` has moved the watermark past it.
        """
        plan = self.detector.plan
        late, batch = self.watermark.parted(batch)
        self.waiting.add(relevant(batch, self.detector.relevant))
        if not len(late) or "late" not in (plan.outputs or ()):
            return self.no_rows
        return pa.Table.from_batches([late_rows(plan, self.no_rows.schema, late, self.now, self.detector.ids)])

    def advance_time(self, time: int) -> pa.Table:
        """Advances the watermark past `time` (microseconds): waiting events up to it are processed, deadlines expire.

        Raises:
            ConditionError, SkipError, LimitExceeded: the matcher cannot be used afterwards.
        """
        if self.watermark.has(time):
            return self.no_rows
        rows = self._pass(time, self.waiting.take(time), until=time, closes=False)
        self.watermark.advance_past(time)
        if time >= self._idle_from or len(self.keys) > self._most_keys:
            self.forget_idle()
        return rows

    def settle(self, time: int) -> pa.Table:
        """Advances the watermark to within `time`: earlier events are late from now on. With a sequence, an event at
        `time` is late, too, if its sequence is not greater than that of its key's last event. Without a sequence, the
        events at `time` keep waiting, because events that precede them in the order may still come.
        """
        if self.watermark.has(time):
            return self.no_rows
        in_sequence = self.detector.plan.schema.sequence != ()
        events = self.waiting.take(time if in_sequence else time - 1)
        rows = self._pass(time, events, until=time, closes=False)
        self.watermark.advance_within(time, events if in_sequence else None)
        return rows

    def finish(self) -> pa.Table:
        """Ends the input: every deadline expires, and open partial matches end. Returns the remaining rows."""
        rows = self._pass(FOREVER, self.waiting.take(FOREVER), until=FOREVER, closes=True)
        self.watermark.advance_past(FOREVER)
        return rows

    def forget_idle(self) -> int:
        """Removes idle keys: all that is stored about them is too old to matter. `advance_time` also does this, once
        there are enough keys that the cost for each is small.

        Some of the other keys become idle without another event. Returns the time (microseconds) by which all of these
        are idle; FOREVER if there are none.
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
        self._most_keys = max(FEW_KEYS, 2 * len(self.keys))
        return last

    @cached_property
    def no_rows(self) -> pa.Table:
        """A table with the columns of the rows."""
        (schema,) = self.detector.schemas
        return schema.empty_table()

    @property
    def now(self) -> int:
        """The watermark, in microseconds."""
        return self.watermark.now

    @property
    def late(self) -> int:
        """The number of late events so far."""
        return self.watermark.late.count

    @property
    def found(self) -> Found:
        return self.detector.found

    @property
    def open_partial_matches(self) -> int:
        return self.detector.kernel.open_partial_matches(self.now)

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as rows of `open_schema`; for each key at most the `most` that started last."""
        return self.detector.partial_matches(self.now, most)

    @property
    def withheld(self) -> int:
        """The number of matches that are complete but not emitted yet, or that would be matches if they ended now."""
        return self.detector.kernel.withheld

    @property
    def due(self) -> int:
        """Microseconds: the watermark at which the next event or deadline is processed; FOREVER if there is none.

        A deadline at the time of its key's last event expires only when the watermark moves on.
        """
        return min(self.waiting.earliest, max(self.detector.kernel.next_due, self.now + 1))

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All open partial matches and waiting events, as bytes."""
        return to_bytes(self.captured(made_for, kept))

    def captured(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> Snapshot:
        """All open partial matches and waiting events, for a snapshot. The arrays are those of the kernel, which go on
        changing.

        `made_for` describes in JSON values what the matcher was made for; `restored` compares it. `kept` is state of
        the host, which `restored` returns.
        """
        header = {
            "made_for": made_for,
            "kept": kept,
            "ids": self.detector.ids,
            **self.watermark.header,
            "counts": {"late": self.late, "ties": self.ties},
            "found": asdict(self.detector.found),
        }
        batches = {"names": self.keys.listed, **self.watermark.batches(self.detector.plan.schema)}
        batches |= self.detector.reported.saved("told")
        if (waiting := self.waiting.all) is not None:
            batches["waiting"] = waiting.data
        self.detector.forget()
        if (held := self.detector.working_set.all) is not None:
            batches["held"] = held.data
        return Snapshot(header, self.detector.kernel.state(), batches)

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        header, arrays, batches = snapshot
        self.detector.ids = ids_of(header)
        waiting = events_of(batches, "waiting", columns)
        held = events_of(batches, "held", columns.append(pa.field(ORDINAL, pa.int32())))
        self.detector.restore(arrays, held, Found(**stored_numbers(header["found"])))
        self.keys = KeyNumbers.of(batches["names"], self.detector.kernel.open_keys)
        self.detector.reported.restore(batches, "told")
        self.watermark = Watermark.of(header, batches)
        if waiting is not None:
            self.waiting.add(waiting)
        self.ties = stored_number(header["counts"]["ties"])

    def _pass(self, time: int, events: Batch | None, *, until: int, closes: bool) -> pa.Table:
        """Visits the keys that have events, or a deadline up to `time`."""
        kernel = self.detector.kernel
        due = kernel.open_keys if closes else kernel.due(time)
        if events is None:
            if not len(due):
                return self.no_rows
            batch, numbers = self.detector.working_set.take(np.zeros(0, np.int32)), np.zeros(0, np.int32)
        else:
            batch, numbers, ties = in_order(events, self.keys.numbers(events))
            self.ties += ties
        keys = numbers if len(numbers) == 1 and not len(due) else _distinct(np.concatenate([numbers, due]))
        if self.visited is not None:
            kernel.make_keys(int(keys[-1]) + 1)
            for number, was_open in zip(keys.tolist(), kernel.is_open(keys).tolist(), strict=True):
                self.visited.setdefault(self.keys.name_of[number], was_open)
        ends = np.searchsorted(numbers, keys, side="right")
        visits = Visits(keys, ends, np.full(len(keys), until), np.full(len(keys), closes))
        (rows,) = self.detector.step(batch, visits)
        is_open = kernel.is_open(keys)
        self.detector.reported.forget_closed(keys, is_open, self.keys.name_of)
        self.keys.free(keys[~is_open])
        if self.keys.is_sparse:
            kernel.renumber(self.keys.renumbered())
        return rows


def in_order(events: Batch, keys: Int32s) -> tuple[Batch, Int32s, int]:
    """The events sorted by key number, time, sequence and, for ties, content; their key numbers; the number of ties."""
    if len(events) == 1:  # as in most steps of a host with many patterns
        check_times(events)
        return events.with_column(ORDINAL, pa.array(np.zeros(1, np.int32))), keys, 0
    return _in_order_of_numbers(events, keys) or _in_order(events, keys)


def _in_order_of_numbers(events: Batch, keys: Int32s) -> tuple[Batch, Int32s, int] | None:
    """The same if the events are ordered by integers and times without NULLs, and there are no ties; else None."""
    ranks = []
    for column, direction in zip(events.order, events.directions, strict=True):
        if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)):
            return None
        times = pa.types.is_timestamp(column.type)
        rank = (column.view(pa.int64()) if times else column).to_numpy()
        ranks.append(~rank if direction.descending else rank)
    order = _order([keys, *ranks])
    tied = np.diff(keys := keys[order]) == 0
    for rank in ranks:
        tied &= np.diff(rank[order]) == 0
    if tied.any():
        return None
    check_times(events)
    ordinals = pa.array(np.zeros(len(events), np.int32))
    return events.take(pa.array(order)).with_column(ORDINAL, ordinals), keys, 0


def _order(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.integer[Any]]:
    """The rows in the order of these columns of integers. A radix sort visits the values of its digits, too, so it is
    for many rows.
    """
    length = len(columns[0])
    return np.lexsort(columns[::-1]) if length < _MANY else order_by([*map(above_least, columns)], length)


def _distinct(numbers: Int32s) -> Int32s:
    """The distinct numbers, ascending. `np.unique` hashes them, which takes five times as long as sorting."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def _in_order(events: Batch, keys: Int32s) -> tuple[Batch, Int32s, int]:
    columns = {f"c{i}": column for i, column in enumerate([pa.array(keys), *ranks_of(events)])}
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    ordered = Ordering().whole(events.take(order))
    return ordered.batch, keys[order.to_numpy()], ordered.ties


def events_of(batches: Mapping[str, pa.RecordBatch], name: str, columns: pa.Schema) -> Batch | None:
    """The events of a snapshot under this name; None if there are none. It raises what `with_columns` does."""
    if name not in batches:
        return None
    return Batch(with_columns(batches[name], columns, "the snapshot's events"))
