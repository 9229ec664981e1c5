"""Hashes of rows: those of their canonical bytes (`events.identity`), which are not written anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.events.identity import canonical_columns, in_parts, joined, values_and_bounds
from cepheid.kernel.siphash import Rows, Words, siphash_rows

_NO_BYTES, _NO_BOUNDS = np.empty(0, np.uint8), np.empty(0, np.int64)


def row_hashes(columns: Sequence[pa.Array], length: int, key: bytes) -> Words:
    """(length, 2) the hash of each row of these columns, as two words, the low one first. The key has 16 bytes."""
    parts = [siphash_rows(_rows(*part), key) for part in in_parts(columns, length)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros((0, 2), np.uint64), *parts])


def _rows(columns: Sequence[pa.Array], length: int) -> Rows:
    flags, fixed, variable = canonical_columns(columns, length)
    widths = np.array([values.itemsize // 8 for values in fixed], np.int64)
    words = np.empty((int(widths.sum()), length), np.uint64)
    for place, values in zip(np.cumsum(widths) - widths, fixed, strict=True):
        words[place : place + values.itemsize // 8] = values.view(np.uint64).reshape(length, -1).T
    rest = joined(*variable) if len(variable) > 1 else variable[0] if variable else None
    data, bounds = (_NO_BYTES, _NO_BOUNDS) if rest is None else values_and_bounds(rest)
    return Rows(np.array(flags, np.uint8).reshape(-1, length), words, widths, data, bounds)
