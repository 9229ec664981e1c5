"""The order of rows by Arrow columns: each column as numbers that sort as its values do, then a radix sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import filled
from cepheid.kernel.order import Codes, Rows, order_by

_SIGN = np.uint64(1 << 63)
_SHORT_WORD = 1 << 32


def order_of_columns(columns: Sequence[pa.Array], length: int) -> Rows:
    """(length,) the numbers of the rows in the order of the columns, which have no structure (`events.order.leaves`):
    ascending, NaN after all other numbers, and NULL last. Rows that agree in all columns stay as they come.
    """
    return order_by([code for column in columns for code in _codes(column)], length)


def _codes(leaf: pa.Array) -> Iterator[Codes]:
    """Columns of numbers that sort as the values do."""
    if leaf.null_count:
        yield leaf.is_null().to_numpy(zero_copy_only=False).astype(np.uint32)
    numbers = _numbers(leaf)
    yield _places(leaf) if numbers is None else above_least(numbers)


def _numbers(leaf: pa.Array) -> npt.NDArray[Any] | None:
    """Integers of 32 or 64 bits in the order of the values, and any for NULL; None if the type has values of another
    width.
    """
    type_ = leaf.type
    if pa.types.is_float64(type_):
        bits = filled(leaf, 0.0).to_numpy().view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    if not (pa.types.is_integer(type_) or pa.types.is_temporal(type_)) or pa.types.is_interval(type_):
        return None
    width = type_.bit_width
    if pa.types.is_temporal(type_):
        leaf = leaf.view(pa.int32() if width == 32 else pa.int64())
    found: npt.NDArray[Any] = filled(leaf, 0).to_numpy()
    return found if width >= 32 else found.astype(np.int32)


def above_least(numbers: npt.NDArray[Any]) -> Codes:
    """How far each number is above the least one. What does not fit the numbers' own type is the same modulo 2^32 or
    2^64.
    """
    if not len(numbers):
        return np.empty(0, np.uint32)
    least = numbers.min()
    above: Codes = np.empty(len(numbers), np.uint32 if int(numbers.max()) - int(least) < _SHORT_WORD else np.uint64)
    return np.subtract(numbers, least, out=above, casting="unsafe")


def _places(leaf: pa.Array) -> Codes:
    """For each value its place among the distinct ones, in their order."""
    encoded = leaf.dictionary_encode()
    places = np.zeros(max(1, len(encoded.dictionary)), np.uint32)
    places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    found: Codes = places[filled(encoded.indices, 0).to_numpy()]
    return found
