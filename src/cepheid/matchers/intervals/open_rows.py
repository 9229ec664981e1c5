"""The opening rows of events that are still open. A closing row only has the end: all else is in the opening row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.events.batch import END, TIME
from cepheid.matchers.intervals.rows import RowKind, Step

_LEAST = 1 << 10
"""Up to this many rows, none is forgotten."""


class OpenRows:
    """Rows as they are given, with their times as instants in the columns TIME and END."""

    def __init__(self, end: str) -> None:
        """`end` is the column of ends."""
        self._end = end
        self._rows: pa.Table | None = None
        self._place: dict[bytes, int] = {}
        """The row of each open event."""

    def joined(self, given: pa.Table, steps: Sequence[Step]) -> pa.Table:
        """A row for each step but EXPIRES, in their order: a closed event has its opening row with its end. An open
        event has its start in END, and a late closing row without a start its end in TIME.
        """
        rows = given if self._rows is None else pa.concat_tables([self._rows, given])
        first, sources, ends = len(rows) - len(given), list[int](), list[int]()
        for step in steps:
            if step.kind is RowKind.EXPIRES:
                self._place.pop(step.name, None)
                continue
            own = first + step.row
            sources.append(self._place.pop(step.name) if step.kind is RowKind.CLOSES else own)
            ends.append(own)
            if step.kind is RowKind.OPENS:
                self._place[step.name] = own
        self._rows = rows
        found = self._with_ends(rows.take(pa.array(sources, pa.int64())), rows.take(pa.array(ends, pa.int64())))
        if len(rows) > max(_LEAST, 2 * len(self._place)):
            self._forget()
        return found

    def drop(self, steps: Sequence[Step]) -> None:
        """Forgets the rows of events that are open for too long."""
        for step in steps:
            self._place.pop(step.name, None)

    @property
    def stored(self) -> pa.Table | None:
        """The rows of the open events, for a snapshot."""
        self._forget()
        return self._rows

    def restore(self, rows: pa.Table, names: Sequence[bytes]) -> None:
        """Continues with the rows of these open events."""
        self._rows, self._place = rows, {name: number for number, name in enumerate(names)}

    def _with_ends(self, rows: pa.Table, with_ends: pa.Table) -> pa.Table:
        for name in (self._end, END):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, rows.schema.field(place), with_ends.column(name))
        starts, ends = rows.column(TIME).combine_chunks(), rows.column(END).combine_chunks()
        for name, times in ((TIME, starts.fill_null(ends)), (END, ends.fill_null(starts))):
            rows = rows.set_column(rows.schema.get_field_index(name), name, times)
        return rows

    def _forget(self) -> None:
        if self._rows is not None:
            kept = np.array([*self._place.values()], np.int64)
            self._rows = self._rows.take(pa.array(kept)).combine_chunks()
            self._place = {name: number for number, name in enumerate(self._place)}
