"""Events in few bytes, for the way through Spark's shuffle and state, which copy whatever goes through them several
times.

Integers and times are distances from the least value of their column, in one, two or four bytes if these are enough,
texts that repeat are numbers of distinct ones, and a column that equals an earlier one, or is all NULL, takes no bytes.
A schema's metadata say how to get the events back. On Spark, logs of shards store events in this form.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import filled

_GIVEN, _PLACES, _LEAST = b"cepheid.given", b"cepheid.places", b"cepheid.least"
_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_SAMPLE = 1 << 10
"""The number of texts that show whether a column's texts repeat."""


def narrowed(events: pa.RecordBatch, parts: int) -> pa.RecordBatch:
    """The same events in fewer bytes. `widened` gives them back, also from rows of the result. The caller cuts the
    result into `parts`, and each part repeats all distinct texts.
    """
    seen: list[pa.Array | None] = []
    columns, fields, places = [], [], []
    for field, column in zip(events.schema, events.columns, strict=True):
        values = _comparable(column)
        place = next((number for number, other in enumerate(seen) if _are_same(values, other)), len(seen))
        places.append(str(place))
        if place == len(seen):
            narrow, least = _narrowed(column, parts)
            seen.append(values)
            columns.append(narrow)
            fields.append(pa.field(field.name, narrow.type, metadata=None if least is None else {_LEAST: str(least)}))
    metadata = {_GIVEN: events.schema.serialize().to_pybytes(), _PLACES: " ".join(places)}
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata))


def widened(events: pa.RecordBatch) -> pa.RecordBatch:
    """The events that `narrowed` was given. Others are returned as they are."""
    metadata = events.schema.metadata
    if metadata is None or _GIVEN not in metadata:
        return events
    schema = _schema(metadata[_GIVEN])
    stored = [*zip(events.columns, events.schema, strict=True)]
    places = zip(map(int, metadata[_PLACES].split()), schema, strict=True)
    columns = [_widened(stored[place][0], stored[place][1].metadata, given.type) for place, given in places]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@lru_cache(maxsize=64)
def _schema(stored: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(stored))


def _comparable(column: pa.Array) -> pa.Array | None:
    """The column in a form in which equal values have equal bytes. None if it has none, as doubles: -0.0 equals 0.0."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return column
    whole = _whole_numbers(column.type)
    return None if whole is None else column.view(whole)


def _are_same(one: pa.Array | None, other: pa.Array | None) -> bool:
    return one is not None and other is not None and one.type == other.type and one.equals(other)


def _narrowed(column: pa.Array, parts: int) -> tuple[pa.Array, int | None]:
    """The column, and its least value if it holds the distances from it."""
    if column.null_count == len(column):
        return pa.nulls(len(column)), None
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return (_encoded(column, parts) if _repeats(column, parts) else column), None
    if (whole := _whole_numbers(column.type)) is None:
        return column, None
    numbers = column.view(whole)
    least, most = (bound.as_py() for bound in pc.min_max(numbers).values())
    fitting = [one for one in _UNSIGNED if most - least <= np.iinfo(one).max]
    if not fitting or np.dtype(fitting[0]).itemsize * 8 >= whole.bit_width:
        return column, None
    above = np.empty(len(column), fitting[0])
    np.subtract(filled(numbers, least).to_numpy(), least, out=above, casting="unsafe")
    return _with_nulls_of(column, above), least


def _repeats(texts: pa.Array, parts: int) -> bool:
    """Whether numbers may save bytes. They do if at most half as many texts are distinct as a part has. Then a sample
    has on average at most so many distinct ones.
    """
    sample = texts.slice(0, _SAMPLE)
    most = max(1.0, len(texts) / (2 * parts))
    return bool(pc.count_distinct(sample, mode="all").as_py() <= most * (1 - exp(-len(sample) / most)))


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
        if column.type == given:
            return column
        if pa.types.is_null(column.type):
            return pa.nulls(len(column), given)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column.view(given)
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
