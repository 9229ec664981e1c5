"""The rows of one live matcher that open and close events. They are read once for all of its patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pyarrow as pa

from cepheid.errors import EventError
from cepheid.events.batch import END, TIME, Schema
from cepheid.lang.consistency import End
from cepheid.lang.duration import microseconds
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.open_state import given_rows, reader_batches, restore_reader, unusable_text, withdrawals
from cepheid.matchers.intervals.rows import GivenRow, RowReader, Step, UnusableRow


class EventRows:
    """A RowsReader."""

    def __init__(
        self,
        schema: Schema,
        lateness: timedelta | None,
        late_by: End,
        *,
        open_for: timedelta | None,
        changes: str | None,
        drops: bool,
        is_held: Callable[[bytes], bool],
    ) -> None:
        """`open_for` is how long an event may be open; with `drops`, longer ones and rows that cannot be used are
        dropped and counted. With `changes`, the column that says what rows do, they revise and withdraw events.
        `is_held` says whether a pattern needs the event with this id.
        """
        self._schema, self._late_by, self._changes, self._drops = schema, late_by, changes, drops
        self._delay = None if lateness is None else microseconds(lateness)
        self._open_for = None if open_for is None else microseconds(open_for)
        self._is_held = is_held
        self._reader, self._first = self._new_parts()
        self.steps: Sequence[Step] = ()
        """What the last call has found; each pattern's matcher takes it next."""

    def _new_parts(self) -> tuple[RowReader, OpenRows]:
        assert self._schema.end is not None
        reader = RowReader(
            self._delay,
            self._late_by,
            self._open_for,
            drops=self._drops,
            revises=self._changes is not None,
            is_held=self._is_held,
        )
        return reader, OpenRows([self._schema.end], reader.may_change)

    @property
    def counts(self) -> dict[str, int]:
        return self._reader.counts

    def read(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> tuple[pa.Table, tuple[pa.ChunkedArray, ...]]:
        starts, ends = times
        timed = rows.append_column(TIME, starts).append_column(END, ends)
        try:
            self.steps = self._reader.steps(self._given(rows, times))
        except UnusableRow as unusable:
            raise EventError(self._text(unusable, rows)) from unusable
        joined = self._first.joined(timed, self.steps)
        return joined.drop_columns([TIME, END]), (joined.column(TIME), joined.column(END))

    def advance_time(self, time: int) -> None:
        try:
            self.steps = self._reader.advance(time)
        except UnusableRow as unusable:
            raise EventError(self._text(unusable)) from unusable
        self._first.drop(self.steps)

    def finish(self) -> None:
        self.steps = self._reader.finish()
        self._first.drop(self.steps)

    @property
    def stored(self) -> dict[str, pa.RecordBatch]:
        """The state besides the counts and what the matchers have, for a snapshot."""
        return reader_batches(self._reader, self._first)

    def restore(
        self, stored: Mapping[str, pa.RecordBatch], counts: Mapping[str, int], matcher: LiveOpenMatcher
    ) -> None:
        """Continues with what `stored` has returned; the matcher, of any of the patterns, has its state already.

        Raises:
            SnapshotError: the first rows are not those of the events that may change; then nothing has changed.
        """
        reader, first = self._new_parts()
        reader.counts = {name: counts[name] for name in reader.counts}
        restore_reader(reader, first, matcher, stored, self._schema.event_id)
        self._reader, self._first, self.steps = reader, first, ()

    def _given(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> list[GivenRow]:
        withdraws = None if self._changes is None else withdrawals(rows, self._changes)
        keys = [rows.column(name) for name in self._schema.key]
        return given_rows(rows.column(self._schema.event_id).combine_chunks(), times, keys, withdraws)

    def _text(self, unusable: UnusableRow, rows: pa.Table | None = None) -> str:
        """The message, with the id and the times as they are given."""
        columns = (self._schema.event_id, *self._schema.times, *self._schema.key)
        return unusable_text(unusable, self._first, rows, {str(name): str(name) for name in columns})
