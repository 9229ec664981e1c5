"""SipHash-2-4 with 128-bit results, compiled: a fast keyed hash of bytes (Aumasson and Bernstein, "SipHash: a fast
short-input PRF", 2012; the form with 128 bits is that of the reference implementation, github.com/veorq/SipHash).

`siphash_reference` is the same function in plain Python. Ids of rows are made with it (`output.ids`) and become keys of
databases, so no result may ever change.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s, T
from cepheid.kernel.jit import compiling_alone, inlined, kernel

Word = np.uint64
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
State: TypeAlias = tuple[Word, Word, Word, Word]

KEY_SIZE = 16


def siphash(data: Bytes, bounds: Ints, key: bytes) -> Words:
    """(n, 2) the hash of each group of bytes, as two words, the low one first. Group i lies between the positions
    bounds[i] and bounds[i + 1]; `bounds` has n + 1 positions, ascending. The key has 16 bytes.
    """
    assert len(key) == KEY_SIZE, key
    found = np.empty((len(bounds) - 1, 2), np.uint64)
    _hash_groups(_constant(data), _constant(bounds), np.frombuffer(key, np.uint64), found)
    return found


def siphash_records(hashes: Words, event: Int32s, marks: Ints, bounds: Ints, key: bytes) -> Words:
    """(n, 2) the hash of each group of records. Record i is the hash (two words) of the event with the number event[i],
    zero for -1, then its marks; (records, marks) marks. Group j lies between bounds[j] and bounds[j + 1]; `bounds` has
    n + 1 numbers of records, ascending. The key has 16 bytes.

    The result is that of `siphash` of the records' bytes, which are not written anywhere.
    """
    assert len(key) == KEY_SIZE, key
    found = np.empty((len(bounds) - 1, 2), np.uint64)
    arrays = _constant(hashes), _constant(event), _constant(marks.view(np.uint64)), _constant(bounds)
    _hash_records(*arrays, np.frombuffer(key, np.uint64), found)
    return found


@cache
def warm_up() -> None:
    """Loads the functions, and compiles those that are not in the disk cache. One process compiles at a time."""
    with compiling_alone():
        siphash(np.zeros(0, np.uint8), np.zeros(1, np.int64), bytes(KEY_SIZE))
        nothing, marks = np.zeros((0, 2), np.uint64), np.zeros((0, 1), np.int64)
        siphash_records(nothing, np.zeros(0, np.int32), marks, np.zeros(1, np.int64), bytes(KEY_SIZE))


def _constant(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """The array as one that cannot be written. To Numba this is a type of its own, so that the buffers of Arrow, which
    cannot be written, and arrays of ours would each have the function compiled.
    """
    array = array.view()
    array.flags.writeable = False
    return array


@inlined
def _round(v0: Word, v1: Word, v2: Word, v3: Word) -> State:
    v0 += v1
    v1 = v1 << Word(13) | v1 >> Word(51)
    v1 ^= v0
    v0 = v0 << Word(32) | v0 >> Word(32)
    v2 += v3
    v3 = v3 << Word(16) | v3 >> Word(48)
    v3 ^= v2
    v0 += v3
    v3 = v3 << Word(21) | v3 >> Word(43)
    v3 ^= v0
    v2 += v1
    v1 = v1 << Word(17) | v1 >> Word(47)
    v1 ^= v2
    v2 = v2 << Word(32) | v2 >> Word(32)
    return v0, v1, v2, v3


@inlined
def _start(key: Words) -> State:
    return (
        Word(0x736F6D6570736575) ^ key[0],
        Word(0x646F72616E646F6D) ^ key[1] ^ Word(0xEE),
        Word(0x6C7967656E657261) ^ key[0],
        Word(0x7465646279746573) ^ key[1],
    )


@inlined
def _with_word(v0: Word, v1: Word, v2: Word, v3: Word, word: Word) -> State:
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    return v0, v1, v2, v3


@inlined
def _end(v0: Word, v1: Word, v2: Word, v3: Word, found: Words) -> None:
    """Writes the hash, once all words are in."""
    v2 ^= Word(0xEE)
    for half in range(2):
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        found[half] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= Word(0xDD)


@kernel
def _hash_records(hashes: Words, event: Int32s, marks: Words, bounds: Ints, key: Words, found: Words) -> None:
    size = 2 + marks.shape[1]
    for group in range(len(bounds) - 1):
        v0, v1, v2, v3 = _start(key)
        for record in range(bounds[group], bounds[group + 1]):
            number = event[record]
            for half in range(2):
                word = hashes[number, half] if number >= 0 else Word(0)
                v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, word)
            for mark in range(marks.shape[1]):
                v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, marks[record, mark])
        length = Word((bounds[group + 1] - bounds[group]) * size * 8)
        v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, length << Word(56))
        _end(v0, v1, v2, v3, found[group])


@kernel
def _hash_groups(data: Bytes, bounds: Ints, key: Words, found: Words) -> None:
    """Unsigned positions let the compiler read eight bytes at once. Measured: 2.4 GB/s, and 1.1 GB/s with signed ones,
    which may count from the end.
    """
    eight = Word(8)
    for group in range(len(bounds) - 1):
        at, end = Word(bounds[group]), Word(bounds[group + 1])
        v0, v1, v2, v3 = _start(key)
        last = (end - at) << Word(56)
        while end - at >= eight:
            word = Word(0)
            for i in range(8):
                word |= Word(data[at + Word(i)]) << Word(8 * i)
            at += eight
            v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, word)
        for i in range(end - at):
            last |= Word(data[at + Word(i)]) << Word(8 * i)
        v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, last)
        _end(v0, v1, v2, v3, found[group])
