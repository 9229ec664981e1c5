"""Arrow values as JSON, for databases and for those who read the outbox.

Times are ISO text in UTC, decimals and other types that JSON does not have are text, binary values are hexadecimal
digits, and a double that is no number is NULL.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FEW = 100
"""So many values are written by Python in the time of one query, which takes a millisecond for a single value, too."""


def json_texts(values: pa.Array) -> pa.Array:
    """Each value as JSON text; NULL for NULL."""
    if len(values) <= _FEW and _is_pythons(values.type):
        return pa.array(map(_json_text, _python_values(values)), pa.string())
    rows = pa.table({"value": _plain(values)})
    with _database().cursor() as cursor:
        found = cursor.from_arrow(rows).project("CAST(to_json(value) AS VARCHAR) AS text").to_arrow_table()
    texts = found.column("text").combine_chunks().cast(pa.string())
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """An empty database: making one takes longer than most texts."""
    return duckdb.connect()


def iso_texts(times: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Times as ISO text: 2024-03-04T10:00:00.000000Z with a zone, in UTC, and without the Z if they have none."""
    zone = "Z" if times.type.tz else ""
    times = times.cast(pa.timestamp("us", "UTC" if zone else None)).cast(pa.timestamp("us"))
    texts = times.cast(pa.string())  # in a tenth of the time that `strftime` takes
    if pc.any(pc.starts_with(texts, "<")).as_py():  # not for years after 32767: "<value out of range: …>"
        return pc.strftime(times, f"%Y-%m-%dT%H:%M:%S{zone}")
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), zone, "")


def _plain(values: pa.Array) -> pa.Array:
    """The values with types that JSON has."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _plain(values.dictionary_decode())
    if pa.types.is_struct(type_):
        fields = [_plain(values.field(i)) for i in range(type_.num_fields)]
        return pa.StructArray.from_arrays(fields, [field.name for field in type_], mask=values.is_null())
    if pa.types.is_map(type_):
        keys, items = _plain(values.keys).cast(pa.string()), _plain(values.items)
        return pa.MapArray.from_arrays(_offsets(values), keys, items, mask=values.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.ListArray.from_arrays(_offsets(values), _plain(values.values), mask=values.is_null())
    if pa.types.is_timestamp(type_):
        return iso_texts(values)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    if pa.types.is_floating(type_):
        return pc.if_else(pc.is_finite(values), values, pa.scalar(None, type_))
    return values.cast(pa.string()) if pa.types.is_decimal(type_) else values


@lru_cache
def _is_pythons(type_: pa.DataType) -> bool:
    """Whether Python writes plain values of this type as DuckDB does. Only the exponents of doubles may look different,
    as in 1e+22 and 1e22.
    """
    if pa.types.is_struct(type_) or pa.types.is_map(type_) or pa.types.is_list(type_):
        return type_.num_fields > 0 and all(_is_pythons(type_.field(i).type) for i in range(type_.num_fields))
    plain = pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_float64
    become_texts = pa.types.is_timestamp, pa.types.is_decimal, pa.types.is_binary
    return any(test(type_) for test in (*plain, *become_texts))


def _python_values(values: pa.Array) -> list[Any]:
    """The plain values as Python writes them as JSON: maps are dicts."""
    type_ = values.type
    found: list[Any]
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        fields = [_python_values(values.field(i)) for i in range(type_.num_fields)]
        found = [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
    elif pa.types.is_map(type_):
        keys = _plain(values.keys).cast(pa.string()).to_pylist()
        entries = zip(keys, _python_values(values.items), strict=True)
        found = [dict(part) for part in _parts([*entries], values)]
    elif pa.types.is_list(type_):
        found = _parts(_python_values(values.values), values)
    else:
        found = _plain(values).to_pylist()
    return [value if valid else None for value, valid in zip(found, values.is_valid().to_pylist(), strict=True)]


def _parts(items: list[Any], values: pa.Array) -> list[list[Any]]:
    """The items of each list."""
    return [items[start:end] for start, end in pairwise(values.offsets.to_pylist())]


def _json_text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _offsets(values: pa.Array) -> pa.Array:
    """Where the items of lists are, as an array of its own, whatever the array is a part of."""
    return pa.array(np.asarray(values.offsets), pa.int32())
