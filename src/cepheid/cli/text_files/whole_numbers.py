"""Reads whole numbers beyond 64 bits from text files exactly.

pyarrow infers DOUBLE for them, so different ids may become equal. Columns in which this is possible are read a second
time: as DECIMAL(38, 0), which every host has, or in CSV as text if they have more digits.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

EXACT = pa.decimal128(38, 0)

_BEYOND = 2.0**63
_LONG_JSON_NUMBER = re.compile(rb"[:\[,\s-](\d{19,})\s*[,}\]]")


def exact_csv(events: pa.Table, read_texts: Callable[[list[str]], pa.Table]) -> pa.Table:
    """The table, with exact columns of whole numbers. `read_texts` reads columns as text, which is then converted."""
    names = events.schema.names
    doubtful = [name for name in names if names.count(name) == 1 and _is_beyond(events.column(name))]
    if not doubtful:
        return events
    texts = read_texts(doubtful)
    for name in doubtful:
        whole = _as_whole_numbers(texts.column(name))
        if whole is not None:
            events = events.set_column(names.index(name), name, whole)
    return events


def _as_whole_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    trimmed = pc.utf8_trim_whitespace(texts)
    if not pc.all(pc.match_substring_regex(trimmed, r"^[+-]?\d+$")).as_py():
        return None
    try:
        return trimmed.cast(EXACT)
    except pa.ArrowInvalid:
        return texts


def exact_json(path: Path, events: pa.Table, read_as: Callable[[pa.Schema], pa.Table]) -> pa.Table:
    """The table, with exact whole numbers also in structs and lists. `read_as` reads the file with other types.

    Raises:
        pa.ArrowInvalid: a number has too many digits.
    """
    schema = pa.schema([field.with_type(_exact_type(events.column(i))) for i, field in enumerate(events.schema)])
    if schema.equals(events.schema):
        return events
    digits = _most_digits(path)
    if digits > EXACT.precision:
        raise pa.ArrowInvalid(f"a whole number has {digits} digits, more than {EXACT.precision}: write it as text")
    for field, exact in zip(events.schema, schema, strict=True):
        if digits and exact != field:
            try:
                events = read_as(pa.schema([exact if each.name == field.name else each for each in events.schema]))
            except pa.ArrowInvalid:
                continue  # the column also has fractions, so all of it is DOUBLE
    return events


def _exact_type(values: pa.ChunkedArray | pa.Array) -> pa.DataType:
    """The type of the values, with EXACT in place of DOUBLE where a value is beyond 64 bits."""
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [pc.struct_field(values, [i]) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(_exact_type(part)) for field, part in zip(kind, parts, strict=True)])
    if pa.types.is_list(kind):
        return pa.list_(_exact_type(pc.list_flatten(values)))
    return EXACT if _is_beyond(values) else kind


def _is_beyond(values: pa.ChunkedArray | pa.Array) -> bool:
    if not pa.types.is_float64(values.type):
        return False
    largest = pc.max(pc.abs(values)).as_py()
    return largest is not None and largest >= _BEYOND


def _most_digits(path: Path) -> int:
    """The largest number of digits of a whole number in the file; 0 if all have fewer than 19. 1e30 does not count."""
    with io.BufferedReader(pa.input_stream(str(path))) as lines:
        return max((len(digits) for line in lines for digits in _LONG_JSON_NUMBER.findall(line)), default=0)
