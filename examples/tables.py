"""Small tables for the pages of docs/examples: events from tuples, and rows as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

DAY = "2024-03-04"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def table(columns: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    """Events with these columns. Times are given as texts like 10:02:31, and are on one day, in UTC."""
    values = zip(*rows, strict=True)
    return pa.table([_array(given, field.type) for given, field in zip(values, columns, strict=True)], schema=columns)


def show(rows: pa.Table) -> None:
    """Prints rows, with times as in 10:02:31. SQLite has times as texts, and other databases as times."""
    lines = [rows.schema.names, *([_text(value) for value in row.values()] for row in rows.to_pylist())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _array(values: tuple[Any, ...], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pa.array([datetime.fromisoformat(f"{DAY}T{value}Z") for value in values], type_)
    return pa.array(values, type_)


def _text(value: Any) -> str:
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%H:%M:%S}"
    if isinstance(value, float | Decimal):
        return f"{value:g}"
    return "-" if value is None else str(value)
