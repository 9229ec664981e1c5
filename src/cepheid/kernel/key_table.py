"""Numbers of keys by the hashes of their names, compiled: a dictionary in Python takes most of the time of events whose
keys are as many as they.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cepheid.kernel.arrays import Int32s, Words
from cepheid.kernel.jit import compiling_alone, inlined, kernel

_AT_ONCE = 1 << 14
"""There is room for so many keys more, however many events have few keys."""
_NO_HASHES, _NO_NUMBERS = np.empty((0, 2), np.uint64), np.empty(0, np.int32)


class KeyTable:
    """Numbers keys in the order in which they come: with the number that was freed last, otherwise with the next one,
    from 0. A hash has 128 bits, so that equal ones are of one key, and comes from a secret key (`siphash_rows`), so
    that nobody can choose keys that share a place in the table.
    """

    def __init__(self) -> None:
        _warm_up()  # now, as later events would have to wait for it
        self.size = 0
        """The numbers that have been given, those of freed keys included."""
        self._freed = _NO_NUMBERS
        """The numbers of freed keys; the last one is given first."""
        self._hashes = _NO_HASHES
        """The hash of the key of each number, and room for more."""
        self._places = np.zeros(1, np.int32)
        """A hash table with open addressing: the number of a key plus 1, or 0. At most half of it is used."""

    def __len__(self) -> int:
        return self.size - len(self._freed)

    @property
    def in_use(self) -> Int32s:
        """The numbers of the keys, ascending."""
        return np.sort(self._places[self._places > 0]) - np.int32(1)

    def numbers(self, hashes: Words) -> Int32s:
        """(n,) the number of each key, whose hashes are (n, 2); a key without a number gets one."""
        return self.numbers_and_new(hashes)[0]

    def numbers_and_new(self, hashes: Words) -> tuple[Int32s, Int32s]:
        """The same, and for each key that had no number the place of its first hash among these, ascending."""
        found, new = np.empty(len(hashes), np.int32), np.empty(len(hashes), np.int32)
        count = 0
        for start in range(0, len(hashes), _AT_ONCE):
            end = min(start + _AT_ONCE, len(hashes))
            more = self._number(hashes[start:end], found[start:end], new[count:])
            new[count : count + more] += np.int32(start)
            count += more
        return found, new[:count]

    def find(self, hashes: Words) -> Int32s:
        """(n,) the number of each key, whose hashes are (n, 2); -1 for a key without one."""
        found = np.empty(len(hashes), np.int32)
        _find_all(hashes, self._hashes, self._places, found)
        return found

    def free(self, numbers: Int32s) -> None:
        """Forgets the keys with these numbers, which differ; the numbers are given to others."""
        if len(numbers):
            _remove_all(numbers, self._hashes, self._places)
            self._freed = np.concatenate([self._freed, numbers.astype(np.int32)])

    def keep(self, numbers: Int32s) -> None:
        """Forgets all keys but those with these numbers, which ascend. From now on they have the numbers from 0."""
        hashes = self._hashes[numbers]
        self.size, self._freed = len(hashes), _NO_NUMBERS
        self._enter(np.arange(len(hashes), dtype=np.int32), hashes, 2 * len(hashes))

    def take_over(self, numbers: Int32s, hashes: Words) -> None:
        """Has these keys, with these numbers, from now on. Both differ."""
        self.size = 1 + int(numbers.max(initial=-1))
        self._freed = np.setdiff1d(np.arange(self.size, dtype=np.int32), numbers)
        placed = np.zeros((self.size, 2), np.uint64)
        placed[numbers] = hashes
        self._enter(numbers, placed, self.size)

    def _number(self, hashes: Words, numbers: Int32s, new: Int32s) -> int:
        """Writes the numbers of these hashes to `numbers`, and to `new` the places of those that had none; returns how
        many these are.
        """
        self._make_room(max(self.size, len(self) + len(hashes)))
        count = _number_all(hashes, self._hashes, self._places, self._freed, self.size, numbers, new)
        left = max(0, len(self._freed) - count)
        self.size += count - (len(self._freed) - left)
        self._freed = self._freed[:left]
        return count

    def _make_room(self, size: int) -> None:
        """Makes room for numbers below `size`."""
        if size > len(self._hashes):
            self._enter(self.in_use, self._hashes[: self.size], 2 * size)

    def _enter(self, numbers: Int32s, hashes: Words, room: int) -> None:
        """Makes the table anew with room for so many keys, for the keys with these numbers. `hashes` has theirs, by
        number.
        """
        self._hashes = np.empty((room, 2), np.uint64)
        self._hashes[: len(hashes)] = hashes
        self._places = np.zeros(1 << (2 * room).bit_length(), np.int32)
        _place_all(numbers, self._hashes, self._places)


@cache
def _warm_up() -> None:
    """Loads the functions, and compiles those that are not in the disk cache. One process compiles at a time."""
    places = np.zeros(1, np.int32)
    with compiling_alone(__name__):
        _number_all(_NO_HASHES, _NO_HASHES, places, _NO_NUMBERS, 0, _NO_NUMBERS, _NO_NUMBERS)
        _find_all(_NO_HASHES, _NO_HASHES, places, _NO_NUMBERS)
        _place_all(_NO_NUMBERS, _NO_HASHES, places)
        _remove_all(_NO_NUMBERS, _NO_HASHES, places)


@inlined
def _place_of(low: np.uint64, high: np.uint64, known: Words, places: Int32s) -> np.uint64:
    """The place of the key with this hash, or the empty one where it belongs."""
    last = np.uint64(len(places) - 1)
    at = low & last
    while places[at]:
        number = places[at] - 1
        if known[number, 0] == low and known[number, 1] == high:
            break
        at = (at + np.uint64(1)) & last
    return at


@kernel
def _number_all(
    hashes: Words, known: Words, places: Int32s, freed: Int32s, size: int, numbers: Int32s, new: Int32s
) -> int:
    """Writes the numbers of these hashes, and enters those that are not known yet, first with the last ones of `freed`
    and then with those from `size`. Writes the places of the latter among the hashes to `new`; returns their number.
    """
    count, left = 0, len(freed)
    for i in range(len(hashes)):
        at = _place_of(hashes[i, 0], hashes[i, 1], known, places)
        if not places[at]:
            if left:
                left -= 1
                places[at] = freed[left] + 1
            else:
                size += 1
                places[at] = size
            number = places[at] - 1
            known[number, 0], known[number, 1] = hashes[i, 0], hashes[i, 1]
            new[count] = i
            count += 1
        numbers[i] = places[at] - 1
    return count


@kernel
def _find_all(hashes: Words, known: Words, places: Int32s, numbers: Int32s) -> None:
    for i in range(len(hashes)):
        numbers[i] = places[_place_of(hashes[i, 0], hashes[i, 1], known, places)] - 1


@kernel
def _place_all(numbers: Int32s, known: Words, places: Int32s) -> None:
    """Enters the keys with these numbers, which differ, into an empty table."""
    for number in numbers:
        places[_place_of(known[number, 0], known[number, 1], known, places)] = number + 1


@kernel
def _remove_all(numbers: Int32s, known: Words, places: Int32s) -> None:
    """Removes these keys. Keys that were entered after one of them may be stored after its place: they move up
    (Knuth, "The Art of Computer Programming", vol. 3, 6.4, algorithm R).
    """
    last = np.uint64(len(places) - 1)
    for number in numbers:
        hole = _place_of(known[number, 0], known[number, 1], known, places)
        at = hole
        while True:
            at = (at + np.uint64(1)) & last
            if not places[at]:
                break
            home = known[places[at] - 1, 0] & last
            if (at - home) & last >= (at - hole) & last:  # the key may be at the hole, as its own place is not after it
                places[hole] = places[at]
                hole = at
        places[hole] = 0
