"""Events in two rows, which a column identifies: one row opens the event, and another one with its end closes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import EventError, with_noun
from cepheid.events.identity import canonical_bytes

Rows = npt.NDArray[np.int64]

_MOST_SHOWN = 3
"""So many rows or events are named in a message."""
ADVICE = 'Drop such rows before, or with nulls="drop", which counts them in the report'


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
    read: int
    """The number of rows that count."""


class FinalEvents(NamedTuple):
    """Which rows the events are made of that are left after rows have revised and withdrawn some, in the order of their
    first rows.
    """

    rows: Rows
    """Each event's first row, which has all but its end."""
    end_rows: Rows
    """The row that has its end."""
    others: Rows
    """The rows that are part of an event and not its first row, and all rows of events that were withdrawn."""
    counts: dict[str, int]
    """The counts of rows and events that are dropped, by name."""


def whole_events(
    ids: pa.Array,
    starts: pa.ChunkedArray,
    ends: pa.ChunkedArray,
    column: str,
    *,
    drops: bool,
    until: int | None = None,
) -> WholeEvents:
    """The events in these rows. They are read in the order of their own times, the end or else the start, as a live
    matcher reads them: the first row of an id with a start opens an event, or is a whole one; the first row with an end
    that follows an opening one closes it. Rows without times, or with a whole event that ends before it starts, are
    returned as they are. `column` is that of the ids. With `until` (microseconds), rows of later times do not count,
    and events that are open then are left out.

    Raises:
        EventError: without `drops`, an event is not closed, or a row has no id, is a further row of an event, or closes
            what is not open.
    """
    named, started, ended = (part.is_valid().to_numpy(zero_copy_only=False) for part in _whole(ids, starts, ends))
    number = canonical_bytes([ids], len(ids)).dictionary_encode().indices.to_numpy()
    start, end = (times.cast(pa.int64()).fill_null(0).to_numpy() for times in (starts, ends))
    order = np.lexsort((start, ended, np.where(ended, end, start)))
    counts = (
        np.ones(len(ids), np.bool_) if until is None else ~(started | ended) | (np.where(ended, end, start) <= until)
    )
    named &= counts
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
    is_left = counts.copy()
    is_left[np.concatenate([rows, end_rows, opening])] = False
    without_id, left = (np.flatnonzero(is_left & known) for known in (~named, named))
    unclosed = 0 if until is not None else int((~is_closed).sum())
    found = WholeEvents(rows[by_row], end_rows[by_row], unclosed, len(without_id), len(left), int(counts.sum()))
    if not drops and (unclosed or len(without_id) or len(left)):
        still_open = np.sort(opening[~is_closed])
        ending = left[~started[left]]
        too_early = ending[np.isin(number[ending], number[still_open])]
        never_closed = still_open[~np.isin(number[still_open], number[too_early])] if unclosed else still_open[:0]
        faults = _unclosed(ids.take(pa.array(never_closed)), column)
        faults += _of_rows(without_id, ids, ("has", "have"), f"no id ({column} is NULL)")
        faults += _of_rows(
            left[started[left]], ids, ("has", "have"), f"the id of an event that is there already ({column})"
        )
        faults += _of_rows(too_early, ids, ("closes", "close"), f"an event before its start ({column})")
        of_nothing = ending[~np.isin(ending, too_early)]
        faults += _of_rows(of_nothing, ids, ("has", "have"), f"an end and no start, and no open event ({column})")
        reversed_rows = as_they_are[backwards[as_they_are]]
        faults += _of_rows(reversed_rows, ids, ("ends before it starts", "end before they start"), f"({column})")
        raise EventError(f"{'; '.join(faults)}. {ADVICE}")
    return found


def unclosed_text(ids: pa.Array, column: str) -> str:
    """The message about events with these ids, at least one, which are opened and not closed."""
    return f"{_unclosed(ids, column)[0]}. {ADVICE}"


def _whole(*columns: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return [column if isinstance(column, pa.Array) else column.combine_chunks() for column in columns]


def _first_of_each(number: Rows, rows: Rows) -> Rows:
    """The first of these rows with each number, by the number; -1: none. A number is less than the count of rows."""
    found = np.full(len(number), -1, np.int64)
    found[number[rows[::-1]]] = rows[::-1]
    return found


def _unclosed(ids: pa.Array, column: str) -> list[str]:
    if not len(ids):
        return []
    shown = ", ".join(map(repr, ids[:_MOST_SHOWN].to_pylist())) + (", …" if len(ids) > _MOST_SHOWN else "")
    events = "1 event is opened and no row closes it" if len(ids) == 1 else None
    return [f"{events or f'{len(ids):,} events are opened and no row closes them'} ({column}: {shown})"]


def _of_rows(rows: Rows, ids: pa.Array, verbs: tuple[str, str], what: str) -> list[str]:
    """What is wrong with these rows: the verb for one row or for several, and the rest. The first ones are named."""
    if not len(rows):
        return []
    first = ", ".join(_shown(row, ids[row].as_py()) for row in rows[:_MOST_SHOWN].tolist())
    number = with_noun(len(rows), "row")
    return [
        f"{number} {verbs[len(rows) > 1]} {what}: {first}{', …' if len(rows) > _MOST_SHOWN else ''}, counted from 0"
    ]


def _shown(row: int, name: object) -> str:
    return f"row {row}" if name is None else f"row {row} ({name!r})"
