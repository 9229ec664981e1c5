"""Converts tables of any kind to Arrow and back: the output is a table of the same kind as the input."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError, SchemaError
from cepheid.events.batch import NUMBER
from cepheid.hosts.in_process.event_times.instants import mixes_zones, row_text
from cepheid.hosts.in_process.given_types import in_types_of
from cepheid.hosts.in_process.nanoseconds import has_nanoseconds
from cepheid.hosts.in_process.pandas_index import with_index
from cepheid.hosts.in_process.relations import from_relation, to_relation
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.requests.request import repeated_names

FromArrow: TypeAlias = Callable[[pa.Table, Mapping[str, str]], Any]
"""Makes a table of the input's kind from an Arrow table. The mapping says from which input columns the values of its
columns come: such columns get the types of the input columns.
"""

_DECIMAL_DIGITS = 38
"""The most digits that Spark's decimals have."""

_TABLE_OF: dict[type, str] = {list: "pyarrow.Table.from_pylist(events)", dict: "pyarrow.table(events)"}
"""How to make a table of a list of rows, and of columns by name."""
_SIMPLE = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


@runtime_checkable
class ArrowStream(Protocol):
    """Any object with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def to_arrow(events: object) -> tuple[pa.Table, FromArrow]:
    """The events as an Arrow table, and the function that makes a table of their kind from an Arrow table.

    Raises:
        SchemaError: the kind of table is not known.
    """
    kind = kind_of(events)
    match kind:
        case "pandas.DataFrame":
            return _from_pandas(events), partial(_to_pandas, events)
        case "polars.DataFrame":
            return _from_polars(events), partial(_to_polars, events)
        case "polars.LazyFrame":
            collected: Any = events
            frame = collected.collect()
            return _from_polars(frame), lambda table, sources: _to_polars(frame, table, sources).lazy()
        case "duckdb.DuckDBPyRelation" | "_duckdb.DuckDBPyRelation":
            rows, faults = from_relation(events)
            table = _with_faulty(rows, getattr(events, "columns"), faults)  # noqa: B009
            return table, partial(to_relation, events, table.schema)
    if isinstance(events, pa.Table):
        return events, partial(in_types_of, events.schema)
    if isinstance(events, ArrowStream):
        table = pa.table(events)
        return table, partial(in_types_of, table.schema)
    advice = f". Make a table of it: {_TABLE_OF[type(events)]}" if type(events) in _TABLE_OF else ""
    raise SchemaError(
        f"events are a {kind}; detect takes a Spark DataFrame, or a pandas, polars or pyarrow table, "
        f"a DuckDB relation, or anything with the Arrow C stream interface{advice}"
    )


def kind_of(events: object) -> str:
    """The package and the name of the type, as "polars.DataFrame"."""
    package = type(events).__module__.split(".")[0]
    return type(events).__name__ if package == "builtins" else f"{package}.{type(events).__name__}"


def columns_of(events: object) -> pa.Schema:
    """The columns of a table of any kind. The events of a lazy frame are not read.

    Raises:
        SchemaError: the kind of table is not known.
    """
    if kind_of(events) != "polars.LazyFrame":
        return to_arrow(events)[0].schema
    import polars as pl

    lazy: Any = events
    return _from_polars(pl.DataFrame(schema=lazy.collect_schema())).schema


_FAULT = b"cepheid.unsupported"
"""In the metadata of a column without values, which stands for one that Arrow cannot hold: why it cannot."""


def column_faults(columns: pa.Schema, used: Container[str | None]) -> list[str]:
    """What is wrong with the used columns that Arrow cannot hold; others do not matter."""
    given = [(field.name, field.metadata or {}) for field in columns]
    return [metadata[_FAULT].decode() for name, metadata in given if name in used and _FAULT in metadata]


def _with_faulty(table: pa.Table, names: Sequence[str], faults: Mapping[str, str]) -> pa.Table:
    """The table with all columns of these names: those with faults, which it lacks, have no values."""
    for i, name in enumerate(names):
        if name in faults:
            field = pa.field(name, pa.null(), metadata={_FAULT: faults[name].encode()})
            table = table.add_column(i, field, pa.nulls(len(table)))
    return table


def _from_pandas(frame: Any) -> pa.Table:
    """The table; a column that has values of several types or of types that Arrow lacks, or mixes times with a zone and
    times without, or times and dates, has a fault in place of its values.

    Raises:
        SchemaError: columns have the same name.
    """
    frame = _with_periods_as_texts(frame)
    names = [str(name) for name in frame.columns]
    if repeated := repeated_names(names):
        raise SchemaError("\n".join(repeated))
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        found = [_pandas_fault(column) for column in columns]
        if not any(found):
            raise SchemaError(str(error)) from error
    else:
        found = [_times_fault(column, type_) for column, type_ in zip(columns, table.schema.types, strict=True)]
        if not any(found):
            return with_index(table, frame.index)
    faults = {name: fault for name, fault in zip(names, found, strict=True) if fault}
    sound = frame.loc[:, [name not in faults for name in names]]
    table = _with_faulty(pa.Table.from_pandas(sound, preserve_index=False), names, faults)
    return with_index(table, frame.index)


def _with_periods_as_texts(frame: Any) -> Any:
    """The table, with periods such as 2026-03 as texts. Arrow would have them as numbers."""
    periods = [number for number, type_ in enumerate(frame.dtypes) if str(type_).startswith("period[")]
    if not periods:
        return frame
    frame = frame.copy(deep=False)
    for number in periods:
        column = frame.iloc[:, number]
        frame.isetitem(number, column.astype("string").where(column.notna()))
    return frame


def _from_polars(frame: Any) -> pa.Table:
    """The table; a column of a type that Arrow lacks has a fault in place of its values."""
    faults = {
        name: f"column {name!r} of the events is of polars's type {type_}, which Arrow lacks. Cast it, or leave it out"
        for name, type_ in frame.schema.items()
        if not _has_arrow_type(frame[name].head(0), type_)
    }
    return _with_faulty(pa.table(frame.drop(list(faults))), frame.columns, faults)


def _has_arrow_type(empty: Any, type_: Any) -> bool:
    if str(type_) == "Object":  # polars gives the addresses of the objects
        return False
    try:
        pa.table(empty.to_frame())
    except pa.ArrowException:
        return False
    return True


def _pandas_fault(series: Any) -> str | None:
    try:
        return _times_fault(series, pa.Array.from_pandas(series).type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in series.dropna()}))
        message = f"column {str(series.name)!r} of the events is no column of one type (it holds {kinds}): {error}."
        return f"{message} Convert it, for example with astype, or leave it out"


def _times_fault(series: Any, type_: pa.DataType) -> str | None:
    if series.dtype != object or (mixed := mixed_times(series, type_)) is None:
        return None
    return f"column {str(series.name)!r} of the events {mixed}"


_MIXES_DATES = (
    "holds dates and times: the dates have no time of day, and the times would lose theirs. "
    "Make all times, or all dates, for example with pandas.to_datetime"
)


def mixed_times(values: Iterable[Any], type_: pa.DataType) -> str | None:
    """How times are mixed in a column to which Arrow has given this type, also within lists and dicts; None if they are
    not. Arrow uses the zone of the first time for all times. If the first is a date, it uses only the dates of the
    others.
    """
    return _mixed([*enumerate(values)], type_)


def _mixed(values: Sequence[tuple[int, Any]], type_: pa.DataType) -> str | None:
    """As `mixed_times`, for values with the numbers of their rows."""
    if pa.types.is_struct(type_):
        rows = [(row, value) for row, value in values if isinstance(value, Mapping)]
        parts = (_mixed([(row, value.get(field.name)) for row, value in rows], field.type) for field in type_)
        return next(filter(None, parts), None)
    if pa.types.is_list(type_):
        lists = [(row, value) for row, value in values if isinstance(value, list | tuple | np.ndarray)]
        return _mixed([(row, one) for row, value in lists for one in value], type_.value_type)
    if not pa.types.is_temporal(type_):
        return None
    # NaT, which does not count here, is a datetime; pandas is not imported for it.
    times = [(row, one) for row, one in values if isinstance(one, datetime) and type(one).__name__ != "NaTType"]
    if pa.types.is_date(type_):
        return _MIXES_DATES if times else None
    with_zone = next((one for one in times if one[1].tzinfo is not None), None)
    without = next((one for one in times if one[1].tzinfo is None), None)
    if with_zone is None or without is None:
        return None
    return mixes_zones(*(f"{time} ({row_text(row)})" for row, time in (with_zone, without)))


def _to_polars(events: Any, table: pa.Table, sources: Mapping[str, str]) -> Any:
    frame = type(events)(table)
    there = {name: source for name, source in sources.items() if name in frame.columns and source in events.columns}
    return frame.with_columns([frame[name].cast(events.schema[source]) for name, source in there.items()])


def _to_pandas(events: Any, table: pa.Table, sources: Mapping[str, str]) -> Any:
    """The table in pandas. Integers and booleans with NULLs get pandas's nullable types, as its default would round
    integers to floats; within structs and lists they are Python's.

    Raises:
        EventError: a struct has a time before the year 1 or after 9999, as a deadline may be.
    """
    import pandas as pd

    there = {name: events[source].dtype for name, source in sources.items() if source in events}
    numbers = {name: pa.from_numpy_dtype(type_) for name, type_ in there.items() if type_ in _NUMBERS}
    table = in_types_of(pa.schema(numbers), table, {name: name for name in numbers})
    nullable = {pa.from_numpy_dtype(type_): pd.array(np.empty(0, type_)).dtype for type_ in _NUMBERS}
    try:
        frame = table.to_pandas(integer_object_nulls=True)
    except (OverflowError, ValueError) as error:
        message = f"a time within structs is none of Python's, in which pandas has them: {error}"
        raise EventError(
            f"{message}. Choose columns without it, or give the events as a polars or pyarrow table"
        ) from error
    for name in table.schema.names:
        column = table.column(name)
        if column.null_count and column.type in nullable:
            frame[name] = column.to_pandas(types_mapper=nullable.get)
        if pa.types.is_nested(column.type) and has_nanoseconds(column.type):  # pandas would have them as integers
            frame[name] = pd.Series(column.to_pylist(), frame.index, dtype=object)
    for name, type_ in there.items():
        if name in frame and name not in numbers:
            with suppress(TypeError, ValueError):  # NULLs where the events have none, as in rows of other patterns
                frame[name] = frame[name].astype(type_)
    if NUMBER in sources.values():
        frame.index = events.index.take(frame.pop(ROW_NUMBER))
    return frame


_NUMBERS = [np.dtype(code) for code in "?bhiqBHIQ"]
"""NumPy's types that cannot hold NULL."""


def without_views(table: pa.Table) -> pa.Table:
    """The table with plain strings and binaries instead of views, as Arrow cannot take rows from views."""
    for i, field in enumerate(table.schema):
        if (plain := _without_views(field.type)) != field.type:
            table = table.set_column(i, field.with_type(plain), table.column(i).cast(plain))
    return table


def _without_views(type_: pa.DataType) -> pa.DataType:
    """The type with plain strings and binaries instead of views. A dictionary stays one, as Arrow cannot decode a
    dictionary of views.
    """
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _without_views(type_.value_type), type_.ordered)
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return _plain(type_)
    return _nested(type_, _without_views) if pa.types.is_nested(type_) else type_


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that Spark has: times in microseconds, no dictionaries, views,
    extensions or unsigned integers.
    """
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def fitted(events: pa.Table, columns: pa.Schema, whose: str = "the matcher") -> pa.Table:
    """The columns that a matcher, or what else `whose` names, was made with, in their types; only their encoding may
    differ.

    Raises:
        SchemaError: columns are missing or have other types; it names all of them.
    """
    there = events.schema.names
    faults = repeated_names(there)
    faults += [
        f"events have no column {name!r}, which {whose} was made with" for name in columns.names if name not in there
    ]
    faults += column_faults(events.schema, columns.names)
    if faults:
        raise SchemaError("\n".join(faults))
    events = without_views(events.select(columns.names))
    for i, (found, field) in enumerate(zip(plain_schema(events.schema), plain_schema(columns), strict=True)):
        if pa.types.is_null(found.type):  # an empty pandas column has no type
            events = events.set_column(i, field, cast(events.column(i), field.name, field.type))
        elif _is_instant(found.type) and _is_instant(field.type):  # an instant is the same in any zone
            type_ = pa.timestamp(events.schema.field(i).type.unit, field.type.tz)
            events = events.set_column(i, field.with_type(type_), events.column(i).cast(type_))
        elif _is_without_times(events.column(i), field.type):
            events = events.set_column(i, field, pa.nulls(len(events), field.type))
        elif found.type != field.type:
            fault = f"column {field.name!r} is of type {found.type}; {whose} was made for {field.type}"
            faults.append(fault + (_FLOATS_ADVICE if _has_lost_integers(events.column(i), field.type) else ""))
    if faults:
        raise SchemaError("\n".join(faults))
    return events


def _is_without_times(column: pa.ChunkedArray, type_: pa.DataType) -> bool:
    """Whether it is a column of times without any: pandas gives one of NaT a type without a zone."""
    are_times = pa.types.is_timestamp(column.type) and pa.types.is_timestamp(type_)
    return bool(are_times and 0 < column.null_count == len(column))


_FLOATS_ADVICE = (
    ". pandas converts integers to floats where some are missing, and rounds large ones: "
    "give the column the type Int64 where the table is made"
)


def _has_lost_integers(column: pa.ChunkedArray, type_: pa.DataType) -> bool:
    """Whether the floats may be integers that pandas has converted because some values are missing."""
    return bool(pa.types.is_integer(type_) and pa.types.is_floating(column.type) and column.null_count)


def _is_instant(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_)) and type_.tz is not None


def as_plain(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table, with its columns in the types of the schema. Columns that the schema lacks stay unchanged.

    Raises:
        EventError: a value does not fit, for example nanoseconds in microseconds.
    """
    for i, field in enumerate(table.schema):
        if schema.get_field_index(field.name) >= 0 and (plain := schema.field(field.name)) != field:
            table = table.set_column(i, plain, cast(table.column(i), field.name, plain.type))
    return table


def cast(column: pa.ChunkedArray, name: str, type_: pa.DataType) -> pa.ChunkedArray:
    """The column as another type; EventError where a value does not fit."""
    try:
        return column.cast(type_)
    except pa.ArrowInvalid as error:
        raise EventError(f"a value in column {name!r} does not fit {type_}: {error}. Round the column first") from error


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_):
        return pa.duration("us")
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_time(type_):
        return pa.time64("us")
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return _plain(type_.storage_type)
    if pa.types.is_decimal(type_) and type_.precision <= _DECIMAL_DIGITS:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    return _nested(type_, _plain) if pa.types.is_nested(type_) else _SIMPLE.get(type_, type_)


def with_zone(type_: pa.DataType, zone: str) -> pa.DataType:
    """The type with this zone in place of any other, also within nested types."""
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, zone)
    return _nested(type_, lambda inner: with_zone(inner, zone)) if pa.types.is_nested(type_) else type_


def _nested(type_: pa.DataType, become: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with its nested types replaced; a list of any kind becomes a plain list."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(become(field.type)) for field in type_])
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(become(key.type)), item.with_type(become(item.type)), type_.keys_sorted)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(become(type_.value_type)))
    return type_
