"""Tables of any kind, in process or on Spark, as Arrow tables of limited size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.detect import is_spark
from cepheid.errors import SchemaError
from cepheid.hosts.in_process.of_matches.matched_events import with_plain_maps
from cepheid.hosts.in_process.tables import to_arrow, without_views

MOST_ROWS = 1_000_000
"""The most rows of a Spark DataFrame that are read into this process for a picture."""


def table_of(frame: object, what: str, only: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The rows of a table that have one of the values in `only`, column by column. Columns that the table lacks do not
    matter.

    Raises:
        SchemaError: the kind of table is not known, it is a stream, or it has more than `MOST_ROWS` on Spark.
    """
    if is_spark(frame):
        return _collected(frame, what, only)
    table = without_views(to_arrow(with_plain_maps(frame))[0])
    for name, values in only.items():
        if name in table.schema.names:
            table = table.filter(_is_any(table.column(name), name, values))
    return table


def _collected(frame: Any, what: str, only: Mapping[str, Sequence[Any]]) -> pa.Table:
    if frame.isStreaming:
        raise SchemaError(f"{what}: a stream is not drawn; draw the table that it is written to")
    for name, values in only.items():
        if name in frame.columns:
            frame = frame.where(frame[name].isin(list(values)))
    table: pa.Table = frame.limit(MOST_ROWS + 1).toArrow()
    if table.num_rows > MOST_ROWS:
        raise SchemaError(
            f"{what}: these are more than {MOST_ROWS:,} rows, too many to read into this process; choose some of them, "
            "with only={…} or with where(…)"
        )
    return table


def _is_any(column: pa.ChunkedArray, name: str, values: Sequence[Any]) -> pa.ChunkedArray:
    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        wanted = pa.chunked_array([_typed(value, type_) for value in values], type_).combine_chunks()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(f"only: {values!r} are no values of column {name!r}, which is {type_}: {error}") from error
    return pc.is_in(column.cast(type_), wanted)


def _typed(value: Any, type_: pa.DataType) -> pa.Array:
    """The value as an array of the column's type; a text, as a command line gives it, is read as one."""
    if isinstance(value, str) and not pa.types.is_string(type_) and not pa.types.is_large_string(type_):
        return pa.array([value]).cast(type_)
    return pa.array([value], type_)
