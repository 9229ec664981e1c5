"""The final events of rows that insert, revise and withdraw events, in finite input: no row is late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events.batch import Schema
from cepheid.events.identity import canonical_bytes
from cepheid.events.openings import FinalEvents, unclosed_text
from cepheid.lang.consistency import End
from cepheid.matchers.intervals.open_state import given_rows, row_text, withdrawals
from cepheid.matchers.intervals.rows import RowKind, RowReader, UnusableRow


def final_events(
    rows: pa.Table, times: Sequence[pa.ChunkedArray], schema: Schema, changes: str, *, drops: bool
) -> FinalEvents:
    """What is left of the events after all rows, as a live matcher reads them in one call. `times` are the starts and
    ends, and `changes` is the column that says what each row does. Whether events have keys is not looked at.

    Raises:
        EventError: a row has another text in the column of changes; without `drops`, a row cannot be used, or an event
            is not closed.
    """
    ids, withdraws = rows.column(schema.event_id).combine_chunks(), withdrawals(rows, changes)
    alone = _alone(ids, times, withdraws)
    read = np.flatnonzero(~alone)  # a live matcher's reader takes 10 µs a row
    reader = RowReader(None, End.START, None, drops=drops, revises=True)
    try:
        given = given_rows(ids.take(pa.array(read)), [time.take(pa.array(read)) for time in times], (), withdraws[read])
        steps = reader.steps(given)
    except UnusableRow as unusable:
        unusable.number = None if unusable.number is None else int(read[unusable.number])
        names = {name: name for name in (str(schema.event_id), *schema.times)}
        raise EventError(row_text(unusable, rows, names)) from unusable
    final: dict[bytes, tuple[int, int]] = {}
    for step in steps:
        match step.kind:
            case RowKind.OPENS | RowKind.WHOLE:
                final[step.name] = (step.row, step.row)
            case RowKind.CLOSES | RowKind.REVISES:
                final[step.name] = (final[step.name][0], step.row)
            case RowKind.DROPS:
                del final[step.name]
    still_open = read[sorted(final.pop(name)[0] for name in reader.opened)]
    if len(still_open) and not drops:
        raise EventError(unclosed_text(ids.take(pa.array(still_open)), str(schema.event_id)))
    made = read[np.array([*final.values()], np.int64).reshape(-1, 2)]
    first, last = (np.concatenate([np.flatnonzero(alone), made[:, side]]) for side in (0, 1))
    order = np.argsort(first)
    used = read[[step.row for step in steps if step.row >= 0]]
    others = np.setdiff1d(np.union1d(used, np.flatnonzero(withdraws)), np.union1d(first, still_open))
    counts = {name: reader.counts[name] for name in ("null_times", "null_ids", "reversed", "repeated")}
    return FinalEvents(first[order], last[order], others, counts | {"unclosed": len(still_open)})


def _alone(ids: pa.Array, times: Sequence[pa.ChunkedArray], withdraws: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which rows are whole events, with the only row of their id. They are final events, whatever other rows do."""
    numbers = canonical_bytes([ids], len(ids)).dictionary_encode().indices.to_numpy()
    is_only = np.bincount(numbers, minlength=1)[numbers] == 1
    start, end = times
    is_whole = pc.less_equal(start, end).fill_null(fill_value=False).to_numpy()
    found: npt.NDArray[np.bool_] = is_only & is_whole & ids.is_valid().to_numpy(zero_copy_only=False) & ~withdraws
    return found
