"""The ServiceMatcher of interval patterns in events that rows open and close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError, SnapshotError
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.duration import microseconds
from cepheid.matchers.counts import IntervalMatcherCounts
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.rows import GivenRow, RowReader, Step
from cepheid.matchers.intervals.runner import WHY_UNLISTED
from cepheid.matchers.intervals.service import made_for
from cepheid.matchers.snapshot import fitting, opened, stored_numbers
from cepheid.output.common import INSERTION, RETRACTION
from cepheid.plan.intervals.ends import unknown_negations
from cepheid.plan.intervals.growth import interval_growth, never_certain
from cepheid.plan.intervals.plan import IntervalPlan


class OpenIntervalServiceMatcher:
    """A RowsMatcher."""

    def __init__(
        self,
        plan: IntervalPlan,
        lateness: timedelta | None,
        late_by: End,
        *,
        open_for: timedelta | None,
        drops: bool,
        frequencies: Mapping[str, float] | None,
        columns: pa.Schema,
        zone: str,
        parts: Mapping[str, str],
    ) -> None:
        """`open_for` is how long an event may be open; with `drops`, longer ones and rows that cannot be used are
        dropped and counted. `parts` are further values on which it depends whether a snapshot fits.

        Raises:
            PatternError: no match would be certain before the end, or a negation reads an end in SQL.
        """
        if problems := unknown_negations(plan):
            raise PatternError(problems)
        self._plan, self._late_by, self._ends = plan, late_by, lateness is None
        self._check_certain(plan.pattern.consistency)
        self._delay = None if lateness is None else microseconds(lateness)
        self._open_for = None if open_for is None else microseconds(open_for)
        self._drops, self._frequencies = drops, frequencies
        self._reader, self._rows, self._matcher = self._new_parts()
        self._matches = 0
        self._steps: list[Step] = []
        own = {"event_id": plan.schema.event_id, "time_zone": zone, **parts}
        self._made_for = made_for(plan, columns, self._delay, late_by, own)

    def _new_parts(self) -> tuple[RowReader, OpenRows, LiveOpenMatcher]:
        assert self._plan.schema.end is not None
        matcher = LiveOpenMatcher(self._plan, delay=self._delay, lateness=self._late_by, frequencies=self._frequencies)
        reader = RowReader(self._delay, self._late_by, self._open_for, drops=self._drops, is_held=matcher.holds)
        return reader, OpenRows(self._plan.schema.end), matcher

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is retained forever."""
        found = () if self._ends else interval_growth(self._plan.pattern, self._late_by)
        if self._open_for is None and not self._ends:
            found = (*found, "events that no row closes are stored for ever. Give open_for=…")
        return found

    @property
    def plan_now(self) -> IntervalPlan:
        """The plan with the current consistency."""
        return replace(self._plan, pattern=self._plan.pattern.emitting(self._matcher.consistency))

    def read(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> tuple[pa.Table, tuple[pa.ChunkedArray, ...]]:
        """Reads the rows of one call, with their starts and ends. Returns the events to lift, with their times;
        `process` takes them next.

        Raises:
            EventError: a row cannot be used, or an event is open for too long.
        """
        starts, ends = times
        timed = rows.append_column(TIME, starts).append_column(END, ends)
        ids = rows.column(self._plan.schema.event_id).combine_chunks()
        names = pc.if_else(ids.is_valid(), canonical_bytes([ids], len(ids)), None).to_pylist()
        there = np.ones(len(rows), np.bool_)
        for name in self._plan.schema.key:
            there &= rows.column(name).is_valid().to_numpy()
        instants = (time.cast(pa.int64()).to_pylist() for time in times)
        given = [GivenRow(*row) for row in zip(names, *instants, there.tolist(), strict=True)]
        self._steps = self._reader.steps(given)
        joined = self._rows.joined(timed, self._steps)
        return joined.drop_columns([TIME, END]), (joined.column(TIME), joined.column(END))

    def process(self, batch: Batch) -> pa.Table:
        return self._counted(self._matcher.process_steps(batch, self._steps))

    def advance_time(self, time: int) -> pa.Table:
        steps = self._reader.advance(time)
        self._rows.drop(steps)
        return self._counted(self._matcher.move_clock(time, steps))

    def finish(self) -> pa.Table:
        steps = self._reader.finish()
        self._rows.drop(steps)
        return self._counted(self._matcher.end(steps))

    def switch(self, consistency: Consistency) -> pa.Table:
        self._check_certain(consistency)
        return self._counted(self._matcher.change(consistency))

    def partial_matches(self, most: int) -> pa.Table:  # noqa: ARG002
        raise PatternError(WHY_UNLISTED)

    def counts(self, read: Mapping[str, int]) -> IntervalMatcherCounts:
        return IntervalMatcherCounts(
            events=read["events"],
            **self._reader.counts,
            matches=self._matches,
            late=self._matcher.late,
            open_matches=self._matcher.open_matches,
            held=self._matcher.held,
        )

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        kept = {**read, **self._reader.counts, "matches": self._matches}
        closed = pa.record_batch(
            {
                "id": pa.array(self._reader.closed, pa.binary()),
                "end": pa.array(self._reader.closed.values(), pa.int64()),
            }
        )
        batches = {"closed": closed}
        if (rows := self._rows.stored) is not None:
            batches["opening_rows"] = (rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)])[0]
        return self._matcher.stored({"made_for": self._made_for, "kept": kept}, {}, batches)

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        snapshot = opened(data, self._made_for)
        reader, rows, matcher = self._new_parts()
        with fitting():
            matcher.take_over(snapshot, columns)
            kept = stored_numbers(snapshot.header["kept"])
            matches = kept["matches"]
            reader.counts = {name: kept[name] for name in reader.counts}
            closed = snapshot.batches["closed"]
            ends = dict(zip(closed.column("id").to_pylist(), closed.column("end").to_pylist(), strict=True))
            reader.restore(matcher.clock, matcher.opened, ends)
            if (opening := snapshot.batches.get("opening_rows")) is not None:
                rows.restore(pa.Table.from_batches([opening]), self._names_of_opened(opening, matcher))
        # Only now: a snapshot that is refused changes nothing.
        self._reader, self._rows, self._matcher = reader, rows, matcher
        self._matches, self._steps = matches, []
        return kept

    def _names_of_opened(self, rows: pa.RecordBatch, matcher: LiveOpenMatcher) -> list[bytes]:
        """The ids of a snapshot's opening rows, one for each open event of the matcher."""
        names: list[bytes] = canonical_bytes([rows.column(self._plan.schema.event_id)], len(rows)).to_pylist()
        if sorted(names) != sorted(matcher.opened):
            raise SnapshotError("the snapshot's opening rows are not those of its open events")
        return names

    def _check_certain(self, consistency: Consistency) -> None:
        pattern = self._plan.pattern.emitting(consistency)
        if not self._ends and (problems := never_certain(pattern, self._late_by, "late_by='start'")):
            raise PatternError(problems)

    def _counted(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column("kind").to_pylist()
        self._matches += kinds.count(INSERTION) - kinds.count(RETRACTION)
        return rows
