"""Rows for people and machines: JSON lines, flat columns with JSON text, a table on a terminal.

JSON has no times, decimals, bytes or NaN. They are written as text (ISO 8601, digits, hexadecimal, 'NaN'), so that
nothing is rounded. The keys of a JSON object can only be text, so a map is written as a list of [key, value].
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TextIO

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cepheid.events.batch import python_values

_BATCH = 10_000
_SHOWN_ROWS = 50
_NARROWEST, _LONGEST_TIME = 12, 36
"""The widths that a column gets, if it has such long words, so that it can be read: one of any type, and one that has
times, also in JSON.
"""
_BORDER = 3
"""The width of a column's border and padding."""


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
    """Prints the first rows as a table that fits the terminal, or as a list of columns for each row if the terminal is
    too narrow for that. Times are never cut off, and of other values only ids are.
    """
    columns = [_TableColumn.of(name, matches.column(name).slice(0, _SHOWN_ROWS)) for name in matches.column_names]
    room = console.width - 1
    if sum(column.most + _BORDER for column in columns) > room:
        short = [column.shortened() if column.name == "match_id" else column for column in columns]
        room -= sum(column.least + _BORDER for column in short)
        if room < 0:
            for number in range(min(matches.num_rows, _SHOWN_ROWS)):
                console.print(_as_record(columns, number))
        else:
            console.print(_as_table(short, _widths(short, room)))
    else:
        console.print(_as_table(columns, [column.most for column in columns]))
    if matches.num_rows > _SHOWN_ROWS:
        console.print(f"… and {matches.num_rows - _SHOWN_ROWS:,} more matches; --output writes all of them to a file")


class _TableColumn(NamedTuple):
    """A column as a terminal shows it."""

    name: str
    texts: list[str]
    least: int
    """The width below which it is hard to read."""

    @staticmethod
    def of(name: str, values: pa.ChunkedArray) -> _TableColumn:
        texts = ["" if value is None else _cell_text(value) or "" for value in python_values(values)]
        if pa.types.is_temporal(values.type):
            # Where the column is too narrow, a line ends between date and time.
            texts = [text.replace("T", " ", 1) for text in texts]
        words = max(len(word) for text in (name, *texts) for word in text.split() or [""])
        is_whole = pa.types.is_temporal(values.type) or pa.types.is_nested(values.type)  # which may have times
        return _TableColumn(name, texts, min(words, _LONGEST_TIME if is_whole else _NARROWEST))

    @property
    def most(self) -> int:
        """The width in which each value is one line."""
        return max(map(len, [self.name, *self.texts]))

    def shortened(self) -> _TableColumn:
        """The same column, with the beginnings of its texts."""
        short = [text if len(text) <= _NARROWEST else f"{text[: _NARROWEST - 1]}…" for text in self.texts]
        return self._replace(texts=short, least=_NARROWEST)


def _widths(columns: Sequence[_TableColumn], room: int) -> list[int]:
    """The width of each column, if there are so many letters of room above their least widths. Those that need few more
    get these first.
    """
    widths = [column.least for column in columns]
    order = sorted(range(len(columns)), key=lambda number: columns[number].most - widths[number])
    for done, number in enumerate(order):
        more = min(columns[number].most - widths[number], room // (len(columns) - done))
        widths[number] += more
        room -= more
    return widths


def _as_table(columns: Sequence[_TableColumn], widths: Sequence[int]) -> Table:
    table = Table()
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column.name, width=width, overflow="fold")
    for row in zip(*(column.texts for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _as_record(columns: Sequence[_TableColumn], number: int) -> Table:
    """One row of the matches: a line for each column."""
    record = Table(title=f"{number + 1}", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    record.add_column(no_wrap=True, overflow="ellipsis")
    record.add_column(overflow="fold")
    for column in columns:
        record.add_row(column.name, Text(column.texts[number]))
    return record


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
