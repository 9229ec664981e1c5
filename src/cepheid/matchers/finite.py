"""The matchers of finite inputs: events come sorted by key, so that one key is open at a time."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.events.identity import key_names
from cepheid.events.order import Ordered, Ordering
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Visits
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.matchers.stages.detector import Detector
from cepheid.output.stages import row_schema
from cepheid.plan.plan_set import naming


class SortedMatcher:
    """Finds one pattern in events that come key by key, each key's in order of time and sequence.

    A key is over when the next one begins: then time passes to `until` (microseconds since 1970 UTC; None: every
    deadline passes and the input is complete).
    """

    def __init__(self, pattern: CompiledPattern, *, until: int | None = None) -> None:
        self._detector = Detector(pattern)
        self._schema = row_schema(pattern.plan)
        self._until = FOREVER if until is None else until
        self._ordering = Ordering()
        self._last: Batch | None = None

    def process(self, batch: Batch) -> pa.Table:
        """The rows that these events make certain, in the order of keys and emission.

        Raises:
            EventError: the events are not in order.
            ConditionError: a condition fails on an event.
            SkipError: a match has no event to skip to, and that is an error.
            LimitExceeded: a key has more open than the plan's limits allow.
        """
        return self._run([*self._ordering.process(batch)])

    def finish(self) -> pa.Table:
        """No more events come: the last key is over too."""
        rows = [self._run([*self._ordering.finish()])]
        if self._last is not None:
            end = _visits(np.zeros(1, np.int64), self._until)
            rows.append(self._detector.step(self._last, end))
        return pa.concat_tables(rows)

    @property
    def counts(self) -> dict[str, int]:
        """What was found; and "ties": events that agree with another in key, time and sequence, so that their content
        orders them.
        """
        return {"ties": self._ordering.ties, **asdict(self._detector.found)}

    def _run(self, parts: list[Ordered]) -> pa.Table:
        rows = [self._schema.empty_table()]
        for part in parts:
            ends = np.append(np.flatnonzero(part.key_start), len(part.batch))
            visits = _visits(ends, self._until)
            visits.closes[-1], visits.until[-1] = False, NO_TIME
            rows.append(self._detector.step(part.batch, visits))
            if self._detector.told is not None:
                last = part.batch.slice(len(part.batch) - 1, len(part.batch))
                self._detector.told.keep_only(key_names(last.keys, 1))
            self._last = part.batch.slice(0, 0)
        return pa.concat_tables(rows)


class SortedMatchers:
    """One matcher a pattern, for events that come once for all."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        self._plans = patterns.plans
        self._matchers = [SortedMatcher(pattern, until=until) for pattern in patterns.each]
        several = len(patterns.each) > 1
        self._own = [OwnEvents(patterns, i) if several else None for i in range(len(patterns.each))]

    def process(self, batch: Batch) -> list[pa.Table]:
        """For each pattern its rows; `batch` has the lifted columns of all.

        Raises:
            as a SortedMatcher does, with the pattern's name.
        """
        rows = []
        for plan, matcher, own in zip(self._plans.each, self._matchers, self._own, strict=True):
            with naming(self._plans, plan):
                rows.append(matcher.process(batch if own is None else own.of(batch)))
        return rows

    def finish(self) -> list[pa.Table]:
        """No more events come."""
        rows = []
        for plan, matcher in zip(self._plans.each, self._matchers, strict=True):
            with naming(self._plans, plan):
                rows.append(matcher.finish())
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """Sums of the matchers' counts."""
        counts = [matcher.counts for matcher in self._matchers]
        return {name: sum(count[name] for count in counts) for name in counts[0]}


def _visits(ends: npt.NDArray[np.int64], until: int) -> Visits:
    """Visits to one key after the other, each of which is over then; one is open at a time, so all have one number."""
    count = len(ends)
    return Visits(np.zeros(count, np.int32), ends, np.full(count, until), np.ones(count, np.bool_))
