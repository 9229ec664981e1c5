"""The runner of an interval pattern in events that rows open and close, for hosts of live events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.events.batch import END, EVENT_ID, EVENT_PREFIX, KEY_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.counts import LIVE_COUNTS
from cepheid.matchers.intervals.live import WHY_UNLISTED, LiveIntervals, clock_at
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_state import given_rows
from cepheid.matchers.intervals.read_rows import ReadRows
from cepheid.matchers.intervals.rows import RowReader
from cepheid.matchers.runners import Planned
from cepheid.matchers.shared.events import Share
from cepheid.matchers.snapshot import Snapshot, restored
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

    def own_ends(self, values: Sequence[int] | None = None) -> list[str]:
        """The columns besides END that an event has from the row that closes it. `values` are the numbers of the
        pattern's lifted columns among those of several patterns; None: it is the only one.
        """
        end = f"{EVENT_PREFIX}{self.plan.schema.end}"
        chosen = [end] if self.plan.schema.end in self.plan.columns else []
        own = values_of_ends(self.plan)
        return [*chosen, *(f"{VALUE_PREFIX}{number if values is None else values[number]}" for number in own)]

    def matcher(self, ids: Ids = Ids.SIPHASH) -> OpenRowsMatcher:
        found = OpenRowsMatcher(self)
        found.live.ids = ids
        return found

    def sharing(self, share: Share, ids: Ids, rows: ReadRows) -> OpenRowsMatcher:
        """A new matcher that holds events together with others, whose `rows` it takes."""
        found = OpenRowsMatcher(self, rows=rows, share=share)
        found.live.ids = ids
        return found

    def reader(self, ends: Collection[str], is_held: Callable[[bytes], bool]) -> ReadRows:
        """What reads the rows; `ends` are the columns besides END that an event has from the row that closes it, and
        `is_held` says whether a pattern needs the event with this id.
        """
        reader = RowReader(0, self.late_by, self.open_for, drops=self.drops, external_clock=True, is_held=is_held)
        schema = self.plan.schema
        times = {str(schema.event_id): EVENT_ID, **dict(zip(schema.times, (TIME, END), strict=True))}
        keys = {name: f"{KEY_PREFIX}{i}" for i, name in enumerate(schema.key)}
        return ReadRows(reader, ends, times | keys, numbered=False)

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        if len(snapshots) > 1:
            raise PatternError(_WHOLE)
        return snapshots[0]

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[OpenRowsMatcher, dict[str, Any]]:
        return restored(self.matcher(), snapshot, made_for, columns)


class OpenRowsMatcher(LiveIntervals):
    """A LiveMatcher whose clock is at the watermark, the first time that is not late."""

    live: LiveOpenMatcher

    def __init__(
        self, pattern: OpenIntervalsRunner, *, rows: ReadRows | None = None, share: Share | None = None
    ) -> None:
        """With `rows` and a `share`, the host reads the rows and adds the events to the shared ones."""
        live = LiveOpenMatcher(
            pattern.plan,
            delay=0,
            lateness=pattern.late_by,
            external_clock=True,
            frequencies=None,
            share=share,
        )
        super().__init__(pattern.plan, live)
        self.pattern: OpenIntervalsRunner = pattern
        self._rows = pattern.reader(pattern.own_ends(), live.holds) if rows is None else rows
        self._stores_rows = share is None or share.number == 0
        """What is read once for all patterns is stored with the first of them."""

    def advance_time(self, time: int) -> pa.Table:
        if time != NO_TIME:
            self._rows.advance(clock_at(time))
        return self.passed(time)

    def passed(self, time: int) -> pa.Table:
        if time == NO_TIME:
            return self.pattern.schema.empty_table()
        return self._counted(self.live.move_clock(clock_at(time), self._rows.steps))

    def process(self, events: Batch) -> pa.Table:
        return self.taken(read_batch(self._rows, events))

    def taken(self, events: Batch) -> pa.Table:
        return self._asked(self._counted(self.live.process_steps(events, self._rows.steps)))

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

    def limit(self, limits: Limits) -> None:
        """The limit is on what an event completes, which a replay repeats."""

    def renewed(self) -> pa.Table | None:
        consistency = self.pattern.plan.pattern.consistency
        return None if self.live.consistency is consistency else self._counted(self.live.switch(consistency))

    @property
    def due(self) -> int:
        """Also the time after which the state is empty without further rows."""
        over = self.live.over
        is_real_time = self.live.consistency is Consistency.REALTIME
        waiting = self.live.due
        waiting = waiting - 1 if is_real_time and waiting < FOREVER else waiting
        return min(waiting, self._rows.due, FOREVER if over < self.live.clock else over)

    @property
    def is_idle(self) -> bool:
        is_past = self.live.over < self.live.clock
        return is_past and not self._rows.has_open and self.live.needs_none

    @property
    def counts(self) -> dict[str, int]:
        """A value for each of LIVE_COUNTS; `matches` are those inserted and not retracted."""
        found = {"matches": self._matches, "late": self.live.late}
        return {name: found.get(name, 0) for name in LIVE_COUNTS}

    def keep_only(self, names: Collection[bytes]) -> None:  # noqa: ARG002
        raise PatternError(_WHOLE)

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """As in LiveMatcher. `by_id` has the counts that the reader and this matcher continue."""
        counts = {**self._rows.counts, "matches": self._matches}
        header = {"made_for": made_for, "kept": kept, "by_id": counts}
        return self.live.stored(header, {}, self._rows.stored if self._stores_rows else {})

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """As in Restorable."""
        self.live.take_over(snapshot, columns)
        counts = snapshot.header["by_id"]
        self._matches = counts["matches"]
        if self._stores_rows:
            self._rows.restore(snapshot.batches, counts, self.live)


def read_batch(rows: ReadRows, events: Batch) -> Batch:
    """Reads the rows of a stream's batch, which are lifted already. Returns the events."""
    times = [events.column(name) for name in (TIME, END)]
    given = given_rows(events.column(EVENT_ID), times, events.keys)
    joined = rows.read(pa.Table.from_batches([events.data]), given).combine_chunks().to_batches()
    return Batch(joined[0]) if joined else events.slice(0, 0)
