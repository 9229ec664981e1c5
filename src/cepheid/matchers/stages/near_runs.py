"""The run of one pattern for near misses: which events each of its matches has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.errors import ConditionError, LimitExceeded
from cepheid.events.batch import MASK, TIME, Batch
from cepheid.kernel.arrays import Visits
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.stages.detector import Detector, places
from cepheid.matchers.stages.near_events import SOURCE_NUMBER, OwnEvents
from cepheid.output.stages.near.found import EventOrder, Taken

_MATCHES = pa.schema([("events", pa.list_(pa.int64())), ("stages", pa.list_(pa.int32()))])
"""The numbers of the events of a match, and the stages that took them."""


class NearDetector(Detector):
    """A Detector whose rows are the numbers and the stages of the events of each match."""

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        return [_MATCHES]

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        matched, _ = emitted.only(emitted.outcome == MATCHED)
        used, position = places(matched.event, len(self.working_set))
        numbers = self.working_set.take(used).column(SOURCE_NUMBER).to_numpy()[position]
        ends = pa.array(np.append(0, matched.end).astype(np.int32))
        lists = [pa.ListArray.from_arrays(ends, pa.array(values)) for values in (numbers, matched.stage)]
        return pa.RecordBatch.from_arrays(lists, schema=_MATCHES)


class OrderedNearDetector(NearDetector):
    """Also records the order of its events."""

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern)
        self._seen: list[EventOrder] = []
        self._count = 0

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        number, time = batch.column(SOURCE_NUMBER).to_numpy(), batch.column(TIME).cast(pa.int64()).to_numpy()
        ends = visits.end[visits.closes] + self._count
        self._seen.append(EventOrder(number, time, batch.column(MASK).to_numpy(), ends))
        self._count += len(batch)
        return super().step(batch, visits)

    @property
    def order(self) -> EventOrder:
        """The events so far."""
        none = np.empty(0, np.int64)
        fields = ("number", "time", "mask", "key_end")
        columns = [np.concatenate([none, *(getattr(part, field) for part in self._seen)]) for field in fields]
        return EventOrder(*columns)


class NearRun:
    """Finds the matches of one pattern. Give it the events of SharedEvents, then call `end`."""

    def __init__(self, detector: NearDetector, own: OwnEvents, until: int | None) -> None:
        self._detector = detector
        self._own = own
        self._matcher = OrderedMatcher(detector, until=until)
        self._parts: list[pa.Table] = []

    def run(self, shared: Batch) -> None:
        """Takes events; raises as an OrderedMatcher."""
        own = self._own.of(shared)
        if len(own.batch):
            self._parts += self._matcher.run([own])

    def end(self) -> None:
        """Ends the input; raises as `run`."""
        self._parts += self._matcher.end()

    @cached_property
    def taken(self) -> Taken:
        """All matches, in the order of emission, after `end`."""
        table = pa.concat_tables([_MATCHES.empty_table(), *self._parts])
        events, stages = (pa.concat_arrays([pa.array([], f.type), *table.column(f.name).chunks]) for f in _MATCHES)
        ends = np.cumsum(pc.list_value_length(events).to_numpy())
        return Taken(ends, events.flatten().to_numpy(), stages.flatten().to_numpy())

    @property
    def dropped(self) -> int:
        """The number of partial matches that a limit has dropped."""
        return self._detector.found.dropped_partial_matches


class Attempt:
    """The runs of a pattern with one change: without skipping and, if the skip strategy may lose starts, with it.

    They end where a condition fails on an event, or a limit is passed: `failure` then says why.
    """

    def __init__(self, run: NearRun, skipping: NearRun | None) -> None:
        self.without_skipping = run
        self.skipping = skipping
        self.failure: str | None = None

    def run(self, shared: Batch) -> None:
        """Takes events of SharedEvents."""
        self._each(lambda run: run.run(shared))

    def end(self) -> None:
        """Ends the input."""
        self._each(NearRun.end)

    def _each(self, work: Callable[[NearRun], None]) -> None:
        if self.failure is not None:
            return
        try:
            for run in (self.without_skipping, self.skipping):
                if run is not None:
                    work(run)
        except (ConditionError, LimitExceeded) as error:
            self.failure = str(error)
