"""Python tables of any kind ⇄ Arrow: what comes in goes out as the same kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from cepheid.errors import SchemaError

FromArrow: TypeAlias = Callable[[pa.Table], Any]


@runtime_checkable
class ArrowStream(Protocol):
    """Anything that hands out its rows through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def to_arrow(events: object) -> tuple[pa.Table, FromArrow]:
    """The events as an Arrow table, and how to make the kind that they were of an Arrow table.

    Raises:
        SchemaError: not a table of a kind that is known.
    """
    kind = f"{type(events).__module__.split('.')[0]}.{type(events).__name__}"
    match kind:
        case "pandas.DataFrame":
            return pa.Table.from_pandas(events, preserve_index=False), lambda table: table.to_pandas()
        case "polars.DataFrame":
            return pa.table(events), type(events)
        case "polars.LazyFrame":
            collected: Any = events
            frame = collected.collect()
            return pa.table(frame), lambda table: type(frame)(table).lazy()
        case "duckdb.DuckDBPyRelation" | "_duckdb.DuckDBPyRelation":
            return pa.table(events), _to_relation
    if isinstance(events, pa.Table):
        return events, lambda table: table
    if isinstance(events, ArrowStream):
        return pa.table(events), lambda table: table
    raise SchemaError(
        f"events are a {kind}; detect takes a Spark DataFrame, or a pandas, polars or pyarrow table, "
        "a DuckDB relation, or anything with the Arrow C stream interface"
    )


def without_views(table: pa.Table) -> pa.Table:
    """The table with plain strings and binaries in the place of views, which Arrow cannot take rows of."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type):
            plain = _plain(field.type)
            table = table.set_column(i, field.with_type(plain), table.column(i).cast(plain))
    return table


def _to_relation(table: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that Spark has: times in microseconds, no dictionaries, views or unsigned integers."""
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_):
        return pa.duration("us")
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    simple = {
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
    return simple.get(type_, type_)
