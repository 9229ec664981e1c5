"""The identity of events: a canonical byte form of their columns, the same on every host, and digests of it.

An event is identified by its time and sequence. Without a sequence it is identified by its time, its chosen columns and
an ordinal among equal events. Digests are 128-bit BLAKE2b. (Ids of rows have hashes of their own: `output.ids`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DIGEST_SIZE = 16
_AT_ONCE = 1 << 21
"""The bytes of rows that are hashed at once."""


class CanonicalColumns(NamedTuple):
    """Columns of rows in canonical form."""

    flags: list[npt.NDArray[np.uint8]]
    """(length,) each: whether a value is there, as 0 or 1."""
    fixed: list[npt.NDArray[Any]]
    """(length,) each, of eight or sixteen bytes: the values, or the lengths of those without a fixed width."""
    variable: list[pa.Array]
    """The values without a fixed width, large_binary."""


def canonical_columns(columns: Sequence[pa.Array], length: int) -> CanonicalColumns:
    """What `canonical_bytes` writes of each row: the flag and the value of each column, then the values without a fixed
    width.
    """
    found = CanonicalColumns([], [], [])
    all_there = np.ones(length, np.uint8)
    for column in chain.from_iterable(map(_flat, columns)):
        valid = column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8) if column.null_count else all_there
        found.flags.append(valid)
        if (numbers := _fixed_width(column)) is not None:
            found.fixed.append(numbers)
        else:
            texts = _as_binary(column)
            found.fixed.append(pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
            found.variable.append(texts)
    return found


def canonical_bytes(columns: Sequence[pa.Array], length: int) -> pa.Array:
    """One binary value per row; two values are equal exactly if the rows are equal. (length,) large_binary.

    A value begins with a fixed-width part: eight bytes per number or time, sixteen per decimal, and the length of each
    value without a fixed width. Doubles have one NaN and one zero. Then follow the values without a fixed width: texts,
    and lists as the bytes of their elements. A struct is written as its fields.
    """
    flags, fixed, variable = canonical_columns(columns, length)
    parts = [*chain.from_iterable(zip(flags, fixed, strict=True))]
    head = np.empty(length, [(f"f{i}", values.dtype) for i, values in enumerate(parts)])
    for i, values in enumerate(parts):
        head[f"f{i}"] = values
    return joined(raw_bytes(head), *variable) if variable else raw_bytes(head)


def canonical_parts(
    columns: Sequence[pa.Array], length: int, rows: npt.NDArray[np.int64] | None = None
) -> Iterator[pa.Array]:
    """As `canonical_bytes`, for all rows or for `rows`, part after part (`in_parts`). So a hash is of bytes that have
    just been written, and no large copy is made of them.
    """
    if rows is None:
        for some, count in in_parts(columns, length):
            yield canonical_bytes(some, count)
        return
    count = _rows_at_once(columns, length)
    for start in range(0, len(rows), count):
        chosen = pa.array(rows[start : start + count])
        yield canonical_bytes([column.take(chosen) for column in columns], len(chosen))


def in_parts(columns: Sequence[pa.Array], length: int) -> Iterator[tuple[list[pa.Array], int]]:
    """The columns of some rows after the other, and how many rows these are: so few that what is made of them stays in
    the processor's cache.
    """
    count = _rows_at_once(columns, length)
    for start in range(0, length, count):
        yield [column.slice(start, count) for column in columns], min(count, length - start)


def _rows_at_once(columns: Sequence[pa.Array], length: int) -> int:
    width = sum(int(column.nbytes) for column in columns) // max(1, length)
    return max(1, _AT_ONCE // max(1, width))


def key_names(columns: Sequence[pa.Array], length: int) -> list[bytes]:
    """The canonical bytes of each row's key; empty for all rows if there is no key."""
    names: list[bytes] = canonical_bytes(columns, length).to_pylist() if columns else [b""] * length
    return names


def raw_bytes(values: npt.NDArray[Any]) -> pa.Array:
    """The bytes of each value, as NumPy stores them; (length,) large_binary."""
    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def joined(*columns: pa.Array) -> pa.Array:
    """The values of each row, concatenated. The columns and the result are (length,) large_binary."""
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()))


def digests(rows: pa.Array, ends: Sequence[int] | npt.NDArray[np.int64], purpose: bytes) -> list[bytes]:
    """A digest of each group of consecutive rows; group i ends before row ends[i].

    Different values of `purpose` (at most 16 bytes) give different digests of the same rows.
    """
    data, offsets = _buffers(rows)
    bounds = offsets[np.concatenate([[0], np.asarray(ends, dtype=np.int64)])].tolist()
    content = bytes(data)  # slicing bytes and copying one hash are faster than views and new hashes
    copy = blake2b(digest_size=DIGEST_SIZE, person=purpose).copy
    found = []
    for start, end in pairwise(bounds):
        digest = copy()
        digest.update(content[start:end])
        found.append(digest.digest())
    return found


def values_and_bounds(rows: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of large_binary rows, one after the other, and the positions between rows: one more than there are
    rows.
    """
    data, offsets = _buffers(rows)
    return np.frombuffer(data, np.uint8), offsets


def _buffers(rows: pa.Array) -> tuple[memoryview, npt.NDArray[np.int64]]:
    _, offsets, data = rows.buffers()
    view = memoryview(data) if data is not None else memoryview(b"")
    return view, np.frombuffer(offsets, dtype=np.int64)[rows.offset : rows.offset + len(rows) + 1]


def _fixed_width(column: pa.Array) -> npt.NDArray[Any] | None:
    """(length,) values of 8 or 16 bytes, zero for NULL; None if the type has no fixed width."""
    type_ = column.type
    if pa.types.is_floating(type_):
        values: npt.NDArray[np.float64] = filled(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        doubles = values + 0.0  # -0.0 becomes 0.0
        doubles[np.isnan(doubles)] = np.nan
        return doubles
    if pa.types.is_decimal128(type_):
        whole = filled(column, pa.scalar(0, type_))
        words = np.frombuffer(whole.buffers()[1], dtype="V16")
        return words[whole.offset : whole.offset + len(whole)]
    return as_integers(column)


def filled(column: pa.Array, fill_value: Any) -> pa.Array:
    """The column with this value in place of NULL. Arrow takes time even where there is none."""
    return column.fill_null(fill_value) if column.null_count else column


def as_integers(column: pa.Array) -> npt.NDArray[np.int64] | None:
    """Integers, booleans, dates (days) and times (microseconds) as 64-bit integers, NULL as 0; None for other types."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
    elif pa.types.is_duration(type_):
        column = column.cast(pa.duration("us")).cast(pa.int64())
    elif pa.types.is_date(type_):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_time(type_):
        column = column.cast(pa.time64("us")).cast(pa.int64())
    elif not (pa.types.is_integer(type_) or pa.types.is_boolean(type_)):
        return None
    whole = filled(column, fill_value=False if pa.types.is_boolean(column.type) else 0)
    integers: npt.NDArray[np.int64] = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return integers


def _flat(column: pa.Array) -> Iterator[pa.Array]:
    """The column itself. For a struct: whether each value is valid, then its fields, flattened in the same way. For
    nanoseconds: the whole microseconds, and the rest.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _flat(part)
    elif is_in_nanoseconds(column.type):
        nanoseconds, missing = column.cast(pa.int64()).fill_null(0).to_numpy(), column.is_null()
        for part in np.divmod(nanoseconds, 1000):
            yield pa.array(part, mask=missing.to_numpy(zero_copy_only=False))
    else:
        yield column


def is_in_nanoseconds(type_: pa.DataType) -> bool:
    """Whether values of the type are times or lengths of time in nanoseconds."""
    tests = pa.types.is_timestamp, pa.types.is_duration, pa.types.is_time
    return any(test(type_) for test in tests) and type_.unit == "ns"


def _as_binary(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_map(type_):
        entry = pa.struct([type_.key_field, type_.item_field])
        column = column.cast(pa.list_(entry))
        type_ = column.type
    if _is_list(type_):
        return _list_bytes(column)
    if pa.types.is_interval(type_) or pa.types.is_decimal256(type_):
        column = pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    return filled(column.cast(pa.large_binary()), b"")


def _is_list(type_: pa.DataType) -> bool:
    tests = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    views = pa.types.is_list_view, pa.types.is_large_list_view
    return any(test(type_) for test in (*tests, *views))


def _list_bytes(column: pa.Array) -> pa.Array:
    """The bytes of each list's elements, concatenated; empty for NULL."""
    values = pc.list_flatten(column)
    data, offsets = _buffers(canonical_bytes([values], len(values)))
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_fixed_size_list(column.type):
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    ends = offsets[np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])]
    return pa.Array.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(data)]
    )
