"""Reads the rows that open and close events, once for all patterns, and keeps the first row of each open event."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from cepheid.errors import EventError
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.open_state import reader_batches, restore_reader, unusable_text
from cepheid.matchers.intervals.rows import GivenRow, RowReader, Step, UnusableRow


class ReadRows:
    """What has been read of the rows. The matchers of all patterns take `steps` after each call here."""

    def __init__(self, reader: RowReader, ends: Collection[str], shown: Mapping[str, str], *, numbered: bool) -> None:
        """`ends` are the columns besides END that an event has from the row with its end; `shown` and `numbered` are
        those of `unusable_text`, the column of the id first in `shown`.
        """
        self._reader, self._first = reader, OpenRows(ends, reader.may_change)
        self._shown, self._numbered = shown, numbered
        self.steps: Sequence[Step] = ()
        """What the last call has found."""

    def read(self, rows: pa.Table, given: Sequence[GivenRow]) -> pa.Table:
        """Reads the rows of one call; `given` are their ids and times. Returns the events, as `OpenRows.joined`.

        Raises:
            EventError: a row cannot be used, or an event is open for too long.
        """
        with self._named(rows):
            self.steps = self._reader.steps(given)
        return self._first.joined(rows, self.steps)

    def advance(self, clock: int) -> None:
        """Moves the clock to this time, in microseconds.

        Raises:
            EventError: an event is open for too long.
        """
        with self._named(None):
            self.steps = self._reader.advance(clock)
        self._first.drop(self.steps)

    def finish(self) -> None:
        """Ends the input."""
        self.steps = self._reader.finish()
        self._first.drop(self.steps)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows and events were dropped, by the cause."""
        return self._reader.counts

    @property
    def due(self) -> int:
        """Microseconds: the time after which an event is open for too long; FOREVER: none is."""
        return self._reader.due

    @property
    def has_open(self) -> bool:
        """Whether an event is open."""
        return bool(self._reader.opened)

    @property
    def stored(self) -> dict[str, pa.RecordBatch]:
        """The state besides the counts and what the matchers have, for a snapshot."""
        return reader_batches(self._reader, self._first)

    def restore(
        self, stored: Mapping[str, pa.RecordBatch], counts: Mapping[str, int], matcher: LiveOpenMatcher
    ) -> None:
        """Continues with what `stored` has returned. Called once, before anything else; the matcher, of any of the
        patterns, has its state already.

        Raises:
            SnapshotError: the first rows are not those of the events that may change.
        """
        self._reader.counts = {name: counts[name] for name in self._reader.counts}
        restore_reader(self._reader, self._first, matcher, stored, next(iter(self._shown.values())))

    @contextmanager
    def _named(self, rows: pa.Table | None) -> Iterator[None]:
        """Errors get the id and the times of the row or of the event, as they are given."""
        try:
            yield
        except UnusableRow as unusable:
            text = unusable_text(unusable, self._first, rows, self._shown, numbered=self._numbered)
            raise EventError(text) from unusable
