"""Events in two rows, which a column identifies: one row opens the event, and another one with its end closes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import EventError
from cepheid.events.identity import canonical_bytes

Rows = npt.NDArray[np.int64]


class WholeEvents(NamedTuple):
    """Which rows the whole events are made of, in the order of their first rows."""

    rows: Rows
    """Each event's opening row, or its only row."""
    end_rows: Rows
    """The row that has its end."""
    unclosed: int
    """The number of events that are opened and not closed."""
    repeated: int
    """The number of rows that have no id, or are further rows of an event."""


def whole_events(
    ids: pa.Array, starts: pa.ChunkedArray, ends: pa.ChunkedArray, column: str, *, drops: bool
) -> WholeEvents:
    """The events in these rows. An opening row has no end; the first row with its id that has one closes it. `column`
    is that of the ids.

    Raises:
        EventError: without `drops`, an event is not closed, or a row has no id or is a further row of an event.
    """
    named, started, ended = (part.is_valid().to_numpy(zero_copy_only=False) for part in _whole(ids, starts, ends))
    number = canonical_bytes([ids], len(ids)).dictionary_encode().indices.to_numpy()
    opens = named & started & ~ended
    opening = _first_of_each(number, np.flatnonzero(opens), starts)
    closing = _first_of_each(number, np.flatnonzero(named & ~opens), ends)
    row_of = dict(zip(number[closing].tolist(), closing.tolist(), strict=True))
    closed_by = np.array([row_of.get(one, -1) for one in number[opening].tolist()], np.int64)
    is_closed = closed_by >= 0
    alone = np.setdiff1d(closing, closed_by)
    rows, end_rows = np.concatenate([opening[is_closed], alone]), np.concatenate([closed_by[is_closed], alone])
    order = np.argsort(rows, kind="stable")
    found = WholeEvents(rows[order], end_rows[order], int((~is_closed).sum()), len(ids) - len(opening) - len(closing))
    if not drops and (found.unclosed or found.repeated):
        raise EventError(_faults(found, ids.take(pa.array(opening[~is_closed][:3])), column))
    return found


def _whole(*columns: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return [column if isinstance(column, pa.Array) else column.combine_chunks() for column in columns]


def _first_of_each(number: Rows, rows: Rows, times: pa.ChunkedArray) -> Rows:
    """Of these rows the first in time of each number, in order of the rows."""
    order = rows[np.lexsort((rows, times.cast(pa.int64()).fill_null(0).to_numpy()[rows], number[rows]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(number[order]) != 0
    return np.sort(order[first])


def _faults(found: WholeEvents, unclosed: pa.Array, column: str) -> str:
    faults = []
    if found.unclosed:
        shown = ", ".join(map(repr, unclosed.to_pylist())) + (", …" if found.unclosed > len(unclosed) else "")
        faults.append(f"{found.unclosed} events are opened and no row closes them ({column}: {shown})")
    if found.repeated:
        faults.append(f"{found.repeated} rows have no id, or that of an earlier row ({column})")
    return f'{"; ".join(faults)}. Drop them before, or with nulls="drop", which counts them in the report'
