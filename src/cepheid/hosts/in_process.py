"""The in-process host: a loop over pieces of an Arrow table. DuckDB computes the lifted columns and, where needed,
the order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.tables import CompiledPattern, compile_plan
from cepheid.errors import CepheidWarning, ConditionError, EventError
from cepheid.events import EVENT_PREFIX, KEY_PREFIX, MASK, SEQUENCE, TIME, TIME_TYPE, VALUE_PREFIX, Batch, Schema
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.request import EventCounts, Request
from cepheid.hosts.tables import plain_schema, without_views
from cepheid.lang.expression import Name
from cepheid.matcher import Matcher
from cepheid.order import differs
from cepheid.plan.build import build_plan
from cepheid.plan.plan import Lifted, Measure, Plan

PIECE = 1 << 18
"""Rows handled at once: large enough that calls cost nothing, small enough that what is made of them stays in the
cache.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def detect_in_process(events: pa.Table, request: Request) -> pa.Table:
    """The matches in `events`, as rows in the order of key and emission.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or time (`nulls="error"`), a local time that is ambiguous or does not exist.
        ConditionError: a condition fails on an event.
    """
    events = without_views(events)
    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    schema = Schema(plain_schema(events.schema), request.key, request.time, request.sequence)
    plan = build_plan(request.pattern, schema, engine, columns=request.columns, measures=request.measures)
    pattern = compile_plan(plan)
    until = None if request.as_of is None else _microseconds(request.as_of)
    timed, counts = _usable(_Timed(events, _instants(events.column(request.time), request)), plan, request, until)
    matcher = Matcher(pattern, until=until)
    found = [matcher.process(batch) for batch in _batches(timed, pattern, engine)]
    found.append(matcher.finish())
    counts = replace(counts, ties=matcher.counts.ties, matches=matcher.counts.matches)
    request.report.set(lambda: counts)
    if counts.ties and plan.schema.sequence is None:
        _warn_of_ties(counts.ties)
    rows = pa.concat_tables(found)
    return rows if plan.measures is None else _with_measures(rows, plan.measures, engine)


def _microseconds(instant: datetime) -> int:
    elapsed = instant - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def _warn_of_ties(ties: int) -> None:
    message = f"{ties} events agree in key and time with another; their content orders them. Name a sequence column"
    warnings.warn(message, CepheidWarning, stacklevel=4)


@dataclass(frozen=True)
class _Timed:
    """Events as they came, and their times as instants."""

    events: pa.Table
    time: pa.ChunkedArray

    def __len__(self) -> int:
        return int(self.events.num_rows)

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> _Timed:
        return _Timed(self.events.filter(mask), self.time.filter(mask))

    def slice(self, start: int, length: int) -> _Timed:
        return _Timed(self.events.slice(start, length), self.time.slice(start, length))

    def take(self, rows: pa.ChunkedArray) -> _Timed:
        return _Timed(self.events.take(rows), self.time.take(rows))


def _usable(timed: _Timed, plan: Plan, request: Request, until: int | None) -> tuple[_Timed, EventCounts]:
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
        raise EventError(
            f"{counts.null_keys} events have a NULL in the key ({', '.join(plan.schema.key) or 'none'}) and "
            f"{counts.null_times} have no time ({plan.schema.time}). "
            'Drop them before, or with nulls="drop", which counts them in the report'
        )
    return timed.filter(pa.array(~(no_key | no_time))), counts


def _any_null(events: pa.Table, columns: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    null = np.zeros(events.num_rows, np.bool_)
    for column in columns:
        if events.column(column).null_count:
            null |= events.column(column).is_null().to_numpy()
    return null


def _instants(time: pa.ChunkedArray, request: Request) -> pa.ChunkedArray:
    """Times as instants in microseconds; those without a zone are read in the request's."""
    try:
        time = time.cast(pa.timestamp("us", time.type.tz))
    except pa.ArrowInvalid as error:
        message = (
            f"a time in {request.time!r} does not fit microseconds: {error}. Round the column to microseconds first"
        )
        raise EventError(message) from error
    if time.type.tz is not None:
        return time.cast(TIME_TYPE)
    zone = request.time_zone or "UTC"
    try:
        return pc.assume_timezone(time, zone).cast(TIME_TYPE)
    except pa.ArrowInvalid as error:
        raise EventError(
            f"a local time in {request.time!r} is ambiguous or does not exist in {zone}: {error}. "
            "Convert the column to instants (with a zone) first, where it is known which is meant"
        ) from error


def _batches(timed: _Timed, pattern: CompiledPattern, engine: DuckDbEngine) -> Iterator[Batch]:
    """The events in the order of key, time and sequence, in pieces, with their lifted columns, without those that
    cannot matter.
    """
    schema = pattern.plan.schema
    order = None if _is_ordered(timed, schema) else _order(timed, schema)
    for start in range(0, len(timed), PIECE):
        piece = timed.slice(start, PIECE) if order is None else timed.take(order.slice(start, PIECE))
        yield _batch(_Timed(piece.events.cast(schema.columns), piece.time), pattern, engine)


def _batch(piece: _Timed, pattern: CompiledPattern, engine: DuckDbEngine) -> Batch:
    plan, events = pattern.plan, piece.events
    lifted = engine.evaluate(events, bits=plan.bits, values=plan.values)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{f"{KEY_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.key)},
        TIME: piece.time,
        **({} if plan.schema.sequence is None else {SEQUENCE: events.column(plan.schema.sequence)}),
        MASK: pa.array(lifted.mask),
        **{f"{VALUE_PREFIX}{i}": values for i, values in enumerate(lifted.values)},
        **{f"{EVENT_PREFIX}{name}": events.column(name) for name in plan.columns},
    }
    table = pa.table(columns)
    if pattern.relevant is not None:
        relevant = lifted.mask & np.uint64(pattern.relevant) != 0
        table = table if relevant.all() else table.filter(pa.array(relevant))
    return Batch(pa.RecordBatch.from_arrays([_whole(column) for column in table.columns], names=table.schema.names))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _is_ordered(timed: _Timed, schema: Schema) -> bool:
    """Whether each key's events are together and in order of time and sequence."""
    keys = [_whole(timed.events.column(name)) for name in schema.key]
    key_start = np.zeros(len(timed), np.bool_)
    key_start[:1] = True
    for column in keys:
        key_start[1:] |= differs(column)
    later = np.zeros(max(0, len(timed) - 1), np.bool_)
    same = ~key_start[1:]
    for column in map(_whole, _ranks(timed, schema)):
        follows, precedes = column.slice(1), column.slice(0, max(0, len(column) - 1))
        descends = pc.less(follows, precedes).fill_null(fill_value=True).to_numpy(zero_copy_only=False)
        if (descends & same & ~later).any():
            return False
        later |= pc.greater(follows, precedes).fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    starts = pa.array(np.flatnonzero(key_start))
    names = [str(i) for i in range(len(keys))]
    runs = pa.table([column.take(starts) for column in keys], names=names)
    return (not keys and len(starts) <= 1) or runs.group_by(names).aggregate([]).num_rows == len(starts)


def _ranks(timed: _Timed, schema: Schema) -> list[pa.ChunkedArray]:
    """What orders the events of a key."""
    return [timed.time, *([] if schema.sequence is None else [timed.events.column(schema.sequence)])]


def _order(timed: _Timed, schema: Schema) -> pa.ChunkedArray:
    """The rows' numbers in the order of key, time and sequence."""
    ranks = [*(timed.events.column(name) for name in schema.key), *_ranks(timed, schema)]
    columns = {f"c{i}": column for i, column in enumerate(ranks)}
    table = pa.table({**columns, "row": pa.array(np.arange(len(timed), dtype=np.int64))})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        query = f"SELECT row FROM events ORDER BY {', '.join(columns)}"  # noqa: S608 - names made here
        return connection.sql(query).to_arrow_table().column("row")


def _with_measures(rows: pa.Table, measures: tuple[Measure, ...], engine: DuckDbEngine) -> pa.Table:
    """The rows with the measures in the place of their slots."""
    slots = {name for measure in measures for name in measure.slots}
    table = rows.select([name for name in rows.schema.names if name not in slots])
    for measure in measures:
        if isinstance(measure.expression, Name):
            column = rows.column(measure.expression.parts[0])
        else:
            lifted = Lifted(measure.sql, measure.expression, measure.type)
            try:
                column = engine.evaluate(rows, values=[lifted]).values[0]
            except ConditionError as error:
                raise ConditionError(f"measure {measure.name!r}: {error}") from error
        table = table.append_column(pa.field(measure.name, measure.type), column.cast(measure.type))
    return table
