"""What a shard of a stream needs of a matcher, as patterns of occurrences and of intervals give it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.compile.occurrences.compiled import CompiledOccurrences, compile_occurrences
from cepheid.events.batch import Batch
from cepheid.hosts.spark.stream.shard_matcher import Planned, StageShardMatcher
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.kernel.stages.layout import FOREVER, NO_TIME
from cepheid.lang.intervals.values import End
from cepheid.matchers.conservative import LiveMatcher
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher, in_order_of_content
from cepheid.output.intervals import INSERTION_KIND, RETRACTION_KIND, told_schema
from cepheid.output.occurrences import occurrence_schema
from cepheid.output.stages import LATE
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.stages.plan import OutputName
from cepheid.requests.request import OPENED, STREAM_COUNTS

# Occurrences


@dataclass(frozen=True)
class OfOccurrences(Planned):
    """A pattern of occurrences."""

    plan: OccurrencePlan

    @property
    def schema(self) -> pa.Schema:
        return occurrence_schema(self.plan)

    @cached_property
    def compiled(self) -> CompiledOccurrences:
        return compile_occurrences(OccurrencePlans.of([self.plan], named=self.plan.named))

    def matcher(self) -> OccurrenceShardMatcher:
        return OccurrenceShardMatcher(self, LiveMatcher(self.compiled))

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[OccurrenceShardMatcher, dict[str, Any]]:
        live, kept = LiveMatcher.restored(self.compiled, snapshot, made_for, columns)
        return OccurrenceShardMatcher(self, live), kept


class OccurrenceShardMatcher(StageShardMatcher):
    """Finds a pattern of occurrences, and lets go of idle keys at every step: its shard need not be kept then."""

    def __init__(self, pattern: OfOccurrences, live: LiveMatcher) -> None:
        super().__init__(pattern, live)
        self._idle_from = self.live.forget_idle()

    def advance_time(self, time: int) -> pa.Table:
        rows = super().advance_time(time)
        self._idle_from = self.live.forget_idle()
        return rows

    def replay(self, log: Iterable[tuple[int, Batch]], passed: int, limits: Limits) -> None:
        super().replay(log, passed, limits)
        self._idle_from = self.live.forget_idle()

    @property
    def due(self) -> int:
        return min(self.live.due, self._idle_from)


# Intervals


@dataclass(frozen=True)
class OfIntervals(Planned):
    """An interval pattern."""

    plan: IntervalPlan
    lateness: End
    """By which of its times an event is late."""
    outputs: tuple[OutputName, ...]

    @property
    def schema(self) -> pa.Schema:
        return told_schema(self.plan)

    @cached_property
    def compiled(self) -> CompiledIntervals:
        """The watermark is what time is told, so there is no delay left."""
        return compile_intervals(self.plan, delay=0, lateness=self.lateness, told=True)

    def matcher(self) -> IntervalShardMatcher:
        return IntervalShardMatcher(self, LiveIntervalMatcher(self.compiled))

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[IntervalShardMatcher, dict[str, Any]]:
        live, kept = LiveIntervalMatcher.restored(self.compiled, snapshot, made_for, columns)
        return IntervalShardMatcher(self, live), kept


class IntervalShardMatcher:
    """Finds an interval pattern: the clock is at the watermark, the first time that is not late."""

    def __init__(self, pattern: OfIntervals, live: LiveIntervalMatcher) -> None:
        self.pattern = pattern
        self.live = live
        self._matches = 0

    def advance_time(self, time: int) -> pa.Table:
        if time == NO_TIME:
            return self.pattern.schema.empty_table()
        return self._counted(self.live.advance_time(max(time, BEGINNING) + 1))

    def process(self, events: Batch) -> pa.Table:
        rows = self._counted(self.live.process(in_order_of_content(events)))
        return rows if "late" in self.pattern.outputs else rows.filter(pc.not_equal(rows.column("kind"), LATE))

    def net(self, rows: pa.Table) -> pa.Table:
        """Without what is told and taken back within the micro-batch."""
        taken_back = rows.filter(pc.equal(rows.column("kind"), RETRACTION_KIND)).column("match_id")
        if not len(taken_back):
            return rows
        told = rows.filter(pc.equal(rows.column("kind"), INSERTION_KIND)).column("match_id")
        both = told.filter(pc.is_in(told, value_set=taken_back.combine_chunks()))
        return rows.filter(pc.invert(pc.is_in(rows.column("match_id"), value_set=both.combine_chunks())))

    def replay(self, log: Iterable[tuple[int, Batch]], passed: int, limits: Limits) -> None:
        """Batch by batch: of events that agree in all that is shown the first that came is the first."""
        self.live.kernel.limit(limits)
        for until, events in log:
            self.advance_time(until)
            self.process(events)
        self.advance_time(passed)
        self.live.kernel.limit(self.pattern.limits)

    def renewed(self) -> pa.Table | None:
        consistency = self.pattern.plan.pattern.consistency
        if self.live.kernel.consistency is consistency:
            return None
        return self._counted(self.live.switch(consistency))

    @property
    def now(self) -> int:
        return NO_TIME if self.live.clock == BEGINNING else self.live.clock - 1

    @property
    def due(self) -> int:
        over = self.live.over
        return min(self.live.due, FOREVER if over < self.live.clock else over)

    @property
    def open(self) -> int:
        return self.live.open_matches

    @property
    def is_idle(self) -> bool:
        return self.live.over < self.live.clock or not self.live.held

    @property
    def counts(self) -> dict[str, int]:
        """`matches` are those told and not taken back."""
        found = {"matches": self._matches, "late": self.live.late, "dropped_matches": self.live.dropped}
        return {name: found.get(name, 0) for name in STREAM_COUNTS if name != OPENED}

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        return self.live.snapshot(made_for, kept)

    def _counted(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column("kind")
        told, taken_back = (pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in (INSERTION_KIND, RETRACTION_KIND))
        self._matches += told - taken_back
        return rows
