"""Events from records of text: lines of JSON or CSV, messages. A record that cannot be read as an event is reported: it
does not become an event of NULLs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from cepheid.errors import EventError

BadRows: TypeAlias = Literal["error", "skip"]
"""What happens with records that cannot be read as events: an error, or they are left out and counted."""

Parse: TypeAlias = Callable[[Sequence[bytes]], pa.Table]
"""Makes an event of each record, or raises pa.ArrowException."""

_NULL_AFTER_OBJECT = re.compile(rb"\}\s*null")
_AT_ONCE = 1 << 16
_SHOWN, _WIDTH = 3, 100


class _Bad(NamedTuple):
    number: int
    reason: str


def read_records(
    records: Sequence[bytes], parse: Parse, place: Callable[[int], str], bad_rows: BadRows
) -> tuple[pa.Table, int]:
    """The events in the records, and the number of records that were left out. `place` says where a record is, by its
    index.

    Raises:
        EventError: records cannot be read as events, and `bad_rows` is "error".
    """
    tables, bad = [parse([])], []
    for start in range(0, len(records), _AT_ONCE):
        events, unreadable = _read(records[start : start + _AT_ONCE], start, parse)
        tables += events
        bad += unreadable
    if bad and bad_rows == "error":
        shown = [f"{place(number)} cannot be read as an event: {reason}" for number, reason in bad[:_SHOWN]]
        more = [f"{len(bad) - _SHOWN} more records cannot be read either"] if len(bad) > _SHOWN else []
        advice = "Correct them where they are written, or leave them out with bad_rows='skip', which counts them"
        raise EventError("\n".join([*shown, *more, advice]))
    return pa.concat_tables(tables), len(bad)


def _read(records: Sequence[bytes], start: int, parse: Parse) -> tuple[list[pa.Table], list[_Bad]]:
    """Parses all records at once; if that fails, each half, down to the records that are bad."""
    try:
        events = parse(records)
        reason = "it has not just one event"
    except pa.ArrowException as error:
        events, reason = None, _reason(error)
    if events is not None and events.num_rows == len(records):
        return [events], []
    if len(records) == 1:
        text = records[0].decode("utf-8", "replace").strip()
        shown = f"{text[:_WIDTH]}…" if len(text) > _WIDTH else text
        return [], [_Bad(start, f"{shown!r}: {reason}" if text else "it has no value")]
    middle = len(records) // 2
    (first, bad_first), (second, bad_second) = (
        _read(records[:middle], start, parse),
        _read(records[middle:], start + middle, parse),
    )
    return first + second, bad_first + bad_second


def _reason(error: pa.ArrowException) -> str:
    """The first sentence, without the row's number within what was parsed at once."""
    return re.sub(r" in row \d+|Row #\d+: ", "", " ".join(str(error).split())).partition(". ")[0]


def json_parser(columns: pa.Schema) -> Parse:
    """Parses JSON objects with these columns. One that an object lacks is NULL; others are ignored."""
    texts = _with_times_as_text(columns)
    parsing = pyarrow.json.ParseOptions(
        explicit_schema=texts, newlines_in_values=True, unexpected_field_behavior="ignore"
    )

    def parse(records: Sequence[bytes]) -> pa.Table:
        if not records:
            return columns.empty_table()
        text = b"\n".join(records)
        if not all(record.lstrip()[:1] == b"{" for record in records) or not _are_objects(text, records):
            raise pa.ArrowInvalid("it is not one JSON object")
        if not _is_utf8(text):
            raise pa.ArrowInvalid("it is not UTF-8")
        reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        return pyarrow.json.read_json(pa.BufferReader(text), reading, parsing).select(texts.names).cast(columns)

    return parse


def _are_objects(text: bytes, records: Sequence[bytes]) -> bool:
    """Whether no record has a `null` after its object, where pyarrow crashes. This is rarely not seen at a glance."""
    if not _NULL_AFTER_OBJECT.search(text):
        return True
    try:
        return all(isinstance(json.loads(record), dict) for record in records if _NULL_AFTER_OBJECT.search(record))
    except ValueError:
        return False


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def csv_parser(columns: pa.Schema, header: Sequence[str], null_texts: Sequence[str] = ()) -> Parse:
    """Parses rows of CSV, whose columns have the names of `header`. An empty field is NULL, a quoted one is not."""
    texts = _with_times_as_text(columns)
    converting = pyarrow.csv.ConvertOptions(
        column_types=texts,
        include_columns=texts.names,
        null_values=["", *null_texts],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )

    def parse(records: Sequence[bytes]) -> pa.Table:
        if not records:
            return columns.empty_table()
        text = b"".join(records)
        reading = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=[*header])
        parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
        return pyarrow.csv.read_csv(pa.BufferReader(text), reading, parsing, converting).cast(columns)

    return parse


def _with_times_as_text(columns: pa.Schema) -> pa.Schema:
    """Pyarrow's readers of text drop a time's zone, or read times without one as UTC; its casts of text refuse both."""
    return pa.schema([field.with_type(times_as_text(field.type)).with_nullable(nullable=True) for field in columns])


def times_as_text(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of times."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(times_as_text(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(times_as_text(kind.value_type))
    return pa.string() if pa.types.is_temporal(kind) else kind
