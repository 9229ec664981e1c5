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
    null_ids: int
    """The number of rows without an id."""
    repeated: int
    """The number of rows that are further rows of an event, or close what is not open."""


def whole_events(
    ids: pa.Array, starts: pa.ChunkedArray, ends: pa.ChunkedArray, column: str, *, drops: bool
) -> WholeEvents:
    """The events in these rows. They are read in the order of their own times, the end or else the start, as a live
    matcher reads them: the first row of an id with a start opens an event, or is a whole one; the first row with an end
    that follows an opening one closes it. Rows without times, or with a whole event that ends before it starts, are
    returned as they are. `column` is that of the ids.

    Raises:
        EventError: without `drops`, an event is not closed, or a row has no id, is a further row of an event, or closes
            what is not open.
    """
    named, started, ended = (part.is_valid().to_numpy(zero_copy_only=False) for part in _whole(ids, starts, ends))
    number = canonical_bytes([ids], len(ids)).dictionary_encode().indices.to_numpy()
    start, end = (times.cast(pa.int64()).fill_null(0).to_numpy() for times in (starts, ends))
    order = np.lexsort((start, ended, np.where(ended, end, start)))
    order = order[named[order] & (started | ended)[order]]
    rank = np.full(len(ids) + 1, -1, np.int64)  # the last place is that of no row
    rank[order] = np.arange(len(order))
    backwards = started & ended & (end < start)
    first = _first_of_each(number, order[(started & ~backwards)[order]])
    follows = rank[:-1] > rank[first[number]]
    closing = _first_of_each(number, order[(ended & follows & (first[number] >= 0))[order]])
    begun = first[first >= 0]
    alone, opening = begun[ended[begun]], begun[~ended[begun]]
    closed_by = closing[number[opening]]
    is_closed = closed_by >= 0
    as_they_are = np.flatnonzero(named & (~(started | ended) | (backwards & ((first[number] < 0) | ~follows))))
    single = np.concatenate([alone, as_they_are])
    rows, end_rows = np.concatenate([opening[is_closed], single]), np.concatenate([closed_by[is_closed], single])
    by_row = np.argsort(rows, kind="stable")
    used = len(opening) + int(is_closed.sum()) + len(single)
    null_ids = len(ids) - int(named.sum())
    unclosed, repeated = int((~is_closed).sum()), len(ids) - used - null_ids
    found = WholeEvents(rows[by_row], end_rows[by_row], unclosed, null_ids, repeated)
    if not drops and (unclosed or null_ids or repeated):
        raise EventError(_faults(found, ids.take(pa.array(np.sort(opening[~is_closed])[:3])), column))
    return found


def _whole(*columns: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return [column if isinstance(column, pa.Array) else column.combine_chunks() for column in columns]


def _first_of_each(number: Rows, rows: Rows) -> Rows:
    """The first of these rows with each number, by the number; -1: none. A number is less than the count of rows."""
    found = np.full(len(number), -1, np.int64)
    found[number[rows[::-1]]] = rows[::-1]
    return found


def _faults(found: WholeEvents, unclosed: pa.Array, column: str) -> str:
    faults = []
    if found.unclosed:
        shown = ", ".join(map(repr, unclosed.to_pylist())) + (", …" if found.unclosed > len(unclosed) else "")
        faults.append(f"{found.unclosed} events are opened and no row closes them ({column}: {shown})")
    if found.null_ids:
        faults.append(f"{found.null_ids} rows have no id ({column} is NULL)")
    if found.repeated:
        faults.append(f"{found.repeated} rows have the id of an earlier row, or close what is not open ({column})")
    return f'{"; ".join(faults)}. Drop them before, or with nulls="drop", which counts them in the report'
