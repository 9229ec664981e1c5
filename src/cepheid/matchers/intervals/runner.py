"""The runner of an interval pattern, for hosts of live events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.lang.consistency import End
from cepheid.matchers.counts import LIVE_COUNTS
from cepheid.matchers.intervals.division import joined_snapshots
from cepheid.matchers.intervals.live import WHY_UNLISTED, LiveIntervals, clock_at
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.runners import Planned
from cepheid.matchers.shared.events import Share
from cepheid.matchers.shared.order_of_ends import in_order_of_content
from cepheid.matchers.snapshot import Snapshot, from_bytes, restored, to_bytes
from cepheid.output.common import INSERTION, RETRACTION
from cepheid.output.ids import Ids
from cepheid.output.intervals.rows import row_schema
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits


@dataclass(frozen=True)
class IntervalsRunner(Planned):
    """A PatternRunner."""

    plan: IntervalPlan
    late_by: End
    """The time of an event, its start or its end, that decides whether it is late."""
    why_unlisted = WHY_UNLISTED

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @cached_property
    def compiled(self) -> CompiledIntervals:
        """The plan, compiled without a delay, because the watermark is the clock."""
        return compile_intervals(self.plan, delay=0, lateness=self.late_by, external_clock=True)

    def matcher(self, ids: Ids = Ids.SIPHASH) -> IntervalRowsMatcher:
        return self._new(ids)

    def sharing(self, share: Share, ids: Ids) -> IntervalRowsMatcher:
        """A new matcher that holds events together with others."""
        return self._new(ids, share)

    def _new(self, ids: Ids, share: Share | None = None) -> IntervalRowsMatcher:
        found = IntervalRowsMatcher(self, LiveIntervalMatcher(self.compiled, share=share))
        found.live.ids = ids
        return found

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        if len(snapshots) == 1:
            return snapshots[0]
        each = [from_bytes(one) for one in snapshots]
        return to_bytes(joined_snapshots(each, self.plan.pattern.consistency))

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[IntervalRowsMatcher, dict[str, Any]]:
        return restored(self.matcher(), snapshot, made_for, columns)


class IntervalRowsMatcher(LiveIntervals):
    """A LiveMatcher whose clock is at the watermark, the first time that is not late."""

    live: LiveIntervalMatcher

    def __init__(self, pattern: IntervalsRunner, live: LiveIntervalMatcher) -> None:
        super().__init__(pattern.plan, live)
        self.pattern: IntervalsRunner = pattern

    def passed(self, time: int) -> pa.Table:
        if time == NO_TIME:
            return self.pattern.schema.empty_table()
        return self._counted(self.live.advance_time(clock_at(time)))

    def taken(self, events: Batch) -> pa.Table:
        return self._asked(self._counted(self.live.process(in_order_of_content(events))))

    def net(self, rows: pa.Table) -> pa.Table:
        taken_back = rows.filter(pc.equal(rows.column("kind"), RETRACTION)).column("match_id")
        if not len(taken_back):
            return rows
        inserted = rows.filter(pc.equal(rows.column("kind"), INSERTION)).column("match_id")
        both = inserted.filter(pc.is_in(inserted, value_set=taken_back.combine_chunks()))
        return rows.filter(pc.invert(pc.is_in(rows.column("match_id"), value_set=both.combine_chunks())))

    def limit(self, limits: Limits) -> None:
        self.live.kernel.limit(limits)

    def renewed(self) -> pa.Table | None:
        consistency = self.pattern.plan.pattern.consistency
        if self.live.kernel.consistency is consistency:
            return None
        return self._counted(self.live.switch(consistency))

    @property
    def due(self) -> int:
        return FOREVER if self.is_idle else min(self.live.due, self.live.over)

    @property
    def is_idle(self) -> bool:
        return self.live.over < self.live.clock or not self.live.held

    @property
    def counts(self) -> dict[str, int]:
        """A value for each of LIVE_COUNTS; `matches` are those inserted and not retracted."""
        found = {"matches": self._matches, "late": self.live.late, "dropped_matches": self.live.dropped}
        return {name: found.get(name, 0) for name in LIVE_COUNTS}

    def keep_only(self, names: Collection[bytes]) -> None:
        self.live.keep_only(names)

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        return self.live.snapshot(made_for, kept)

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """As in Restorable."""
        self.live.take_over(snapshot, columns)
