"""Events in few bytes for Spark's shuffle, which copies and compresses whatever goes through it several times.

Integers and times are distances from the least value of their column, in as few bits as these need, and texts that
repeat are numbers of distinct ones. A schema's metadata say how to get the events back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import filled

_GIVEN, _LEAST = b"given", b"least"
_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_SAMPLE = 1 << 10
"""A column of texts is encoded only if at most half of so many of its first values are distinct."""


def narrowed(events: pa.RecordBatch, parts: int) -> pa.RecordBatch:
    """The same events in fewer bytes. `widened` gives them back, also from rows of the result. The caller cuts the
    result into `parts`, and each part repeats all distinct texts.
    """
    columns, fields = [], []
    for field, column in zip(events.schema, events.columns, strict=True):
        narrow, least = _narrowed(column, parts)
        columns.append(narrow)
        fields.append(pa.field(field.name, narrow.type, metadata=None if least is None else {_LEAST: str(least)}))
    given = {_GIVEN: events.schema.serialize().to_pybytes()}
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, given))


def widened(events: pa.RecordBatch) -> pa.RecordBatch:
    """The events that `narrowed` was given."""
    schema = pa.ipc.read_schema(pa.py_buffer(events.schema.metadata[_GIVEN]))
    narrow = zip(events.schema, events.columns, schema, strict=True)
    columns = [_widened(column, field.metadata, given.type) for field, column, given in narrow]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _narrowed(column: pa.Array, parts: int) -> tuple[pa.Array, int | None]:
    """The column, and its least value if it holds the distances from it."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        sample = column.slice(0, _SAMPLE)
        repeats = 2 * pc.count_distinct(sample, mode="all").as_py() <= len(sample)
        return (_encoded(column, parts) if repeats else column), None
    if (whole := _whole_numbers(column.type)) is None or column.null_count == len(column):
        return column, None
    numbers = column.view(whole)
    least, most = (bound.as_py() for bound in pc.min_max(numbers).values())
    fitting = [one for one in _UNSIGNED if most - least <= np.iinfo(one).max]
    if not fitting or np.dtype(fitting[0]).itemsize * 8 >= whole.bit_width:
        return column, None
    above = np.empty(len(column), fitting[0])
    np.subtract(filled(numbers, least).to_numpy(), least, out=above, casting="unsafe")
    return _with_nulls_of(column, above), least


def _encoded(texts: pa.Array, parts: int) -> pa.Array:
    """The texts as numbers of the distinct ones, if those of all parts have at most half of the bytes."""
    encoded = texts.dictionary_encode()
    if 2 * parts * encoded.dictionary.nbytes > texts.nbytes:
        return texts
    most = max(0, len(encoded.dictionary) - 1)
    numbers = encoded.indices.cast(pa.from_numpy_dtype(np.min_scalar_type(most)))
    return pa.DictionaryArray.from_arrays(numbers, encoded.dictionary)


def _widened(column: pa.Array, metadata: dict[bytes, bytes] | None, given: pa.DataType) -> pa.Array:
    if metadata is None or _LEAST not in metadata:
        return column if column.type == given else column.dictionary_decode()
    whole = _whole_numbers(given)
    assert whole is not None, given
    numbers = np.add(filled(column, 0).to_numpy(), int(metadata[_LEAST]), dtype=whole.to_pandas_dtype())
    return _with_nulls_of(column, numbers).view(given)


def _whole_numbers(type_: pa.DataType) -> pa.DataType | None:
    """The type of the whole numbers that such values are in memory; None for other values."""
    if pa.types.is_interval(type_) or not (pa.types.is_integer(type_) or pa.types.is_temporal(type_)):
        return None
    return type_ if pa.types.is_integer(type_) else (pa.int32() if type_.bit_width == 32 else pa.int64())


def _with_nulls_of(column: pa.Array, values: npt.NDArray[Any]) -> pa.Array:
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(values, mask=nulls)
