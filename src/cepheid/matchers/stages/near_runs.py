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
from cepheid.events.order import Ordered
from cepheid.kernel.arrays import Visits
from cepheid.kernel.failures import ConditionFailed
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.stages.detector import Detector
from cepheid.matchers.stages.near_events import SOURCE_NUMBER, OwnEvents
from cepheid.output.stages.near.found import EventOrder, Taken
from cepheid.plan.limits import Limits
from cepheid.plan.stages.near.changes import grows

MOST_OPEN = 10_000
"""The most partial matches of a key that may be open for a changed pattern. Beyond that those that start first are
dropped, or the change is given up.
"""

_MATCHES = pa.schema([("events", pa.list_(pa.int64())), ("stages", pa.list_(pa.int32()))])
"""The numbers of the events of a match, and the stages that took them."""


def limits_of(changed: Pattern) -> Limits:
    """The limits of a changed pattern. A partial match that is dropped only loses matches, but for `longest`: what it
    would have continued would be a match.
    """
    return Limits(max_partial_matches=MOST_OPEN, on_limit="raise" if grows(changed) else "drop")


class NearDetector(Detector):
    """A Detector whose rows are the numbers and the stages of the events of each match, or of its first event only."""

    def __init__(self, pattern: CompiledPattern, *, starts_only: bool = False) -> None:
        super().__init__(pattern)
        self._starts_only = starts_only

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        return [_MATCHES]

    def _failed(self, failure: ConditionFailed) -> ConditionError:
        """The error without the name of the changed pattern, which is a number that the user did not give."""
        reason = failure.reason.removeprefix(f"pattern {self.pattern.plan.pattern.name!r}: ")
        return super()._failed(ConditionFailed(failure.event, failure.script, reason))

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        matched, _ = emitted.only(emitted.outcome == MATCHED)
        if self._starts_only:
            matched = _only_starts(matched)
        numbers = self.working_set.integers(SOURCE_NUMBER)[matched.event]
        ends = pa.array(np.append(0, matched.end).astype(np.int32))
        lists = [pa.ListArray.from_arrays(ends, pa.array(values)) for values in (numbers, matched.stage)]
        return pa.RecordBatch.from_arrays(lists, schema=_MATCHES)


class OrderedNearDetector(NearDetector):
    """Finds the first events of the matches, and records the order of its events."""

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern, starts_only=True)
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


def _only_starts(matches: Emitted) -> Emitted:
    """The matches, as if each had its first event only."""
    begin = np.append(0, matches.end)[:-1]
    end = np.arange(1, len(begin) + 1)
    return Emitted(end, matches.detected_at, matches.outcome, matches.event[begin], matches.stage[begin])


class NearRun:
    """Finds the matches of one pattern. Give it the pattern's events in order, then call `end`."""

    def __init__(self, detector: NearDetector, until: int | None) -> None:
        self._detector = detector
        self._matcher = OrderedMatcher(detector, until=until)
        self._parts: list[pa.Table] = []

    def run(self, events: Ordered) -> None:
        """Takes events; raises as an OrderedMatcher."""
        if len(events.batch):
            self._parts += self._matcher.run([events])

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
    """The runs of a pattern with one change: without skipping and, if the skip strategy may lose starts, with it. Both
    have the same conditions, and so the same events.

    They end where a condition fails on an event, or a limit is passed: `failure` then says why.
    """

    def __init__(self, own: OwnEvents, run: NearRun, skipping: NearRun | None) -> None:
        self._own = own
        self.without_skipping = run
        self.skipping = skipping
        self.failure: str | None = None

    def run(self, shared: Batch) -> None:
        """Takes events of SharedEvents."""
        if self.failure is None:
            own = self._own.of(shared)
            self._each(lambda run: run.run(own))

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
        except ConditionError as error:
            self.failure = str(error)
        except LimitExceeded:
            self.failure = f"more than {MOST_OPEN:,} partial matches of a key are open"
