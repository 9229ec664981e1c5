"""Reads events from CSV and JSON lines. Their values have no types, so pyarrow's reader infers them for every host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from cepheid.cli.failure import FileProblem
from cepheid.cli.text_files.csv_faults import NULL_TEXTS, check_csv, check_rows, not_in, warn_of_texts
from cepheid.cli.text_files.text_format import TextFormat
from cepheid.cli.text_files.whole_numbers import exact_csv, exact_json
from cepheid.errors import EventError
from cepheid.hosts.in_process.event_times.instants import mixes_zones
from cepheid.hosts.in_process.event_times.texts import has_time_of_day, times_of_texts
from cepheid.hosts.sources.records import times_as_text

_BLOCK_BYTES = 32 << 20
"""The size of the first block of a text file, from which types are inferred. With pyarrow's default of 1 MB, the types
too often do not fit later values.
"""
_WITH_ZONE = r"[T ]\d.*(Z|[+-]\d\d(:?\d\d)?)\s*$"
"""What times of ISO 8601 with a zone look like."""


def read_csv(path: Path, given: TextFormat, times: Sequence[str], *, separator: str) -> pa.Table:
    """Warns of numbers with a decimal comma, which are text, and of numbers with texts such as NA among them.

    Raises:
        FileProblem: the file has another separator or encoding, or a row has too few or too many values.
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
        check_csv(path, events, given, separator)
    except UnicodeDecodeError as error:
        raise FileProblem(not_in(path, given.encoding, str(error))) from None
    except pa.ArrowInvalid:
        check_rows(path, reading, parsing, convert)
        raise
    warn_of_texts(path, events)

    def read_texts(names: list[str]) -> pa.Table:
        convert.include_columns, convert.column_types = names, dict.fromkeys(names, pa.string())
        return pyarrow.csv.read_csv(path, reading, parsing, convert)

    return exact_csv(events, read_texts)


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
        EventError: without one, a text is no time in ISO 8601, or only some have a zone.
    """
    for name in times:
        index = events.schema.get_field_index(name)
        # The type is NULL if a file has no events, or no times in them.
        if index >= 0 and events.schema.field(index).type in (pa.string(), pa.null()):
            texts, written = events.column(index), given.time_format
            found = _iso_times(texts, name, paths) if written is None else _formatted(texts, name, written, paths)
            events = events.set_column(index, name, found)
    return events


def _iso_times(texts: pa.ChunkedArray, name: str, paths: Sequence[Path]) -> pa.ChunkedArray:
    for kind in _ISO_KINDS:
        try:
            return pc.cast(texts, kind)
        except pa.ArrowInvalid:
            continue  # times with a zone need the second type
    raise EventError(f"column {name!r} of {_listed(paths)} {_iso_fault(texts)}")


_ISO_KINDS = pa.timestamp("ns"), pa.timestamp("ns", "UTC")


def _iso_fault(texts: pa.ChunkedArray) -> str:
    """What is wrong with texts that are not all times in ISO 8601, or not all with a zone or all without one."""
    has_zone = pc.match_substring_regex(texts, _WITH_ZONE)  # NULL for NULL
    alike = [pc.if_else(which, texts, None) for which in (has_zone, pc.invert(has_zone))]
    others = (_first_other(part, kind) for part, kind in zip(alike, reversed(_ISO_KINDS), strict=True))
    if wrong := [row for row in others if row is not None]:
        row = min(wrong)
        text = texts[row].as_py()
        advice = "say with --time-format how times are written, as in '%d.%m.%Y %H:%M'"
        if text in NULL_TEXTS:
            advice = f"if it stands for no value, leave the field empty, or in CSV give --null {text}"
        wrong_text = f"{text!r} in row {row + 1:,}, which is no time in ISO 8601 (up to nanoseconds)"
        return f"has {wrong_text}. Correct it, or {advice}"
    shown = [pc.index(pc.is_valid(part), value=True).as_py() for part in alike]
    return mixes_zones(*(f"{texts[row].as_py()!r} (row {row + 1:,})" for row in shown))


def _first_other(texts: pa.ChunkedArray, kind: pa.DataType) -> int | None:
    """The row of the first text that cannot be read as this type; None if all can."""
    start, stop = 0, len(texts)
    if _are(texts, kind):
        return None
    while stop - start > 1:  # the first one is in this range, and the rows before it are fine
        middle = (start + stop) // 2
        if _are(texts[start:middle], kind):
            start = middle
        else:
            stop = middle
    return start


def _are(texts: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _formatted(texts: pa.ChunkedArray, name: str, written: str, paths: Sequence[Path]) -> pa.ChunkedArray:
    texts = texts.cast(pa.string())
    found = times_of_texts(texts, written)
    wrong = pc.and_(pc.is_null(found), pc.is_valid(texts))
    if count := pc.sum(wrong).as_py():
        row = pc.index(wrong, value=True).as_py()
        shown = (
            f"{count:,} of {len(texts):,} texts in column {name!r} of {_listed(paths)} are not written as {written!r}"
        )
        raise EventError(f"{shown}, the first in row {row + 1}: {texts[row].as_py()!r}. Correct --time-format")
    return found if has_time_of_day(written) else found.cast(pa.date32())
