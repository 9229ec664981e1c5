"""The rows of events that a later row may close or revise. That row only has the end: all else is in the first row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import END, TIME
from cepheid.events.time import TIME_TYPE
from cepheid.matchers.intervals.rows import RowKind, Step

_LEAST = 1 << 10
"""Up to this many rows, none is forgotten."""
_NO_TIME = pa.scalar(0, pa.int64()).cast(TIME_TYPE)
"""For late rows without times, which are not matched."""


class OpenRows:
    """Rows as they are given, with their times as instants in the columns TIME and END."""

    def __init__(self, ends: Collection[str], may_change: Callable[[bytes], bool]) -> None:
        """`ends` are the columns besides END that an event has from the row with its end. `may_change` says whether a
        later row may close or revise the event with this id.
        """
        self._ends, self._may_change = ends, may_change
        self._rows: pa.Table | None = None
        self._place: dict[bytes, int] = {}
        """The first row of each event that may change, and of some that may not."""
        self._most = _LEAST

    def joined(self, given: pa.Table, steps: Sequence[Step]) -> pa.Table:
        """A row for each step but DROPS, in their order: an event that is closed or revised has its first row with the
        new end. An open event has its start in END, and a late row without a start its end in TIME.

        Raises:
            SnapshotError: the restored rows have other columns.
        """
        if self._rows is not None and self._rows.schema != given.schema:
            raise SnapshotError("the snapshot's opening rows do not have the columns of the events")
        rows = given if self._rows is None else pa.concat_tables([self._rows, given])
        first, sources, ends = len(rows) - len(given), list[int](), list[int]()
        for step in steps:
            if step.kind is RowKind.DROPS:
                self._place.pop(step.name, None)
                continue
            own = first + step.row
            sources.append(self._place[step.name] if step.kind in {RowKind.CLOSES, RowKind.REVISES} else own)
            ends.append(own)
            if step.kind in {RowKind.OPENS, RowKind.WHOLE}:
                self._place[step.name] = own
        self._rows = rows
        found = self._with_ends(rows.take(pa.array(sources, pa.int64())), rows.take(pa.array(ends, pa.int64())))
        if len(rows) > self._most:
            self._forget()
        return found

    def first_row(self, name: bytes) -> pa.Table | None:
        """The first row of the event with this id; None if it is not there any more."""
        at = self._place.get(name)
        return None if at is None or self._rows is None else self._rows.slice(at, 1)

    def drop(self, steps: Sequence[Step]) -> None:
        """Forgets the rows of events that are open for too long."""
        for step in steps:
            self._place.pop(step.name, None)

    @property
    def stored(self) -> pa.Table | None:
        """The rows of the events that may change, for a snapshot."""
        self._forget()
        return self._rows

    def restore(self, rows: pa.Table, names: Sequence[bytes]) -> None:
        """Continues with the rows of these events."""
        self._rows, self._place = rows, {name: number for number, name in enumerate(names)}

    def _with_ends(self, rows: pa.Table, with_ends: pa.Table) -> pa.Table:
        for name in (*self._ends, END):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, rows.schema.field(place), with_ends.column(name))
        starts, ends = rows.column(TIME).combine_chunks(), rows.column(END).combine_chunks()
        for name, times in ((TIME, starts.fill_null(ends)), (END, ends.fill_null(starts))):
            rows = rows.set_column(rows.schema.get_field_index(name), name, times.fill_null(_NO_TIME))
        return rows

    def _forget(self) -> None:
        if self._rows is not None:
            needed = {name: place for name, place in self._place.items() if self._may_change(name)}
            self._rows = self._rows.take(pa.array([*needed.values()], pa.int64())).combine_chunks()
            self._place = {name: number for number, name in enumerate(needed)}
            self._most = max(_LEAST, 2 * len(needed))
