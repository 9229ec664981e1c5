"""The rows of events that may be open: as they are read, in snapshots, and in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError, SnapshotError
from cepheid.events.identity import canonical_bytes
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.open_rows import OpenRows
from cepheid.matchers.intervals.rows import ClosedEvent, GivenRow, RowReader, UnusableRow
from cepheid.output.common import COMPLETION, INSERTION, RETRACTION

_WITHDRAWS = {INSERTION: False, COMPLETION: False, RETRACTION: True}
"""What the values of a column of changes say: whether the row withdraws its event."""


def given_rows(
    ids: pa.Array,
    times: Sequence[pa.ChunkedArray | pa.Array],
    keys: Sequence[pa.ChunkedArray | pa.Array],
    withdraws: npt.NDArray[np.bool_] | None = None,
) -> list[GivenRow]:
    """The rows of one call, as the reader takes them; `withdraws` says which rows withdraw their events."""
    names = pc.if_else(ids.is_valid(), canonical_bytes([ids], len(ids)), None).to_pylist()
    there = np.ones(len(ids), np.bool_)
    for key in keys:
        there &= key.is_valid().to_numpy(**({} if isinstance(key, pa.ChunkedArray) else {"zero_copy_only": False}))
    withdrawn = np.zeros(len(ids), np.bool_) if withdraws is None else withdraws
    instants = (time.cast(pa.int64()).to_pylist() for time in times)
    return [GivenRow(*row) for row in zip(names, *instants, there.tolist(), withdrawn.tolist(), strict=True)]


def withdrawals(rows: pa.Table, column: str) -> npt.NDArray[np.bool_]:
    """Which rows withdraw their events.

    Raises:
        EventError: another value stands there.
    """
    changes = rows.column(column).combine_chunks().cast(pa.string())
    known = pc.is_in(changes, value_set=pa.array([*_WITHDRAWS]))
    if not pc.all(known).as_py() and len(rows):
        number = pc.index(known, pa.scalar(value=False)).as_py()
        allowed = ", ".join(map(repr, _WITHDRAWS))
        raise EventError(
            f"row {number}, counted from 0: the column {column!r} of changes has {changes[number].as_py()!r}. "
            f"It may be {allowed}"
        )
    found: npt.NDArray[np.bool_] = pc.equal(changes, RETRACTION).to_numpy(zero_copy_only=False)
    return found


def reader_batches(reader: RowReader, rows: OpenRows) -> dict[str, pa.RecordBatch]:
    """The ids that later rows may have, and the first rows of events that may change, for a snapshot."""
    reader.forget()
    closed = pa.record_batch(
        {
            "id": pa.array(reader.closed, pa.binary()),
            "start": pa.array([event.start for event in reader.closed.values()], pa.int64()),
            "end": pa.array([event.end for event in reader.closed.values()], pa.int64()),
        }
    )
    without_key = {name: reader.opened.get(name) for name in reader.keyless}
    keyless = pa.record_batch(
        {"id": pa.array(without_key, pa.binary()), "start": pa.array(without_key.values(), pa.int64())}
    )
    batches = {"closed": closed, "keyless": keyless}
    if (stored := rows.stored) is not None:
        batches["opening_rows"] = (stored.to_batches() or [pa.RecordBatch.from_pylist([], stored.schema)])[0]
    return batches


def restore_reader(
    reader: RowReader,
    rows: OpenRows,
    matcher: LiveOpenMatcher,
    batches: Mapping[str, pa.RecordBatch],
    event_id: str | None,
) -> None:
    """Continues with what `reader_batches` has stored. The matcher has its state already; `event_id` is the column of
    ids in the first rows.

    Raises:
        SnapshotError: the first rows are not those of the events that may change.
    """
    closed, keyless = (batches[name].to_pylist() for name in ("closed", "keyless"))
    reader.restore(
        matcher.clock,
        matcher.opened | {row["id"]: row["start"] for row in keyless if row["start"] is not None},
        {row["id"]: ClosedEvent(row["start"], row["end"]) for row in closed},
        {row["id"] for row in keyless},
    )
    opening, names = batches.get("opening_rows"), list[bytes]()
    if opening is not None:
        names = canonical_bytes([opening.column(event_id)], len(opening)).to_pylist()
    if sorted(names) != sorted(reader.changeable):
        raise SnapshotError("the snapshot's opening rows are not those of its open events")
    if opening is not None:
        rows.restore(pa.Table.from_batches([opening]), names)


def unusable_text(
    unusable: UnusableRow,
    first: OpenRows,
    rows: pa.Table | None,
    columns: Mapping[str, str],
    *,
    numbered: bool = True,
) -> str:
    """What is wrong with a row of `rows`, or with an event, whose first row is in `first` or among `rows`. `columns`
    are those that the message shows, the id first: what it calls each, and its name in the rows. `numbered` says
    whether the numbers of the rows mean something to the user.
    """
    if unusable.number is not None and rows is not None:
        return row_text(unusable, rows, columns, numbered=numbered)
    assert unusable.name is not None
    found = first.first_row(unusable.name)
    if found is None and rows is not None:
        found = _row_of(unusable.name, rows, next(iter(columns.values())))
    return _text("an event", {} if found is None else found.to_pylist()[0], columns, unusable)


def row_text(unusable: UnusableRow, rows: pa.Table, columns: Mapping[str, str], *, numbered: bool = True) -> str:
    """What is wrong with one of the rows. `columns` and `numbered` are as in `unusable_text`."""
    assert unusable.number is not None
    noun = f"row {unusable.number}, counted from 0" if numbered else "a row"
    return _text(noun, rows.slice(unusable.number, 1).to_pylist()[0], columns, unusable)


def _text(noun: str, known: Mapping[str, object], columns: Mapping[str, str], unusable: UnusableRow) -> str:
    shown = ", ".join(f"{name}: {_value(known[column])}" for name, column in columns.items() if column in known)
    return f"{noun} ({shown}) {unusable.what}. {unusable.advice}"


def _row_of(name: bytes, rows: pa.Table, event_id: str) -> pa.Table:
    """The first of the rows with this id: an event that begins and ends in one call has all of its rows there."""
    ids = rows.column(event_id).combine_chunks()
    return rows.slice(canonical_bytes([ids], len(ids)).to_pylist().index(name), 1)


def _value(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, datetime) else repr(value)
