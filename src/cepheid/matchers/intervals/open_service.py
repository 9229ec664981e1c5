"""The ServiceMatcher of interval patterns in events that rows open and close."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from cepheid.errors import EventError, PatternError
from cepheid.events.batch import END, TIME, Batch
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.duration import microseconds
from cepheid.matchers.counts import IntervalMatcherCounts
from cepheid.matchers.intervals.live import WHY_UNLISTED
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.open_state import given_rows, reader_batches, restore_reader, unusable_text, withdrawals
from cepheid.matchers.intervals.rows import GivenRow, RowReader, Step, UnusableRow
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
        changes: str | None = None,
        drops: bool,
        is_held: Callable[[bytes], bool] | None = None,
        frequencies: Mapping[str, float] | None,
        columns: pa.Schema,
        zone: str,
        parts: Mapping[str, str],
    ) -> None:
        """`open_for` is how long an event may be open; with `drops`, longer ones and rows that cannot be used are
        dropped and counted. With `changes`, the column that says what rows do, they revise and withdraw events.
        `is_held` says whether an event is needed here or by other matchers of the same rows; None: there are none.
        `parts` are further values on which it depends whether a snapshot fits.

        Raises:
            PatternError: no match would be certain before the end, or a negation reads an end in SQL.
        """
        if problems := unknown_negations(plan):
            raise PatternError(problems)
        self._plan, self._late_by, self._ends = plan, late_by, lateness is None
        self._check_certain(plan.pattern.consistency)
        self._delay = None if lateness is None else microseconds(lateness)
        self._open_for = None if open_for is None else microseconds(open_for)
        self._changes, self._drops, self._frequencies = changes, drops, frequencies
        self._is_held = is_held
        self._reader, self._rows, self._matcher = self._new_parts()
        self._matches = 0
        self._steps: list[Step] = []
        own = {"event_id": plan.schema.event_id, "time_zone": zone, **parts}
        own |= {} if changes is None else {"changes": changes}
        self._made_for = made_for(plan, columns, self._delay, late_by, own)

    def _new_parts(self) -> tuple[RowReader, OpenRows, LiveOpenMatcher]:
        assert self._plan.schema.end is not None
        revises = self._changes is not None
        matcher = LiveOpenMatcher(
            self._plan, delay=self._delay, lateness=self._late_by, revises=revises, frequencies=self._frequencies
        )
        reader = RowReader(
            self._delay,
            self._late_by,
            self._open_for,
            drops=self._drops,
            revises=revises,
            is_held=self._is_held or matcher.holds,
        )
        return reader, OpenRows([self._plan.schema.end], reader.may_change), matcher

    def holds(self, name: bytes) -> bool:
        """Whether the event with this id is needed."""
        return self._matcher.holds(name)

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
        try:
            self._steps = self._reader.steps(self._given(rows, times))
        except UnusableRow as unusable:
            raise EventError(self._text(unusable, rows)) from unusable
        joined = self._rows.joined(timed, self._steps)
        return joined.drop_columns([TIME, END]), (joined.column(TIME), joined.column(END))

    def _given(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> list[GivenRow]:
        withdraws = None if self._changes is None else withdrawals(rows, self._changes)
        keys = [rows.column(name) for name in self._plan.schema.key]
        return given_rows(rows.column(self._plan.schema.event_id).combine_chunks(), times, keys, withdraws)

    def _text(self, unusable: UnusableRow, rows: pa.Table | None = None) -> str:
        """The message, with the id and the times as they are given."""
        schema = self._plan.schema
        columns = (schema.event_id, *schema.times, *schema.key)
        return unusable_text(unusable, self._rows, rows, {str(name): str(name) for name in columns})

    def process(self, batch: Batch) -> pa.Table:
        return self._counted(self._matcher.process_steps(batch, self._steps))

    def advance_time(self, time: int) -> pa.Table:
        try:
            steps = self._reader.advance(time)
        except UnusableRow as unusable:
            raise EventError(self._text(unusable)) from unusable
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
        reader = self._reader
        kept = {**read, **reader.counts, "matches": self._matches}
        batches = reader_batches(reader, self._rows)
        return self._matcher.stored({"made_for": self._made_for, "kept": kept}, {}, batches)

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        snapshot = opened(data, self._made_for)
        reader, rows, matcher = self._new_parts()
        with fitting():
            matcher.take_over(snapshot, columns)
            kept = stored_numbers(snapshot.header["kept"])
            matches = kept["matches"]
            reader.counts = {name: kept[name] for name in reader.counts}
            restore_reader(reader, rows, matcher, snapshot.batches, self._plan.schema.event_id)
        # Only now: a snapshot that is refused changes nothing.
        self._reader, self._rows, self._matcher = reader, rows, matcher
        self._matches, self._steps = matches, []
        return kept

    def _check_certain(self, consistency: Consistency) -> None:
        pattern = self._plan.pattern.emitting(consistency)
        if not self._ends and (problems := never_certain(pattern, self._late_by, "late_by='start'")):
            raise PatternError(problems)

    def _counted(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column("kind").to_pylist()
        self._matches += kinds.count(INSERTION) - kinds.count(RETRACTION)
        return rows
