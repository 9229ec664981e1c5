"""The order of rows by several columns of numbers, compiled: a radix sort from the last column's lowest digit to the
first column's highest one (Knuth, "The Art of Computer Programming", volume 3, section 5.2.5).

`numpy.lexsort` is the same in one call. It compares values, and takes ten times as long for ten million rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import row_type
from cepheid.kernel.jit import kernel

Codes = npt.NDArray[Any]
"""(rows,) unsigned numbers, of 32 bits where these suffice, whose order is that of the values for which they stand."""
Rows = npt.NDArray[Any]
"""(rows,) numbers of rows: of 32 bits where these suffice, as what is moved is what a sort costs."""

_WORD = 64
_DIGIT = 16
"""The most bits of a digit: the places of so many values fit the processor's cache."""


class _Word(NamedTuple):
    """One or more columns side by side in one number, the first one in its highest bits."""

    codes: Codes
    bits: int
    """The number of bits that are used."""


def order_by(columns: Sequence[Codes], length: int) -> Rows:
    """(length,) the numbers of the rows in the order of the first column, then of the second, and so on. Rows that
    agree in all of them stay as they come.
    """
    rows: Rows | None = None
    for codes, bits in reversed(_words(columns)):
        rows = _order_by_word(codes if bits > _WORD // 2 else codes.astype(np.uint32, copy=False), bits, rows)
    return np.arange(length) if rows is None else rows


def _words(columns: Sequence[Codes]) -> list[_Word]:
    """The columns in as few words as they fill. Columns in which all rows are equal are left out."""
    words = list[_Word]()
    for codes in columns:
        bits = int(codes.max(initial=0)).bit_length()
        if words and bits and words[-1].bits + bits <= _WORD:
            former = words.pop()
            both = former.bits + bits
            high = former.codes.astype(np.uint64 if both > _WORD // 2 else np.uint32, copy=False)
            words.append(_Word(np.left_shift(high, bits) | codes, both))
        elif bits:
            words.append(_Word(codes, bits))
    return words


def _order_by_word(codes: Rows, bits: int, rows: Rows | None) -> Rows:
    """The rows, which are in the order of what counts less (None: as they come), in the order of these codes."""
    length, number = len(codes), row_type(len(codes))
    nothing, no_codes = np.empty(0, number), np.empty(0, codes.dtype)
    codes = codes if rows is None else codes[rows]
    for shift, width in _digits(bits):
        is_last = shift + width >= bits
        codes_to, rows_to = no_codes if is_last else np.empty_like(codes), np.empty(length, number)
        places, low = np.zeros(1 << width, np.int64), codes.dtype.type(shift)
        _order_by_digit(codes, nothing if rows is None else rows, low, places, codes_to, rows_to)
        codes, rows = codes_to, rows_to
    assert rows is not None  # a word has at least one bit
    return rows


def _digits(bits: int) -> Iterator[tuple[int, int]]:
    """The first bit and the width of each digit of a number with so many bits, from the lowest digit."""
    width = -(-bits // -(-bits // _DIGIT))
    return ((shift, width) for shift in range(0, bits, width))


@kernel
def _order_by_digit(codes: Rows, rows: Rows, shift: Any, places: Ints, codes_to: Rows, rows_to: Rows) -> None:
    """Orders rows and codes by the digit that begins with the bit `shift`. `places` has a zero for each of its values,
    whose number is a power of two. Without `rows` these are 0, 1, …; without room in `codes_to` only rows are ordered.
    """
    digits = codes.dtype.type(len(places) - 1)
    for i in range(len(codes)):
        places[codes[i] >> shift & digits] += 1
    place = 0
    for digit in range(len(places)):
        count = places[digit]
        places[digit] = place
        place += count
    for i in range(len(codes)):
        digit = codes[i] >> shift & digits
        place = places[digit]
        places[digit] = place + 1
        rows_to[place] = rows[i] if len(rows) else i
        if len(codes_to):
            codes_to[place] = codes[i]
