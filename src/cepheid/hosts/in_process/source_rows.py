"""Rows of events: their columns are those of the table that was given, in its own types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.events.batch import NUMBER
from cepheid.hosts.in_process.prepare import whole, wide
from cepheid.hosts.in_process.tables import as_plain
from cepheid.matchers.working_set import widest
from cepheid.output.common import MOST_BYTES, nullable
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.requests.request import Request


def by_number(events: pa.Schema, request: Request) -> Request:
    """The request, for events with numbers if the output has a row for each of them.

    Raises:
        SchemaError: a column has the name of that of the numbers.
    """
    if request.rows_per == "match":
        return request
    if NUMBER in events.names:
        raise SchemaError(f"the column name {NUMBER!r} is reserved where each event has a row: rename the column")
    return replace(request, numbered=True)


def with_numbers(events: pa.Table) -> pa.Table:
    """The events with their numbers, from 0."""
    return events.append_column(NUMBER, pa.array(np.arange(len(events))))


def with_ends(events: pa.Table, joined: pa.Table, end: str) -> pa.Table:
    """The events with the ends that they have in `joined`, where each has its number."""
    place, count = events.schema.get_field_index(end), len(events)
    at = np.full(count, -1, np.int64)
    at[joined.column(NUMBER).to_numpy()] = np.arange(len(joined))
    ends = pa.chunked_array([*events.column(end).chunks, *joined.column(end).chunks])
    sources = pa.array(np.where(at < 0, np.arange(count), count + at))
    return events.set_column(place, events.schema.field(place), ends.take(sources))


def with_source_columns(rows: pa.Table, events: pa.Table, names: Iterable[str]) -> pa.Table:
    """The rows with these columns of their events, after the events' numbers."""
    numbers = whole(rows.column(ROW_NUMBER))
    for place, name in enumerate(names, start=rows.schema.names.index(ROW_NUMBER) + 1):
        column = _taken(whole(wide(events.column(name))), numbers)
        rows = rows.add_column(place, pa.field(name, column.type), column)
    return rows


def with_unmatched(rows: pa.Table, events: pa.Table, closing: pa.Array | None = None) -> pa.Table:
    """The rows, then one for each event that has none, in the order of the events. It has the event's number, the key
    and the event's columns; all others are NULL. Rows that only close events, at the numbers in `closing`, get no row.
    """
    has_row = np.zeros(len(events), np.bool_)
    has_row[rows.column(ROW_NUMBER).to_numpy()] = True
    if closing is not None:
        has_row[closing.to_numpy()] = True
    numbers = np.flatnonzero(~has_row)
    schema = nullable(rows.schema)
    own = events.take(pa.array(numbers))
    plain = as_plain(own, pa.schema([field for field in schema if field.name in own.column_names]))
    columns = {name: plain.column(name) for name in plain.column_names} | {ROW_NUMBER: pa.array(numbers)}
    added = [columns.get(field.name, pa.nulls(len(numbers), field.type)) for field in schema]
    return pa.concat_tables([pa.table(rows.columns, schema=schema), pa.table(added, schema=schema)])


def _taken(column: pa.Array, rows: pa.Array) -> pa.ChunkedArray:
    """These rows of the column, in parts that a column of texts can hold."""
    count = max(1, MOST_BYTES // widest(column))
    parts = [column.take(rows.slice(start, count)) for start in range(0, len(rows), count)]
    return pa.chunked_array(parts, column.type)
