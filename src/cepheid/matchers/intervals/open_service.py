"""The ServiceMatcher of interval patterns in events that rows open and close."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError, PatternError, SnapshotError
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.duration import microseconds
from cepheid.matchers.counts import IntervalMatcherCounts
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.rows import ClosedEvent, GivenRow, RowReader, Step, UnusableRow
from cepheid.matchers.intervals.runner import WHY_UNLISTED
from cepheid.matchers.intervals.service import made_for
from cepheid.matchers.snapshot import fitting, opened, stored_numbers
from cepheid.output.common import COMPLETION, INSERTION, RETRACTION
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
        return reader, OpenRows(self._plan.schema.end, reader.may_change), matcher

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
        ids = rows.column(self._plan.schema.event_id).combine_chunks()
        names = pc.if_else(ids.is_valid(), canonical_bytes([ids], len(ids)), None).to_pylist()
        there = np.ones(len(rows), np.bool_)
        for name in self._plan.schema.key:
            there &= rows.column(name).is_valid().to_numpy()
        withdraws = np.zeros(len(rows), np.bool_) if self._changes is None else _withdrawals(rows, self._changes)
        instants = (time.cast(pa.int64()).to_pylist() for time in times)
        return [GivenRow(*row) for row in zip(names, *instants, there.tolist(), withdraws.tolist(), strict=True)]

    def _text(self, unusable: UnusableRow, rows: pa.Table | None = None) -> str:
        """The message, with the id and the times as they are given."""
        if unusable.number is None or rows is None:
            assert unusable.name is not None
            found, noun = self._rows.first_row(unusable.name), "an event"
        else:
            found, noun = rows.slice(unusable.number, 1), f"row {unusable.number}"
        schema = self._plan.schema
        known = {} if found is None else found.to_pylist()[0]
        columns = (schema.event_id, *schema.times, *schema.key)
        shown = ", ".join(f"{name}: {_value(known[name])}" for name in columns if name in known)
        return f"{noun} ({shown}) {unusable.what}. {unusable.advice}"

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
        closed = pa.record_batch(
            {
                "id": pa.array(reader.closed, pa.binary()),
                "start": pa.array([event.start for event in reader.closed.values()], pa.int64()),
                "end": pa.array([event.end for event in reader.closed.values()], pa.int64()),
            }
        )
        without_key = {name: reader.opened.get(name) for name in reader.keyless}
        keyless = pa.record_batch(
            {"id": pa.array(without_key, pa.binary()), "start": pa.array(without_key.values(), pa.int64())}
        )
        batches = {"closed": closed, "keyless": keyless}
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
            closed, keyless = (snapshot.batches[name].to_pylist() for name in ("closed", "keyless"))
            reader.restore(
                matcher.clock,
                matcher.opened | {row["id"]: row["start"] for row in keyless if row["start"] is not None},
                {row["id"]: ClosedEvent(row["start"], row["end"]) for row in closed},
                {row["id"] for row in keyless},
            )
            if (opening := snapshot.batches.get("opening_rows")) is not None:
                rows.restore(pa.Table.from_batches([opening]), self._names_of(opening, reader))
        # Only now: a snapshot that is refused changes nothing.
        self._reader, self._rows, self._matcher = reader, rows, matcher
        self._matches, self._steps = matches, []
        return kept

    def _names_of(self, rows: pa.RecordBatch, reader: RowReader) -> list[bytes]:
        """The ids of a snapshot's first rows, one for each event that may change."""
        names: list[bytes] = canonical_bytes([rows.column(self._plan.schema.event_id)], len(rows)).to_pylist()
        if sorted(names) != sorted(reader.changeable):
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


WITHDRAWS = {INSERTION: False, COMPLETION: False, RETRACTION: True}
"""What the values of a column of changes say: whether the row withdraws its event."""


def _withdrawals(rows: pa.Table, column: str) -> npt.NDArray[np.bool_]:
    """Which rows withdraw their events.

    Raises:
        EventError: another value stands there.
    """
    changes = rows.column(column).combine_chunks().cast(pa.string())
    known = pc.is_in(changes, value_set=pa.array([*WITHDRAWS]))
    if not pc.all(known).as_py() and len(rows):
        number = pc.index(known, pa.scalar(value=False)).as_py()
        allowed = ", ".join(map(repr, WITHDRAWS))
        raise EventError(
            f"row {number} has {changes[number].as_py()!r} in the column {column!r} of changes. It may be {allowed}"
        )
    found: npt.NDArray[np.bool_] = pc.equal(changes, RETRACTION).to_numpy(zero_copy_only=False)
    return found


def _value(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, datetime) else repr(value)
