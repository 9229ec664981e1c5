"""The runner of an interval pattern in events that rows open and close, for hosts of live events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.errors import EventError, PatternError
from cepheid.events.batch import END, EVENT_ID, EVENT_PREFIX, KEY_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.counts import LIVE_COUNTS
from cepheid.matchers.intervals.live import WHY_UNLISTED, LiveIntervals
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.open_state import given_rows, reader_batches, restore_reader, unusable_text
from cepheid.matchers.intervals.rows import RowReader, UnusableRow
from cepheid.matchers.runners import Planned, advance
from cepheid.matchers.snapshot import Snapshot, restored
from cepheid.matchers.watermark import Reached
from cepheid.output.common import INSERTION, RETRACTION
from cepheid.output.ids import Ids
from cepheid.output.intervals.rows import row_schema
from cepheid.plan.intervals.ends import values_of_ends
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits

_WHOLE = "a shard of events that rows open and close cannot be divided"


@dataclass(frozen=True)
class OpenIntervalsRunner(Planned):
    """A PatternRunner."""

    plan: IntervalPlan
    late_by: End
    """The time of a whole event that decides whether it is late."""
    drops: bool
    """Whether rows and events that cannot be used are dropped; otherwise they are an error."""
    open_for: int | None
    """Microseconds: how long an event may be open; None: any time."""
    why_unlisted = WHY_UNLISTED

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @property
    def own_ends(self) -> list[str]:
        """The columns besides END that an event has from the row that closes it."""
        end = f"{EVENT_PREFIX}{self.plan.schema.end}"
        chosen = [end] if self.plan.schema.end in self.plan.columns else []
        return [*chosen, *(f"{VALUE_PREFIX}{number}" for number in values_of_ends(self.plan))]

    def matcher(self, ids: Ids = Ids.SIPHASH) -> OpenRowsMatcher:
        found = OpenRowsMatcher(self)
        found.live.ids = ids
        return found

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        if len(snapshots) > 1:
            raise PatternError(_WHOLE)
        return snapshots[0]

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[OpenRowsMatcher, dict[str, Any]]:
        return restored(OpenRowsMatcher(self), snapshot, made_for, columns)


class OpenRowsMatcher(LiveIntervals):
    """A LiveMatcher whose clock is at the watermark, the first time that is not late."""

    live: LiveOpenMatcher

    def __init__(self, pattern: OpenIntervalsRunner) -> None:
        live = LiveOpenMatcher(pattern.plan, delay=0, lateness=pattern.late_by, external_clock=True, frequencies=None)
        super().__init__(pattern.plan, live)
        self.pattern = pattern
        self._reader = RowReader(
            0,
            pattern.late_by,
            pattern.open_for,
            drops=pattern.drops,
            external_clock=True,
            is_held=live.holds,
        )
        self._rows = OpenRows(pattern.own_ends, self._reader.may_change)

    def advance_time(self, time: int) -> pa.Table:
        if time == NO_TIME:
            return self.pattern.schema.empty_table()
        clock = min(max(time, BEGINNING), FOREVER - 1) + 1
        try:
            steps = self._reader.advance(clock)
        except UnusableRow as unusable:
            raise EventError(self._text(unusable, None)) from unusable
        self._rows.drop(steps)
        return self._counted(self.live.move_clock(clock, steps))

    def process(self, events: Batch) -> pa.Table:
        given = pa.Table.from_batches([events.data])
        try:
            steps = self._reader.steps(
                given_rows(events.column(EVENT_ID), [events.column(name) for name in (TIME, END)], events.keys)
            )
        except UnusableRow as unusable:
            raise EventError(self._text(unusable, given)) from unusable
        joined = self._rows.joined(given, steps).combine_chunks().to_batches()
        batch = events.slice(0, 0) if not joined else Batch(joined[0])
        return self._asked(self._counted(self.live.process_steps(batch, steps)))

    def _text(self, unusable: UnusableRow, rows: pa.Table | None) -> str:
        schema = self.pattern.plan.schema
        keys = {name: f"{KEY_PREFIX}{i}" for i, name in enumerate(schema.key)}
        times = {str(schema.event_id): EVENT_ID, **dict(zip(schema.times, (TIME, END), strict=True))}
        return unusable_text(unusable, self._rows, rows, times | keys, numbered=False)

    def net(self, rows: pa.Table) -> pa.Table:
        """The rows without those of a match before its last retraction. If the match was not emitted before, its
        retraction is left out, too.
        """
        kinds, ids = rows.column("kind").to_pylist(), rows.column("match_id").to_pylist()
        retracted = {
            id_: number for number, (kind, id_) in enumerate(zip(kinds, ids, strict=True)) if kind == RETRACTION
        }
        if not retracted:
            return rows
        first = dict(zip(reversed(ids), reversed(kinds), strict=True))
        needed = {id_: number + (first[id_] == INSERTION) for id_, number in retracted.items()}
        kept = [number for number, id_ in enumerate(ids) if number >= needed.get(id_, 0)]
        return rows.take(pa.array(kept, pa.int64()))

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:  # noqa: ARG002
        """Repeats the input batch by batch. The limit is on what an event completes, which the replay repeats."""
        for before, events in log:
            advance(self, before)
            self.process(events)
        advance(self, reached)

    def renewed(self) -> pa.Table | None:
        consistency = self.pattern.plan.pattern.consistency
        return None if self.live.consistency is consistency else self._counted(self.live.change(consistency))

    @property
    def due(self) -> int:
        """Also the time after which the state is empty without further rows."""
        over = self.live.over
        is_real_time = self.live.consistency is Consistency.REALTIME
        waiting = self.live.due
        waiting = waiting - 1 if is_real_time and waiting < FOREVER else waiting
        return min(waiting, self._reader.due, FOREVER if over < self.live.clock else over)

    @property
    def is_idle(self) -> bool:
        if self._reader.opened or self.live.over >= self.live.clock:
            return False
        self.live.forget()
        return not self.live.held

    @property
    def counts(self) -> dict[str, int]:
        """A value for each of LIVE_COUNTS; `matches` are those inserted and not retracted."""
        found = {"matches": self._matches, "late": self.live.late}
        return {name: found.get(name, 0) for name in LIVE_COUNTS}

    def keep_only(self, names: Collection[bytes]) -> None:  # noqa: ARG002
        raise PatternError(_WHOLE)

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """As in LiveMatcher. `by_id` has the counts that the reader and this matcher continue."""
        header = {"made_for": made_for, "kept": kept, "by_id": {**self._reader.counts, "matches": self._matches}}
        return self.live.stored(header, {}, reader_batches(self._reader, self._rows))

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """As in Restorable."""
        self.live.take_over(snapshot, columns)
        counts = snapshot.header["by_id"]
        self._reader.counts = {name: counts[name] for name in self._reader.counts}
        self._matches = counts["matches"]
        restore_reader(self._reader, self._rows, self.live, snapshot.batches, EVENT_ID)
