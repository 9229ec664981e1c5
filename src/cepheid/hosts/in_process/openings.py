"""Events in two rows, which a column identifies: one row opens the event, and another one with its end closes it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.errors import EventError
from cepheid.events.batch import Schema
from cepheid.events.identity import canonical_bytes
from cepheid.hosts.in_process.prepare import Read, TimedEvents, whole
from cepheid.requests.request import Nulls


def whole_events(events: TimedEvents, schema: Schema, nulls: Nulls) -> tuple[TimedEvents, Read]:
    """The events, each in one row: an opening row, which has no end, gets that of the row with its id that has one, and
    keeps its other columns. Also returns the counts of what was dropped. Without `Schema.event_id` nothing changes.

    Raises:
        EventError: an event is not closed, or a row has no id or that of another row, and `nulls` makes that an error.
    """
    if schema.event_id is None or schema.end is None:
        return events, {}
    ids = whole(events.events.column(schema.event_id))
    starts, ends = (whole(time) for time in events.times)
    named = ids.is_valid().to_numpy(zero_copy_only=False)
    number = canonical_bytes([ids], len(events)).dictionary_encode().indices.to_numpy()
    opens = named & ends.is_null().to_numpy(zero_copy_only=False) & starts.is_valid().to_numpy(zero_copy_only=False)
    opening = _first_of_each(number, np.flatnonzero(opens), starts)
    closing = _first_of_each(number, np.flatnonzero(named & ~opens), ends)
    row_of = dict(zip(number[closing].tolist(), closing.tolist(), strict=True))
    closed_by = np.array([row_of.get(one, -1) for one in number[opening].tolist()], np.int64)
    is_closed = closed_by >= 0
    alone = np.setdiff1d(closing, closed_by)
    rows, end_rows = np.concatenate([opening[is_closed], alone]), np.concatenate([closed_by[is_closed], alone])
    read = {"unclosed": int((~is_closed).sum()), "repeated": len(events) - len(opening) - len(closing)}
    if nulls == "error" and any(read.values()):
        raise EventError(_faults(read, ids, opening[~is_closed], schema.event_id))
    order = np.argsort(rows, kind="stable")
    return _with_ends(events, schema, rows[order], end_rows[order]), read


def _first_of_each(number: Ints, rows: Ints, times: pa.Array) -> Ints:
    """Of these rows the first in time of each number, in order of the rows."""
    order = rows[np.lexsort((rows, times.cast(pa.int64()).fill_null(0).to_numpy()[rows], number[rows]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(number[order]) != 0
    return np.sort(order[first])


def _with_ends(events: TimedEvents, schema: Schema, rows: Ints, end_rows: Ints) -> TimedEvents:
    """The events in these rows, with the ends of others."""
    starts, ends = events.times
    found, taken = events.events.take(pa.array(rows)), pa.array(end_rows)
    at = found.schema.get_field_index(schema.end)
    found = found.set_column(at, found.schema.field(at), events.events.column(at).take(taken))
    return TimedEvents(found, (starts.take(pa.array(rows)), ends.take(taken)))


def _faults(read: Read, ids: pa.Array, unclosed: Ints, column: str) -> str:
    faults = []
    if read["unclosed"]:
        shown = pc.take(ids, pa.array(unclosed[:3])).to_pylist()
        what = f"{read['unclosed']} events are opened and no row closes them ({column}: {', '.join(map(repr, shown))}"
        faults.append(f"{what}{', …' if len(unclosed) > 3 else ''})")
    if read["repeated"]:
        faults.append(f"{read['repeated']} rows have no id, or that of an earlier row ({column})")
    return f'{"; ".join(faults)}. Drop them before, or with nulls="drop", which counts them in the report'
