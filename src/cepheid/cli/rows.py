"""Rows for people and machines: JSON lines, flat columns with JSON text, a table on a terminal.

JSON has no times, decimals, bytes or NaN. They are written as text (ISO 8601, digits, hexadecimal, 'NaN'), so that
nothing is rounded. The keys of a JSON object can only be text, so a map is written as a list of [key, value].
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TextIO

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from cepheid.events.batch import python_values

_BATCH = 10_000
_SHOWN_ROWS = 50


def plain_rows(matches: pa.Table, in_json: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """One dict per row, with values that JSON can represent. Columns `in_json` may have nested values as JSON text,
    which become values.
    """
    for batch in matches.to_batches(max_chunksize=_BATCH):
        for row in zip(*map(python_values, batch.columns), strict=True):
            plain = _plain(dict(zip(batch.schema.names, row, strict=True)))
            yield plain | {name: _from_json(plain[name]) for name in in_json}


def write_json_lines(matches: pa.Table, file: TextIO, in_json: Collection[str] = ()) -> None:
    """Writes one JSON object per row, each on a line. `in_json` is as in `plain_rows`."""
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in plain_rows(matches, in_json))


def flat_table(matches: pa.Table) -> pa.Table:
    """The same rows with nested, binary and duration columns as text, for formats without such types."""
    for index, field in enumerate(matches.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            with suppress(pa.ArrowInvalid):  # remains in nanoseconds if microseconds are not enough
                matches = matches.set_column(
                    index, field.name, matches.column(index).cast(pa.timestamp("us", field.type.tz))
                )
        elif (
            pa.types.is_nested(field.type)
            or pa.types.is_duration(field.type)
            or pa.types.is_binary(field.type)
            or pa.types.is_fixed_size_binary(field.type)
        ):
            texts = [_cell_text(value) for value in python_values(matches.column(index))]
            matches = matches.set_column(index, field.name, pa.array(texts, pa.string()))
    return matches


def print_table(matches: pa.Table, console: Console) -> None:
    """Prints the first rows as a table that fits the terminal."""
    table = Table(*matches.column_names)
    for row in plain_rows(matches.slice(0, _SHOWN_ROWS)):
        table.add_row(*("" if value is None else _cell_text(value) for value in row.values()))
    console.print(table)
    if matches.num_rows > _SHOWN_ROWS:
        console.print(f"… and {matches.num_rows - _SHOWN_ROWS:,} more matches; --output writes all of them to a file")


def _cell_text(value: Any) -> str | None:
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _from_json(value: Any) -> Any:
    """The list or object that a text has, or the value itself."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Decimal() | timedelta():
            return str(value)
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value
