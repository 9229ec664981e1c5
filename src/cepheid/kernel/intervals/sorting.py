"""Sorts rows that are nearly in order, compiled: `np.lexsort` compares all rows by every key, and takes three times as
long for the matches of many events.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.jit import kernel

_RUN = 16
"""So many rows are sorted by insertion; longer runs are merged."""


def order_of(words: Ints, numbers: Int32s) -> Int32s:
    """(n,) the order of n rows by their words (n, w) and, where these are equal, by their numbers (n, k). Equal rows
    stay in their order. The rows' first words ascend.
    """
    order, room = np.arange(len(words), dtype=np.int32), np.empty(len(words), np.int32)
    _sort_groups(words, numbers, order, room)
    return order


def columns_of(words: Ints, numbers: Int32s, order: Int32s) -> tuple[Ints, Int32s]:
    """The rows in this order: (w, n) one array for each word, and (n, k) the numbers. With NumPy the same takes four
    copies.
    """
    columns, ordered = np.empty(words.shape[::-1], np.int64), np.empty_like(numbers)
    _write_columns(words, numbers, order, columns, ordered)
    return columns, ordered


@kernel
def _write_columns(words: Ints, numbers: Int32s, order: Int32s, columns: Ints, ordered: Int32s) -> None:
    for i in range(len(order)):
        row = order[i]
        for word in range(words.shape[1]):
            columns[word, i] = words[row, word]
        for place in range(numbers.shape[1]):
            ordered[i, place] = numbers[row, place]


@kernel
def _sort_groups(words: Ints, numbers: Int32s, order: Int32s, room: Int32s) -> None:
    """Sorts the rows of each first word. `room` is as long as `order`."""
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and words[end, 0] == words[begin, 0]:
            end += 1
        for first in range(begin, end, _RUN):
            _sort_run(words, numbers, order, first, min(first + _RUN, end))
        width = _RUN
        while width < end - begin:
            for first in range(begin, end - width, 2 * width):
                _merge(words, numbers, order, room, first, first + width, min(first + 2 * width, end))
            width *= 2
        begin = end


@kernel
def _sort_run(words: Ints, numbers: Int32s, order: Int32s, begin: int, end: int) -> None:
    for i in range(begin + 1, end):
        row, at = order[i], i
        while at > begin and _is_before(words, numbers, row, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@kernel
def _merge(words: Ints, numbers: Int32s, order: Int32s, room: Int32s, begin: int, middle: int, end: int) -> None:
    """Merges two sorted parts of `order` that lie side by side."""
    if not _is_before(words, numbers, order[middle], order[middle - 1]):
        return
    for i in range(begin, middle):
        room[i] = order[i]
    left, right, at = begin, middle, begin
    while left < middle:
        if right < end and _is_before(words, numbers, order[right], room[left]):
            order[at] = order[right]
            right += 1
        else:
            order[at] = room[left]
            left += 1
        at += 1


@kernel
def _is_before(words: Ints, numbers: Int32s, row: int, other: int) -> bool:
    for i in range(1, words.shape[1]):
        if words[row, i] != words[other, i]:
            return words[row, i] < words[other, i]
    for i in range(numbers.shape[1]):
        if numbers[row, i] != numbers[other, i]:
            return numbers[row, i] < numbers[other, i]
    return False
