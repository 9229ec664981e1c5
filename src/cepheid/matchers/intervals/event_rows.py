"""The rows of one live matcher that open and close events. They are read once for all of its patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pyarrow as pa

from cepheid.events.batch import END, TIME, Schema
from cepheid.lang.consistency import End
from cepheid.lang.duration import microseconds
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_state import given_rows, withdrawals
from cepheid.matchers.intervals.read_rows import ReadRows
from cepheid.matchers.intervals.rows import GivenRow, RowReader, Step


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
        self._rows = self._new_rows()

    def _new_rows(self) -> ReadRows:
        assert self._schema.end is not None
        reader = RowReader(
            self._delay,
            self._late_by,
            self._open_for,
            drops=self._drops,
            revises=self._changes is not None,
            is_held=self._is_held,
        )
        columns = (self._schema.event_id, *self._schema.times, *self._schema.key)
        return ReadRows(reader, [self._schema.end], {str(name): str(name) for name in columns}, numbered=True)

    @property
    def steps(self) -> Sequence[Step]:
        """What the last call has found; each pattern's matcher takes it next."""
        return self._rows.steps

    @property
    def counts(self) -> dict[str, int]:
        return self._rows.counts

    def read(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> tuple[pa.Table, tuple[pa.ChunkedArray, ...]]:
        starts, ends = times
        timed = rows.append_column(TIME, starts).append_column(END, ends)
        joined = self._rows.read(timed, self._given(rows, times))
        return joined.drop_columns([TIME, END]), (joined.column(TIME), joined.column(END))

    def advance_time(self, time: int) -> None:
        self._rows.advance(time)

    def finish(self) -> None:
        self._rows.finish()

    @property
    def stored(self) -> dict[str, pa.RecordBatch]:
        """The state besides the counts and what the matchers have, for a snapshot."""
        return self._rows.stored

    def restore(
        self, stored: Mapping[str, pa.RecordBatch], counts: Mapping[str, int], matcher: LiveOpenMatcher
    ) -> None:
        """As in ReadRows. If that fails, nothing has changed."""
        restored = self._new_rows()
        restored.restore(stored, counts, matcher)
        self._rows = restored

    def _given(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> list[GivenRow]:
        withdraws = None if self._changes is None else withdrawals(rows, self._changes)
        keys = [rows.column(name) for name in self._schema.key]
        return given_rows(rows.column(self._schema.event_id).combine_chunks(), times, keys, withdraws)
