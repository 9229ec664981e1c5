"""Numbers of keys by the hashes of their names, compiled: a dictionary in Python takes most of the time of events whose
keys are as many as they.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.jit import kernel
from cepheid.kernel.siphash import Words


class KeyTable:
    """Numbers the keys from 0 in the order in which they come. A hash has 128 bits, so that equal ones are of one key,
    and comes from a secret key (`siphash_rows`), so that nobody can choose keys that share a place in the table.
    """

    def __init__(self) -> None:
        self._count = 0
        self._hashes = np.zeros((0, 2), np.uint64)
        """The hash of each key, and room for more."""
        self._places = np.zeros(1, np.int32)
        """A hash table with open addressing: the number of a key plus 1, or 0. At most half of it is used."""

    def __len__(self) -> int:
        return self._count

    def numbers(self, hashes: Words) -> Ints:
        """(n,) the number of each key, whose hashes are (n, 2); a key without a number gets the next one."""
        self._make_room(self._count + len(hashes))
        found = np.empty(len(hashes), np.int64)
        self._count = _number_all(hashes, self._hashes, self._places, self._count, found)
        return found

    def keep(self, numbers: Int32s) -> None:
        """Forgets all keys but those with these numbers, which ascend. From now on they have the numbers from 0."""
        self._enter(self._hashes[numbers], 2 * len(numbers))

    def _make_room(self, count: int) -> None:
        if count > len(self._hashes):
            self._enter(self._hashes[: self._count], 2 * count)

    def _enter(self, hashes: Words, room: int) -> None:
        """Replaces all keys by those with these hashes, with room for so many."""
        self._hashes = np.empty((room, 2), np.uint64)
        self._places = np.zeros(1 << (2 * room).bit_length(), np.int32)
        self._count = _number_all(hashes, self._hashes, self._places, 0, np.empty(len(hashes), np.int64))


@kernel
def _number_all(hashes: Words, known: Words, places: Int32s, count: int, numbers: Ints) -> int:
    """Writes the numbers of these hashes, and enters those that are not known yet. `count` are known. Returns how many
    are known then.
    """
    last = np.uint64(len(places) - 1)
    for i in range(len(hashes)):
        at = hashes[i, 0] & last
        while places[at]:
            number = places[at] - 1
            if known[number, 0] == hashes[i, 0] and known[number, 1] == hashes[i, 1]:
                break
            at = (at + np.uint64(1)) & last
        if not places[at]:
            known[count, 0], known[count, 1] = hashes[i, 0], hashes[i, 1]
            count += 1
            places[at] = count
        numbers[i] = places[at] - 1
    return count
