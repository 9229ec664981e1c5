"""Key columns, made again from the keys' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SnapshotError

_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_NUMBERS = (
    *(pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_time),
    *(pa.types.is_timestamp, pa.types.is_duration, pa.types.is_floating, pa.types.is_decimal128),
)


def key_columns(names: Sequence[bytes], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns, which have these types, of the keys with these names: `identity.key_names` of them are the names.

    Raises:
        SnapshotError: a type is nested, or has no fixed width and is no text.
    """
    head = np.dtype([field for i, type_ in enumerate(types) for field in _fields(i, type_)])
    fixed = np.frombuffer(b"".join(name[: head.itemsize] for name in names), head)
    columns, begins = list[pa.Array](), np.full(len(names), head.itemsize)
    for i, type_ in enumerate(types):
        there, values = fixed[f"there{i}"], fixed[f"value{i}"]
        if _is_one(type_, _TEXTS):
            ends = begins + values
            texts = [name[begin:end] for name, begin, end in zip(names, begins.tolist(), ends.tolist(), strict=True)]
            begins, column = ends, pa.array(texts, pa.binary()).cast(type_)
        else:
            column = _typed(values, type_)
        columns.append(pc.if_else(pa.array(there), column, pa.scalar(None, type_)))
    return columns


def _fields(number: int, type_: pa.DataType) -> list[tuple[str, Any]]:
    """What the name of a key begins with for a column: whether there is a value, and the value or its length."""
    if not _is_one(type_, (*_TEXTS, *_NUMBERS)):
        raise SnapshotError(f"a key has the type {type_}, and no events of it are stored that say which key it is")
    value = "V16" if pa.types.is_decimal128(type_) else np.float64 if pa.types.is_floating(type_) else np.int64
    return [(f"there{number}", np.bool_), (f"value{number}", value)]


def _typed(values: np.ndarray[Any, Any], type_: pa.DataType) -> pa.Array:
    """The column with these values, as `identity.canonical_bytes` has them."""
    values = np.ascontiguousarray(values)
    if pa.types.is_decimal128(type_):
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)])
    if pa.types.is_date(type_):
        return pa.array(values.astype(np.int32)).cast(pa.date32()).cast(type_)
    return pa.array(values).cast(_in_microseconds(type_)).cast(type_)


def _in_microseconds(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_):
        return pa.duration("us")
    return pa.time64("us") if pa.types.is_time(type_) else type_


def _is_one(type_: pa.DataType, tests: Sequence[Any]) -> bool:
    return any(test(type_) for test in tests)
