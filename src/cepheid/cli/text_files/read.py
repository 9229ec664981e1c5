"""Reads events from CSV and JSON lines. Their values have no types, so pyarrow's reader infers them for every host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from cepheid.cli.failure import FileProblem
from cepheid.cli.text_files.text_format import TextFormat
from cepheid.cli.text_files.whole_numbers import exact_csv, exact_json
from cepheid.errors import warn
from cepheid.hosts.in_process.time_texts import has_time_of_day, times_of_texts
from cepheid.hosts.sources.records import times_as_text

_BLOCK_BYTES = 32 << 20
"""The size of the first block of a text file, from which types are inferred. With pyarrow's default of 1 MB, the types
too often do not fit later values.
"""
_DECIMAL_COMMA = r"^\s*[+-]?\d+(\.\d{3})*,\d+\s*$"
_SEPARATORS = ";\t|,"
"""What may separate values."""


def read_csv(path: Path, given: TextFormat, times: Sequence[str], *, separator: str) -> pa.Table:
    """Warns of numbers with a decimal comma, which are text.

    Raises:
        FileProblem: the file has another separator or encoding.
        pa.ArrowException, OSError: it cannot be read.
    """
    # As in databases, an empty field is NULL and a quoted one is not; "NA" and "null" are text unless asked for.
    reading = pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=given.encoding or "utf8")
    parsing = pyarrow.csv.ParseOptions(delimiter=separator)
    as_texts = dict.fromkeys(times, pa.string()) if given.time_format is not None else {}
    convert = pyarrow.csv.ConvertOptions(
        null_values=["", *given.null_texts],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=as_texts,
    )
    try:
        events = pyarrow.csv.read_csv(path, reading, parsing, convert)
        _check_csv(path, events, given, separator)
        _warn_of_commas(path, events)
    except UnicodeDecodeError as error:
        raise FileProblem(_not_in(path, given.encoding, str(error))) from None

    def read_texts(names: list[str]) -> pa.Table:
        convert.include_columns, convert.column_types = names, dict.fromkeys(names, pa.string())
        return pyarrow.csv.read_csv(path, reading, parsing, convert)

    return exact_csv(events, read_texts)


def _check_csv(path: Path, events: pa.Table, given: TextFormat, separator: str) -> None:
    """Raises FileProblem if the file seems to have another separator or encoding."""
    names = events.schema.names
    if len(names) == 1 and given.separator is None and (found := [one for one in _SEPARATORS if one in names[0]]):
        shown = "tab" if found[0] == "\t" else found[0]
        what = "tabs" if separator == "\t" else "commas"
        raise FileProblem(
            f"{path} has one column, {names[0]!r}, as {what} separate values. Give --separator '{shown}' if that does"
        )
    if binary := [field.name for field in events.schema if pa.types.is_binary(field.type)]:
        raise FileProblem(_not_in(path, given.encoding, f"column {binary[0]!r} has other bytes"))


def _warn_of_commas(path: Path, events: pa.Table) -> None:
    """Warns of columns in which all numbers have a decimal comma."""
    for field in events.schema:
        if not pa.types.is_string(field.type):
            continue
        texts = events.column(field.name).drop_null()
        if len(texts) and _has_comma(texts.slice(0, 1)) and _has_comma(texts):
            number = texts[0].as_py()
            warn(f"column {field.name!r} of {path} is text, as {number!r} has a decimal comma: write it with a point")


def _has_comma(texts: pa.ChunkedArray) -> bool:
    """Whether all texts are numbers with a decimal comma."""
    return bool(pc.all(pc.match_substring_regex(texts, _DECIMAL_COMMA)).as_py())


def _not_in(path: Path, encoding: str | None, reason: str) -> str:
    return f"{path} is not in {encoding or 'UTF-8'} ({reason}). Give its --encoding, for example latin-1"


def read_json(path: Path, given: TextFormat, times: Sequence[str]) -> pa.Table:
    """
    Raises:
        pa.ArrowException, OSError: the file cannot be read.
    """
    blocks = pyarrow.json.ReadOptions(block_size=_BLOCK_BYTES)

    def read_as(schema: pa.Schema) -> pa.Table:
        return pyarrow.json.read_json(path, blocks, pyarrow.json.ParseOptions(explicit_schema=schema))

    events = pyarrow.json.read_json(path, blocks)
    texts = pa.schema([field.with_type(times_as_text(field.type)) for field in events.schema])
    if not texts.equals(events.schema):
        # JSON has no times: pyarrow parses ISO 8601 text as times without a zone and drops the zone. So such columns
        # are read as text.
        events = read_as(texts)
    events = exact_json(path, events, read_as)
    for name in times if given.time_format is not None else ():
        place = events.schema.get_field_index(name)
        if place >= 0 and pa.types.is_integer(events.schema.field(place).type):  # as in 20260131
            events = events.set_column(place, name, events.column(place).cast(pa.string()))
    return events


def with_times(events: pa.Table, times: Sequence[str], given: TextFormat, paths: Sequence[Path]) -> pa.Table:
    """The events with times in place of text in these columns. A format without a time of day gives dates.

    Raises:
        FileProblem: a text is no time in the given format.
    """
    for name in times:
        index = events.schema.get_field_index(name)
        # The type is NULL if a file has no events, or no times in them.
        if index >= 0 and events.schema.field(index).type in (pa.string(), pa.null()):
            texts, written = events.column(index), given.time_format
            found = _iso_times(texts) if written is None else _formatted(texts, name, written, paths)
            events = events.set_column(index, name, found)
    return events


def _iso_times(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            return pc.cast(texts, kind)
        except pa.ArrowInvalid:
            continue  # times with a zone need the second type; other text remains, and is reported later
    return texts


def _formatted(texts: pa.ChunkedArray, name: str, written: str, paths: Sequence[Path]) -> pa.ChunkedArray:
    texts = texts.cast(pa.string())
    found = times_of_texts(texts, written)
    wrong = pc.and_(pc.is_null(found), pc.is_valid(texts))
    if count := pc.sum(wrong).as_py():
        files = ", ".join(map(str, paths))
        row = pc.index(wrong, value=True).as_py()
        shown = f"{count:,} of {len(texts):,} texts in column {name!r} of {files} are not written as {written!r}"
        raise FileProblem(f"{shown}, the first in row {row + 1}: {texts[row].as_py()!r}. Correct --time-format")
    return found if has_time_of_day(written) else found.cast(pa.date32())
