"""The in-process host: a loop over pieces of an Arrow table. DuckDB computes the lifted columns and, where needed,
the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.compiled import CompiledPattern, compile_plan
from cepheid.errors import ConditionError, EventError, SchemaError
from cepheid.events import (
    EVENT_PREFIX,
    KEY_PREFIX,
    MASK,
    SEQUENCE,
    TIME,
    TIME_TYPE,
    VALUE_PREFIX,
    Batch,
    Schema,
    microseconds,
)
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.request import EventCounts, Request, instant_of, repeated_names, warn
from cepheid.hosts.tables import as_plain, plain_schema, without_views
from cepheid.lang.expression import Call, Expression, Name
from cepheid.matcher import Matcher
from cepheid.order import descends, differs, leaves
from cepheid.plan.build import build_plan
from cepheid.plan.plan import Lifted, Measure, Plan

PIECE = 1 << 18
"""Rows handled at once: large enough that calls cost nothing, small enough that what is made of them stays in the
cache.
"""


def detect_in_process(events: pa.Table, request: Request) -> pa.Table:
    """The matches in `events`, as rows in the order of key and emission.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or time (`nulls="error"`), a local time that is ambiguous or does not exist.
        ConditionError: a condition fails on an event.
    """
    zone = request.time_zone or "UTC"
    until = None if request.as_of is None else microseconds(instant_of(request.as_of, zone))
    engine = DuckDbEngine(time_zone=zone)
    plan = plan_in_process(events.schema, request)
    pattern = compile_plan(plan)
    events = without_views(events.select(_used(plan)))
    timed, counts = _usable(_Timed(events, _instants(events.column(request.time), request)), plan, request, until)
    matcher = Matcher(pattern, until=until)
    found = [matcher.process(batch) for batch in _batches(timed, pattern, engine)]
    found.append(matcher.finish())
    counts = replace(counts, ties=matcher.counts.ties, matches=matcher.counts.matches)
    _tell(counts, request)
    rows = pa.concat_tables(found)
    return rows if plan.measures is None else _with_measures(rows, plan.measures, engine)


def plan_in_process(columns: pa.Schema, request: Request) -> Plan:
    """Raises PatternError and SchemaError, as `detect_in_process` does."""
    schema = Schema(plain_schema(columns), request.key, request.time, request.sequence)
    _check(schema)
    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    return build_plan(request.pattern, schema, engine, columns=request.columns, measures=request.measures)


def _check(schema: Schema) -> None:
    faults = repeated_names(schema.columns.names)
    for name in schema.key:
        at = schema.columns.get_all_field_indices(name)
        if at and not _groups(type_ := schema.columns.field(at[0]).type):
            faults.append(
                f"key: {name!r} is of type {type_}, which is no key in process. Cast it, for example to a string"
            )
    if faults:
        raise SchemaError("\n".join(faults))


def _groups(type_: pa.DataType) -> bool:
    """Whether values of the type are told apart here; types that are no key on any host are left to the plan."""
    if pa.types.is_struct(type_):
        return all(_groups(field.type) for field in type_)
    return not (pa.types.is_interval(type_) or pa.types.is_decimal256(type_))


def _used(plan: Plan) -> list[str]:
    """The event columns that the output, the order or a condition needs."""
    lifted = {name.lower() for column in (*plan.bits, *plan.values) for name in _names(column.expression)}
    schema = plan.schema
    needed = {*schema.key, schema.time, *([] if schema.sequence is None else [schema.sequence]), *plan.columns}
    return [name for name in schema.columns.names if name in needed or name.lower() in lifted]


def _names(expression: Expression) -> Iterator[str]:
    """The columns it names, and perhaps parameters of a lambda."""
    match expression:
        case Name(parts=parts):
            yield parts[0]
        case Call(args=args):
            for arg in args:
                yield from _names(arg)


def _tell(counts: EventCounts, request: Request) -> None:
    dropped = counts.null_keys or counts.null_times
    if request.report is not None:
        request.report.set(lambda: counts)
    elif dropped:
        what = f"{counts.null_keys} events without key and {counts.null_times} without time were dropped"
        warn(f"{what}. Give a Report, as in detect(…, report=report), to have the counts in it instead")
    if counts.ties and request.sequence is None:
        message = f"{counts.ties} events agree in key and time with another; their content orders them"
        warn(f"{message}. Name a sequence column")


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
        yield _batch(_Timed(as_plain(piece.events, schema.columns), piece.time), pattern, engine)


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
    key_start = np.zeros(len(timed), np.bool_)
    key_start[:1] = True
    keys = _key_leaves(timed, schema)
    for column in keys:
        key_start[1:] |= differs(column)
    if (descends(_ranks(timed, schema)) & ~key_start[1:]).any():
        return False
    starts = pa.array(np.flatnonzero(key_start))
    names = [str(i) for i in range(len(keys))]
    runs = pa.table([column.take(starts) for column in keys], names=names)
    return not keys or runs.group_by(names).aggregate([]).num_rows == len(starts)


def _key_leaves(timed: _Timed, schema: Schema) -> list[pa.Array]:
    return [leaf for name in schema.key for leaf in leaves(_column(timed, name, schema))]


def _ranks(timed: _Timed, schema: Schema) -> list[pa.Array]:
    """What orders the events of a key."""
    sequence = [] if schema.sequence is None else [_column(timed, schema.sequence, schema)]
    return [_whole(timed.time), *sequence]


def _column(timed: _Timed, name: str, schema: Schema) -> pa.Array:
    return _whole(as_plain(timed.events.select([name]), schema.columns).column(0))


def _order(timed: _Timed, schema: Schema) -> pa.ChunkedArray:
    """The rows' numbers in the order of key, time and sequence."""
    ranks = [*_key_leaves(timed, schema), *(leaf for column in _ranks(timed, schema) for leaf in leaves(column))]
    columns = {f"c{i}": column for i, column in enumerate(ranks)}
    table = pa.table({**columns, "row": pa.array(np.arange(len(timed), dtype=np.int64))})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        order = ", ".join(f"{name} NULLS LAST" for name in columns)
        return connection.sql(f"SELECT row FROM events ORDER BY {order}").to_arrow_table().column("row")  # noqa: S608 - names made here


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
