"""Prepares a table of events for a matcher in process: times are read, events without key or time are dropped or
refused, and DuckDB computes the lifted columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError, SchemaError
from cepheid.events.batch import (
    COMPUTED,
    DEFERRED,
    END,
    EVENT_ID,
    EVENT_PREFIX,
    FINER,
    KEY_PREFIX,
    NUMBER,
    ROW_PREFIX,
    TIME,
    VALUE_PREFIX,
    Batch,
    DeferredColumns,
    Schema,
    mask_column,
)
from cepheid.events.openings import whole_events
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine, Evaluated
from cepheid.hosts.in_process.event_times.instants import instants, row_text
from cepheid.hosts.in_process.nanoseconds import has_nanoseconds
from cepheid.hosts.in_process.tables import as_plain, plain_schema, with_zone
from cepheid.plan.plan_set import LiftedFor
from cepheid.plan.sequence import order_items
from cepheid.plan.used_columns import lifted_columns, names_in
from cepheid.requests.request import Nulls, Request

_MOST_BYTES = 1 << 31

ARRIVAL = "_arrival"
"""The column with the order of arrival."""


@dataclass(frozen=True)
class TimedEvents:
    """Events in their original columns, and their times as instants, one row per event."""

    events: pa.Table
    times: tuple[pa.ChunkedArray, ...]
    """One time per event, or starts and ends."""

    def __len__(self) -> int:
        return int(self.events.num_rows)

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> TimedEvents:
        return TimedEvents(self.events.filter(mask), tuple(time.filter(mask) for time in self.times))

    def slice(self, start: int, stop: int) -> TimedEvents:
        """The events from `start` to before `stop`, or to the last one if there are fewer."""
        count = stop - start
        return TimedEvents(self.events.slice(start, count), tuple(time.slice(start, count) for time in self.times))

    def take(self, rows: pa.Array) -> TimedEvents:
        """The events in these rows, which are there."""
        taken = (pc.take(column, rows, boundscheck=False) for column in (self.events, *self.times))
        return TimedEvents(next(taken), tuple(taken))

    def in_one_piece(self) -> TimedEvents:
        """The same events, each column in one chunk. Otherwise Arrow would join the chunks at each `take`."""
        columns = [wide(column) for column in self.events.columns]
        events = pa.table(columns, names=self.events.schema.names).combine_chunks()
        return TimedEvents(events, tuple(pa.chunked_array([whole(time)]) for time in self.times))


class Deferred(NamedTuple):
    """The chosen columns of a host's events, and the rows of a batch's events in them."""

    columns: DeferredColumns
    rows: pa.Array


Read: TypeAlias = dict[str, int]
"""Counts: the events read, and among them those without a key, without a time, or with an end before their start."""


class JoinedEvents(NamedTuple):
    """Events, each in one row."""

    events: TimedEvents
    read: Read
    """The counts of what was dropped."""
    closing: pa.Array | None = None
    """The numbers of the rows that are no events of their own, as they close, revise or withdraw one, or would if it
    were there; None where each row is an event.
    """


def joined_by_id(events: TimedEvents, schema: Schema, nulls: Nulls, until: int | None = None) -> JoinedEvents:
    """The events, each in one row: an opening row gets the end of the row that closes it, and keeps its other columns.
    With `until` (microseconds), rows of later times do not count. Without `Schema.event_id` nothing changes.

    Raises:
        EventError: an event is not closed, or a row has no id or that of another row, and `nulls` makes that an error.
    """
    if schema.event_id is None:
        return JoinedEvents(events, {})
    ids = whole(events.events.column(schema.event_id))
    starts, ends = events.times
    found = whole_events(ids, starts, ends, schema.event_id, drops=nulls == "drop", until=until)
    read = {"events": found.read, "unclosed": found.unclosed, "null_ids": found.null_ids, "repeated": found.repeated}
    closing = _closing(events, found.end_rows[found.end_rows != found.rows])
    return JoinedEvents(_joined(events, schema, found.rows, found.end_rows), read, closing)


def joined_by_changes(events: TimedEvents, schema: Schema, request: Request, changes: pa.ChunkedArray) -> JoinedEvents:
    """The events that are left after rows that insert, revise and withdraw them, each in one row: its first one, with
    its last end. `changes` says what each row does.

    Raises:
        EventError: as `Family.final_events`.
    """
    name, known = str(request.changes), [str(schema.event_id), *schema.times]
    rows = pa.table({one: events.events.column(one) for one in known} | {name: changes})
    found = request.family.final_events(rows, events.times, schema, name, drops=request.nulls == "drop")
    joined, read = _joined(events, schema, found.rows, found.end_rows), {"events": len(events), **found.counts}
    return JoinedEvents(joined, read, _closing(events, found.others))


def _joined(
    events: TimedEvents, schema: Schema, rows: npt.NDArray[np.int64], end_rows: npt.NDArray[np.int64]
) -> TimedEvents:
    """The events of these rows, with the ends of `end_rows`."""
    first, last = pa.array(rows), pa.array(end_rows)
    starts, ends = events.times
    joined = events.events.take(first)
    at = joined.schema.get_field_index(schema.end)
    joined = joined.set_column(at, joined.schema.field(at), events.events.column(at).take(last))
    return TimedEvents(joined, (starts.take(first), ends.take(last)))


def _closing(events: TimedEvents, others: npt.NDArray[np.int64]) -> pa.Array:
    """The numbers of the rows that are no events of their own: these, and those without a start."""
    return pa.array(np.union1d(others, np.flatnonzero(_any_null(events.times[:1], len(events)))))


def usable(events: TimedEvents, schema: Schema, nulls: Nulls, until: int | None = None) -> tuple[TimedEvents, Read]:
    """The events up to `until` (microseconds) that have a key and times and do not end before they start. Also returns
    the counts of all events up to `until`.

    Raises:
        EventError: there are other events, and `nulls` makes them an error.
    """
    reached = None
    if until is not None:
        limit = pa.scalar(until, pa.int64()).cast(TIME_TYPE)
        reached = pc.less_equal(events.times[-1], limit).fill_null(fill_value=True)
        events = events.filter(reached)
    keys, count = [_with_its_nulls(events.events.column(name)) for name in schema.key], len(events)
    backwards = _reversed(events.times, count)
    if not backwards.any() and not any(column.null_count for column in (*keys, *events.times)):
        return events, {"events": count, "null_keys": 0, "null_times": 0, "reversed": 0}
    no_key = _any_null(keys, count)
    no_time = _any_null(events.times, count) & ~no_key
    backwards &= ~no_key & ~no_time
    faulty = {"null_keys": no_key, "null_times": no_time, "reversed": backwards}
    read = {"events": count, **{name: int(which.sum()) for name, which in faulty.items()}}
    if nulls == "error":
        ids = None if schema.event_id is None else events.events.column(schema.event_id)  # an event may be of two rows
        rows = np.arange(count) if reached is None else np.flatnonzero(reached)
        first = {
            name: row_text(int(rows[which.argmax()])) if ids is None else f"event {ids[which.argmax()].as_py()!r}"
            for name, which in faulty.items()
            if which.any()
        }
        raise EventError(_unusable_text(read, schema, first))
    return events.filter(pa.array(~(no_key | no_time | backwards))), read


def _unusable_text(read: Read, schema: Schema, first: Mapping[str, str]) -> str:
    """What is wrong with the events. `first` says which event is the first one with each fault."""
    end = "ends before it starts" if read["reversed"] == 1 else "end before they start"
    what = {
        "null_keys": f"with a NULL in the key ({', '.join(schema.key)})",
        "null_times": f"without a time ({' or '.join(schema.times)})",
        "reversed": f"that {end} ({schema.end!r} is before {schema.time!r})",
    }
    faults = [f"{read[name]} {text}{_at(first[name], read[name])}" for name, text in what.items() if read[name]]
    how = 'Drop them before, or with nulls="drop", which counts them in the report'
    if 2 * read["reversed"] > read["events"]:
        how = "These are most of the events: are the columns of start and end swapped?"
    return f"events that cannot be ordered: {'; '.join(faults)}. {how}"


def _at(where: str, count: int) -> str:
    return f" in {where}" if count == 1 else f", the first in {where}"


def _reversed(times: Sequence[pa.ChunkedArray], count: int) -> npt.NDArray[np.bool_]:
    """Which events end before they start."""
    if len(times) < 2:
        return np.zeros(count, np.bool_)
    start, end = times
    return np.array(pc.less(end, start).fill_null(fill_value=False))


def _with_its_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, or its values where NULL is an entry of its dictionary, which Arrow does not count as NULL."""
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
        return column.cast(column.type.value_type)
    return column


def _any_null(columns: Sequence[pa.ChunkedArray], count: int) -> npt.NDArray[np.bool_]:
    null = np.zeros(count, np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy()
    return null


def in_order_of_arrival(events: pa.Table, request: Request, first: int = 0) -> tuple[pa.Table, Request]:
    """Numbers the events in order of arrival, from `first`, and makes the numbers their sequence. Only in processing
    order without a sequence; otherwise returns the arguments unchanged.
    """
    if request.time is not None or request.sequence:
        return events, request
    if ARRIVAL in events.schema.names:
        raise SchemaError(f"the column name {ARRIVAL!r} is reserved where events have no time: rename the column")
    chosen = tuple(events.schema.names) if request.columns is None else request.columns
    numbers = pa.array(np.arange(first, first + events.num_rows))
    return events.append_column(ARRIVAL, numbers), replace(request, sequence=(ARRIVAL,), columns=chosen)


def is_there(columns: pa.Schema, sequence: Sequence[str]) -> bool:
    """Whether all of the sequence is columns, so that nothing is computed."""
    return all(text in columns.names for text in sequence)


def with_sequence(events: pa.Table, sequence: Sequence[str], engine: DuckDbEngine) -> pa.Table:
    """The events with a column for each expression of the sequence that they do not have yet.

    Raises:
        SchemaError: a text is no item of ORDER BY over the events' columns.
        ConditionError: an expression fails on an event.
    """
    if is_there(events.schema, sequence):
        return events
    columns = plain_schema(events.schema)
    computed = [item for item in order_items(sequence, columns, engine) if item.computed is not None]
    if not computed:
        return events
    values = [item.computed for item in computed if item.computed is not None]
    named = {name.lower() for value in values for name in names_in(value.expression)}
    plain = as_plain(events.select([name for name in columns.names if name.lower() in named]), columns)
    for item, column in zip(computed, engine.evaluate(plain, values=values, shown=events).values, strict=True):
        if item.column not in events.schema.names:
            events = events.append_column(item.column, column)
    return events


def timed(events: pa.Table, request: Request) -> TimedEvents:
    """The events with their times as instants in microseconds. Times without a zone are read in the request's zone. In
    processing order all times are equal.

    Raises:
        EventError: a time does not fit microseconds and may not be cut, or a local time is ambiguous or does not exist.
        SchemaError: a column has the name of that of what is cut.
    """
    if request.time is None:
        nothing = pa.array(np.zeros(events.num_rows, np.int64)).cast(TIME_TYPE)
        return TimedEvents(events, (pa.chunked_array([nothing]),))
    names = [name for name in (request.time, request.end) if name is not None]
    if request.time_resolution == "us":
        events = with_cut_times(events, names)
    zone = request.time_zone or "UTC"
    return TimedEvents(events, tuple(instants(events.column(name), name, zone) for name in names))


def with_cut_times(events: pa.Table, names: Sequence[str]) -> pa.Table:
    """The events with the times in these columns cut to microseconds, if they are in nanoseconds. What is cut off the
    first one is in the column FINER.

    Raises:
        SchemaError: a column has the name of that column.
    """
    for name in names:
        if not has_nanoseconds(type_ := events.schema.field(name).type):
            continue
        if FINER in events.schema.names and name == names[0]:
            raise SchemaError(f"the column name {FINER!r} is reserved where times are cut: rename the column")
        times = whole(events.column(name))
        nanoseconds = times.cast(pa.int64()).fill_null(0).to_numpy()
        missing = times.is_null()
        cut = pa.array(nanoseconds // 1000, mask=missing.to_numpy(zero_copy_only=False)).cast(
            pa.timestamp("us", type_.tz)
        )
        events = events.set_column(events.schema.get_field_index(name), name, cut)
        if name == names[0]:
            events = events.append_column(FINER, pa.array((nanoseconds % 1000).astype(np.int16)))
    return events


def lifted(piece: TimedEvents, plan: LiftedFor, engine: DuckDbEngine) -> Batch:
    """The events, in their order, as a matcher takes them."""
    return as_batch(piece, evaluated(piece, plan, engine), plan, engine.time_zone)


def evaluated(piece: TimedEvents, plan: LiftedFor, engine: DuckDbEngine) -> Evaluated:
    """The lifted columns of the events, in their order."""
    events = as_plain(piece.events.select(lifted_columns(plan)), plan.schema.columns)
    for question in plan.questions:
        answers = question.answers({name: whole(events.column(name)) for name in question.columns})
        events = events.append_column(question.name, answers)
    shown = piece.events.select([*dict.fromkeys([*plan.schema.key, *plan.schema.times, *plan.columns])])
    return engine.evaluate(events, bits=plan.bits, values=plan.values, shown=shown)


def deferred_columns(events: TimedEvents, plan: LiftedFor) -> DeferredColumns | None:
    """The chosen columns of these events, which are in one piece, for batches that have only their rows at first; None
    where batches have the columns from the start: functions see all columns, and the cast of a value may fail.
    """
    fields = [plan.schema.columns.field(name) for name in plan.columns]
    columns = [whole(events.events.column(name)) for name in plan.columns]
    times = plan.schema.times  # they have been cast before
    fits = (field.name in times or _fits(one.type, field.type) for one, field in zip(columns, fields, strict=True))
    if plan.functions or not all(fits):
        return None
    types = pa.schema([field.with_name(f"{EVENT_PREFIX}{field.name}") for field in fields])
    known = _known_columns(plan.schema)
    return DeferredColumns(pa.RecordBatch.from_arrays(columns, names=types.names), types, known) if fields else None


def _known_columns(schema: Schema) -> dict[str, str]:
    """The names of the columns whose values are those of a batch's keys and times, and the batch's own names of these.
    A time that is read in a zone has other values.
    """
    known = {name: f"{KEY_PREFIX}{i}" for i, name in enumerate(schema.key)}
    for name, column in zip(schema.times, (TIME, END), strict=False):
        type_ = schema.columns.field(name).type
        if pa.types.is_timestamp(type_) and type_.unit == TIME_TYPE.unit and type_.tz is not None:
            known[name] = column
    return {f"{EVENT_PREFIX}{name}": column for name, column in known.items()}


def _fits(given: pa.DataType, plain: pa.DataType) -> bool:
    """Whether every value of the given type is one of the plain one."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    return bool(given == plain or (given == pa.large_string() and plain == pa.string()))


def with_batch_columns(events: TimedEvents, plan: LiftedFor, deferred: DeferredColumns | None) -> TimedEvents:
    """The events with the columns from which batches are made: not those that only conditions need, nor the chosen ones
    if they are deferred.
    """
    if plan.functions:
        return events
    schema, chosen = plan.schema, plan.columns if deferred is None else ()
    names = {*schema.key, *(name for _, name in schema.ranking), schema.event_id, NUMBER, FINER, *chosen}
    needed = [name for name in events.events.schema.names if name in names]
    return TimedEvents(events.events.select(needed), events.times)


def as_batch(
    piece: TimedEvents, computed: Evaluated, plan: LiftedFor, zone: str, deferred: Deferred | None = None
) -> Batch:
    """The events with their lifted columns (`computed`), as a matcher takes them."""
    events = as_plain(piece.events, plan.schema.columns)
    chosen = {f"{EVENT_PREFIX}{name}": events.column(name) for name in plan.columns if deferred is None}
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{f"{KEY_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.key)},
        **dict(zip((TIME, END), piece.times, strict=False)),
        **{column: events.column(name) for column, name in plan.schema.ranking},
        **{mask_column(i): pa.array(word.astype(np.uint64, copy=False)) for i, word in enumerate(computed.masks)},
        **{f"{VALUE_PREFIX}{i}": values for i, values in enumerate(computed.values)},
        **(chosen if deferred is None else {DEFERRED: deferred.rows}),
    }
    if plan.schema.event_id is not None:
        columns[EVENT_ID] = events.column(plan.schema.event_id)
    columns |= {name: events.column(name) for name in (NUMBER, FINER) if name in events.schema.names}
    if plan.functions:
        ours = (ARRIVAL, NUMBER, FINER)
        known = [name for name in events.schema.names if name not in ours and not name.startswith(COMPUTED)]
        columns |= {f"{ROW_PREFIX}{name}": _in_zone(events.column(name), zone) for name in known}
    data = pa.RecordBatch.from_arrays([whole(column) for column in columns.values()], names=list(columns))
    return Batch(data, None if deferred is None else deferred.columns)


def _in_zone(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Instants as local times of the zone, as SQL reads them."""
    type_ = with_zone(column.type, zone)
    return column if type_ == column.type else column.cast(type_)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column. Texts get 64-bit offsets if their total length does not fit 32-bit ones."""
    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(column.type)
    return column if large is None or column.nbytes < _MOST_BYTES else column.cast(large)
