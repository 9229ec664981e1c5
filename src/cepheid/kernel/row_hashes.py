"""Hashes of rows: those of their canonical bytes (`events.identity`), which are not written anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.identity import canonical_columns, in_parts, joined, values_and_bounds
from cepheid.kernel.arrays import Words
from cepheid.kernel.siphash import Rows, siphash_rows

_NO_BYTES, _NO_BOUNDS = np.empty(0, np.uint8), np.empty(0, np.int64)


def row_hashes(columns: Sequence[pa.Array], length: int, key: bytes) -> Words:
    """(length, 2) the hash of each row of these columns, as two words, the low one first. The key has 16 bytes."""
    found, begin, room = np.empty((length, 2), np.uint64), 0, _Room()
    for some, count in in_parts(columns, length):
        siphash_rows(_rows(some, count, room), key, found[begin : begin + count])
        begin += count
    return found


class _Room:
    """Arrays for the rows of a part. Those of the next part are in the same memory: the system clears new memory."""

    def __init__(self) -> None:
        self._words = np.empty(0, np.uint64)
        self._flags = np.empty(0, np.uint8)

    def words(self, count: int, length: int) -> npt.NDArray[np.uint64]:
        """An array of this shape, not initialized."""
        if len(self._words) < count * length:
            self._words = np.empty(count * length, np.uint64)
        return self._words[: count * length].reshape(count, length)

    def flags(self, count: int, length: int) -> npt.NDArray[np.uint8]:
        """An array of this shape, not initialized."""
        if len(self._flags) < count * length:
            self._flags = np.empty(count * length, np.uint8)
        return self._flags[: count * length].reshape(count, length)


def _rows(columns: Sequence[pa.Array], length: int, room: _Room) -> Rows:
    valid, fixed, variable = canonical_columns(columns, length)
    widths = np.array([values.itemsize // 8 for values in fixed], np.int64)
    words, flags = room.words(int(widths.sum()), length), room.flags(len(valid), length)
    for place, values in zip(np.cumsum(widths) - widths, fixed, strict=True):
        words[place : place + values.itemsize // 8] = values.view(np.uint64).reshape(length, -1).T
    for place, flag in enumerate(valid):
        flags[place] = flag
    rest = joined(*variable) if len(variable) > 1 else variable[0] if variable else None
    data, bounds = (_NO_BYTES, _NO_BOUNDS) if rest is None else values_and_bounds(rest)
    return Rows(flags, words, widths, data, bounds)
