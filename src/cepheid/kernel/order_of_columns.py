"""The order of rows by Arrow columns: each column as numbers that sort as its values do, then a radix sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import filled
from cepheid.kernel.order import Codes, Rows, order_by

_SIGN = np.uint64(1 << 63)
_MOST = np.uint64((1 << 64) - 1)


def order_of_columns(columns: Sequence[pa.Array], length: int) -> Rows:
    """(length,) the numbers of the rows in the order of the columns, which have no structure (`events.order.leaves`):
    ascending, NaN after all other numbers, and NULL last. Rows that agree in all columns stay as they come.
    """
    return order_by([code for column in columns for code in _codes(column)], length)


def _codes(leaf: pa.Array) -> Iterator[Codes]:
    """Columns of numbers that sort as the values do."""
    if leaf.null_count:
        yield leaf.is_null().to_numpy(zero_copy_only=False).astype(np.uint64)
    words = _words(leaf)
    if words is None:
        yield _places(leaf)
    else:
        words -= words.min(initial=_MOST)
        yield words


def _words(leaf: pa.Array) -> Codes | None:
    """Numbers in the order of the values, and any for NULL, in an array of their own; None if the type has values of
    another width.
    """
    type_ = leaf.type
    if pa.types.is_unsigned_integer(type_):
        unsigned: Codes = filled(leaf, 0).to_numpy().astype(np.uint64)
        return unsigned
    if pa.types.is_float64(type_):
        bits: Codes = filled(leaf, 0.0).to_numpy().view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    if not (pa.types.is_signed_integer(type_) or pa.types.is_temporal(type_)) or pa.types.is_interval(type_):
        return None
    numbers = leaf if pa.types.is_integer(type_) else leaf.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    signed = filled(numbers, 0).to_numpy().astype(np.int64, copy=False)
    found: Codes = signed.view(np.uint64) ^ _SIGN
    return found


def _places(leaf: pa.Array) -> Codes:
    """For each value its place among the distinct ones, in their order."""
    encoded = leaf.dictionary_encode()
    places = np.zeros(max(1, len(encoded.dictionary)), np.uint64)
    places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    found: Codes = places[filled(encoded.indices, 0).to_numpy()]
    return found
