"""What happens to a table of events before a matcher sees it in process: times are read, events without a place are
dropped or refused, and DuckDB computes the lifted columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events.batch import (
    EVENT_PREFIX,
    KEY_PREFIX,
    ROW_PREFIX,
    SEQUENCE_PREFIX,
    TIME,
    TIME_TYPE,
    VALUE_PREFIX,
    Batch,
    mask_column,
)
from cepheid.hosts.duckdb.engine import DuckDbEngine, Evaluated
from cepheid.hosts.in_process.tables import as_plain, with_zone
from cepheid.lang.expression import Call, Expression, Name
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.plan_set import LiftedFor
from cepheid.requests.request import EventCounts, Request


def used_columns(plan: LiftedFor) -> list[str]:
    """The event columns that the output, the order or a condition needs."""
    schema = plan.schema
    if plan.functions:
        return list(schema.columns.names)
    needed = {*schema.key, schema.time, *schema.sequence, *plan.columns, *lifted_columns(plan)}
    return [name for name in schema.columns.names if name in needed]


def lifted_columns(plan: LiftedFor | IntervalPlan) -> list[str]:
    """Those that conditions name."""
    named = {name.lower() for column in (*plan.bits, *plan.values) for name in _names(column.expression)}
    return [name for name in plan.schema.columns.names if name.lower() in named]


def _names(expression: Expression) -> Iterator[str]:
    """The columns it names, and perhaps parameters of a lambda."""
    match expression:
        case Name(parts=parts):
            yield parts[0]
        case Call(args=args):
            for arg in args:
                yield from _names(arg)


_MOST_BYTES = 1 << 31

ARRIVAL = "_arrival"
"""The column of the order in which events come."""


@dataclass(frozen=True)
class Timed:
    """Events as they came, and their times as instants."""

    events: pa.Table
    time: pa.ChunkedArray

    def __len__(self) -> int:
        return int(self.events.num_rows)

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> Timed:
        return Timed(self.events.filter(mask), self.time.filter(mask))

    def slice(self, start: int, length: int) -> Timed:
        return Timed(self.events.slice(start, length), self.time.slice(start, length))

    def take(self, rows: pa.Array) -> Timed:
        return Timed(self.events.take(rows), self.time.take(rows))

    def in_one_piece(self) -> Timed:
        """The same, of which rows may be taken again and again: Arrow would join all pieces each time."""
        columns = [wide(column) for column in self.events.columns]
        events = pa.table(columns, names=self.events.schema.names).combine_chunks()
        return Timed(events, pa.chunked_array([whole(self.time)]))


def usable(timed: Timed, plan: LiftedFor, request: Request, until: int | None) -> tuple[Timed, EventCounts]:
    """The events up to `as_of` that have a key and a time; and how many had not."""
    if until is not None:
        reached = pc.less_equal(timed.time, pa.scalar(until, pa.int64()).cast(TIME_TYPE))
        timed = timed.filter(reached.fill_null(fill_value=True))
    no_key = _any_null(timed.events, plan.schema.key)
    no_time = timed.time.is_null().to_numpy() & ~no_key
    counts = EventCounts(events=len(timed), null_keys=int(no_key.sum()), null_times=int(no_time.sum()))
    if not counts.null_keys and not counts.null_times:
        return timed, counts
    if request.nulls == "error":
        found = [f"{counts.null_keys} with a NULL in the key ({', '.join(plan.schema.key)})"] * bool(counts.null_keys)
        found += [f"{counts.null_times} without a time ({plan.schema.time})"] * bool(counts.null_times)
        how = 'Drop them before, or with nulls="drop", which counts them in the report'
        raise EventError(f"events that have no place in the order: {', '.join(found)}. {how}")
    return timed.filter(pa.array(~(no_key | no_time))), counts


def _any_null(events: pa.Table, columns: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    null = np.zeros(events.num_rows, np.bool_)
    for column in columns:
        if events.column(column).null_count:
            null |= events.column(column).is_null().to_numpy()
    return null


def in_order_of_arrival(events: pa.Table, request: Request, first: int = 0) -> tuple[pa.Table, Request]:
    """In processing order without a sequence, the events are numbered as they come, from `first`, and so ordered."""
    if request.time is not None or request.sequence:
        return events, request
    chosen = tuple(events.schema.names) if request.columns is None else request.columns
    numbers = pa.array(np.arange(first, first + events.num_rows))
    return events.append_column(ARRIVAL, numbers), replace(request, sequence=(ARRIVAL,), columns=chosen)


def timed(events: pa.Table, request: Request) -> Timed:
    """The events with their times as instants in microseconds; those without a zone are read in the request's. In
    processing order all have the same.

    Raises:
        EventError: a time does not fit microseconds, or a local time is ambiguous or does not exist.
    """
    if request.time is None:
        nothing = pa.array(np.zeros(events.num_rows, np.int64)).cast(TIME_TYPE)
        return Timed(events, pa.chunked_array([nothing]))
    return Timed(events, instants(events.column(request.time), request.time, request.time_zone or "UTC"))


def instants(time: pa.ChunkedArray, name: str, zone: str) -> pa.ChunkedArray:
    """The times of the column `name` as instants in microseconds; those without a zone are read in `zone`.

    Raises:
        EventError: a time does not fit microseconds, or a local time is ambiguous or does not exist.
    """
    try:
        time = time.cast(pa.timestamp("us", time.type.tz))
    except pa.ArrowInvalid as error:
        message = f"a time in {name!r} does not fit microseconds: {error}. Round the column to microseconds first"
        raise EventError(message) from error
    if time.type.tz is not None:
        return time.cast(TIME_TYPE)
    try:
        return pc.assume_timezone(time, zone).cast(TIME_TYPE)
    except pa.ArrowInvalid as error:
        raise EventError(
            f"a local time in {name!r} is ambiguous or does not exist in {zone}: {error}. "
            "Convert the column to instants (with a zone) first, where it is known which is meant"
        ) from error


def lifted(piece: Timed, plan: LiftedFor, engine: DuckDbEngine) -> Batch:
    """The events, in their order, as a matcher takes them."""
    return placed(piece, evaluated(piece, plan, engine), plan, engine.time_zone)


def evaluated(piece: Timed, plan: LiftedFor, engine: DuckDbEngine) -> Evaluated:
    """The lifted columns of the events, in their order."""
    events = as_plain(piece.events.select(lifted_columns(plan)), plan.schema.columns)
    shown = piece.events.select(plan.columns)
    return engine.evaluate(events, bits=plan.bits, values=plan.values, shown=shown)


def placed(piece: Timed, found: Evaluated, plan: LiftedFor, zone: str) -> Batch:
    """The events with their lifted columns as a matcher takes them."""
    events = as_plain(piece.events, plan.schema.columns)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{f"{KEY_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.key)},
        TIME: piece.time,
        **{f"{SEQUENCE_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.sequence)},
        **{mask_column(word): pa.array(mask) for word, mask in enumerate(found.masks)},
        **{f"{VALUE_PREFIX}{i}": values for i, values in enumerate(found.values)},
        **{f"{EVENT_PREFIX}{name}": events.column(name) for name in plan.columns},
    }
    if plan.functions:
        known = [name for name in events.schema.names if name != ARRIVAL]
        columns |= {f"{ROW_PREFIX}{name}": _in_zone(events.column(name), zone) for name in known}
    return Batch(pa.RecordBatch.from_arrays([whole(column) for column in columns.values()], names=list(columns)))


def _in_zone(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Instants as a clock in the zone shows them, as SQL reads them."""
    type_ = with_zone(column.type, zone)
    return column if type_ == column.type else column.cast(type_)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column; texts that are together too long for 32 bits to count their bytes have 64."""
    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(column.type)
    return column if large is None or column.nbytes < _MOST_BYTES else column.cast(large)
