"""SipHash-2-4 with 128-bit results, compiled: a fast keyed hash of bytes (Aumasson and Bernstein, "SipHash: a fast
short-input PRF", 2012; the form with 128 bits is that of the reference implementation, github.com/veorq/SipHash).

`siphash_reference` is the same function in plain Python. To compile this one takes some seconds; until it is in the
disk cache, NumPy hashes what is not long (`siphash_arrays`). Ids of rows are made with it (`output.ids`) and become
keys of databases, so no result may ever change.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel import jit
from cepheid.kernel.arrays import Bytes, Int32s, T, Words
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.siphash_arrays import siphash_arrays

Word = np.uint64
State: TypeAlias = tuple[Word, Word, Word, Word]

KEY_SIZE = 16
_TOGETHER = 512
"""The rows of a block: their states stay in the processor's first cache."""
_REST = 4 * _TOGETHER
"""Where the last part of the states begins: the bytes that do not fill a word yet."""
_WORDS = 5 * _TOGETHER
"""Where room for a word of each row begins, after the states."""
_LENGTHS = 1 << 10
"""Longer groups of records are not ordered by their lengths: few are of one length."""
_BITS = 64
_LONG = 1 << 14
"""The most bytes of a message that NumPy hashes: it takes 20 microseconds for each word of the longest one."""


class Rows(NamedTuple):
    """The bytes of n rows. A row has first what all rows have in the same places: for each of c columns a flag, of one
    byte, and one or more words of eight bytes, the low byte first. Then come bytes of which each row may have any
    number.
    """

    flags: Bytes
    """(c, n)"""
    words: Words
    """(w, n) the words of all columns, one column after the other."""
    widths: Ints
    """(c,) the number of words of each column; their sum is w."""
    data: Bytes
    """The bytes of row i that follow lie between the positions bounds[i] and bounds[i + 1]."""
    bounds: Ints
    """(n + 1,) ascending; (0,) if nothing follows in any row."""


def siphash(data: Bytes, bounds: Ints, key: bytes) -> Words:
    """(n, 2) the hash of each group of bytes, as two words, the low one first. Group i lies between the positions
    bounds[i] and bounds[i + 1]; `bounds` has n + 1 positions, ascending. The key has 16 bytes.
    """
    nothing, found = np.empty((0, len(bounds) - 1), np.uint8), np.empty((len(bounds) - 1, 2), np.uint64)
    siphash_rows(Rows(nothing, nothing.astype(np.uint64), np.empty(0, np.int64), data, bounds), key, found)
    return found


def siphash_rows(rows: Rows, key: bytes, found: Words) -> None:
    """Writes to `found`, (n, 2), the hash of each row's bytes, as `siphash` gives it. The key has 16 bytes."""
    assert len(key) == KEY_SIZE, key
    if _is_ready(rows.bounds):
        _rows_compiled(rows, key, found)
    else:
        bounds = rows.bounds if len(rows.bounds) else np.zeros(len(found) + 1, np.int64)
        found[:] = siphash_arrays(_heads(rows, len(found)), rows.data, bounds, key)


def _rows_compiled(rows: Rows, key: bytes, found: Words) -> None:
    """The rows' bytes are not written anywhere."""
    flags, words, widths, data, bounds = rows
    constant = Rows(_constant(flags), _constant(words), _constant(widths), _constant(data), _constant(bounds))
    states = np.empty(6 * _TOGETHER, np.uint64)
    _hash_rows(constant, np.frombuffer(key, np.uint64), states, found)


def _heads(rows: Rows, count: int) -> Bytes:
    """(n, bytes) what the rows have in the same places."""
    columns, place = [np.empty((count, 0), np.uint8)], 0
    for flags, width in zip(rows.flags, rows.widths.tolist(), strict=True):
        words = np.ascontiguousarray(rows.words[place : place + width].T)
        columns += [flags[:, None], words.view(np.uint8)]
        place += width
    return np.concatenate(columns, axis=1)


class Records(NamedTuple):
    """Groups of records: each is the hash of an event, then marks of eight bytes each. There are r records."""

    event: Int32s
    """(r,) the number of the event; -1 for none, whose hash is zero."""
    stage: Int32s
    """(r,) the first mark; empty where records do not have it."""
    marks: Ints
    """(r, marks) the other marks."""
    bounds: Ints
    """(n + 1,) ascending: group j lies between the records bounds[j] and bounds[j + 1]."""


def siphash_records(hashes: Words, records: Records, key: bytes) -> Words:
    """(n, 2) the hash of each group of records; `hashes` has those of events, two words each. The key has 16 bytes.

    The result is that of `siphash` of the records' bytes.
    """
    assert len(key) == KEY_SIZE, key
    size = 8 * (2 + (len(records.stage) > 0) + records.marks.shape[1])
    if _is_ready(records.bounds, size):
        return _records_compiled(hashes, records, key)
    none = np.empty((len(records.bounds) - 1, 0), np.uint8)
    return siphash_arrays(none, _words_of(hashes, records).view(np.uint8).ravel(), size * records.bounds, key)


def _records_compiled(hashes: Words, records: Records, key: bytes) -> Words:
    """The records' bytes are not written anywhere."""
    event, stage, marks, bounds = records
    count = len(bounds) - 1
    found, states = np.empty((count, 2), np.uint64), np.empty(5 * _TOGETHER, np.uint64)
    constant = Records(_constant(event), _constant(stage), _constant(marks.view(np.uint64)), _constant(bounds))
    order, places = np.empty(count, np.int32), np.zeros(_LENGTHS + 2, np.int64)
    _order_by_length(constant.bounds, places, order)
    _hash_records(_constant(hashes), constant, order, np.frombuffer(key, np.uint64), states, found)
    return found


def _words_of(hashes: Words, records: Records) -> Words:
    """(r, words) the words of each record."""
    event, stage, marks, _ = records
    with_none = np.concatenate([hashes, np.zeros((1, 2), np.uint64)])  # what event -1 takes
    stages = [stage.astype(np.int64).view(np.uint64)[:, None]] if len(stage) else []
    return np.concatenate([with_none[event], *stages, marks.view(np.uint64)], axis=1)


@cache
def warm_up() -> None:
    """Loads the functions, and compiles those that are not in the disk cache. One process compiles at a time."""
    none, bounds, key = np.zeros(0, np.int64), np.zeros(1, np.int64), bytes(KEY_SIZE)
    rows = Rows(
        none.astype(np.uint8).reshape(0, 0), none.view(np.uint64).reshape(0, 0), none, none.astype(np.uint8), bounds
    )
    records = Records(none.astype(np.int32), none.astype(np.int32), none.reshape(0, 1), bounds)
    with jit.compiling_alone(__name__):
        _rows_compiled(rows, key, np.empty((0, 2), np.uint64))
        _records_compiled(np.empty((0, 2), np.uint64), records, key)


def _is_ready(bounds: Ints, size: int = 1) -> bool:
    """Whether the compiled functions hash the messages between these positions, which are `size` bytes apart: they are
    in the disk cache, or, if a message is long, they are now.
    """
    if is_compiled():
        return True
    is_long = size * int(np.diff(bounds).max(initial=0)) > _LONG
    if is_long:
        warm_up()
    return is_long


def is_compiled() -> bool:
    """Whether the functions are in the disk cache. True without a cache: then each process compiles its own."""
    return jit.is_compiled(__name__)


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
def _four_rounds(v0: Word, v1: Word, v2: Word, v3: Word) -> State:
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0, v1, v2, v3


@inlined
def _end(v0: Word, v1: Word, v2: Word, v3: Word) -> tuple[Word, Word]:
    """The hash, once all words are in."""
    v0, v1, v2, v3 = _four_rounds(v0, v1, v2 ^ Word(0xEE), v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _four_rounds(v0, v1 ^ Word(0xDD), v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


# Rows are hashed in blocks, word by word. The state of a row is v0, v1, v2, v3 and the bytes that do not fill a word
# yet. The states of a block are one array: all v0, then all v1, and so on. No row of the loops depends on another, so
# that the compiler makes vector instructions of them: measured 15 ns for a row of 71 bytes, and 36 ns row by row.
# Unsigned positions, which cannot count from the end, are needed for that.


@kernel
def _hash_rows(rows: Rows, key: Words, states: Words, found: Words) -> None:
    """`states` has room for the states of a block, and for a word of each row."""
    count = len(found)
    for begin in range(0, count, _TOGETHER):
        end = min(begin + _TOGETHER, count)
        _start_rows(key, states, end - begin)
        filled = _hash_columns(rows, begin, end, states)
        if len(rows.bounds):
            bounds = rows.bounds[begin : end + 1]
            hashed = _hash_common_words(rows.data, bounds, filled, states)
            _hash_rest(rows.data, bounds, hashed, filled, states)
        _add_lengths(rows, begin, end, states)
        _end_rows(states, end - begin)
        for i in range(end - begin):
            found[begin + i, 0], found[begin + i, 1] = states[Word(i)], states[Word(_TOGETHER) + Word(i)]


@inlined
def _start_rows(key: Words, states: Words, count: int) -> None:
    v0, v1, v2, v3 = _start(key)
    for i in range(count):
        _write(states, Word(i), v0, v1, v2, v3, Word(0))


@inlined
def _hash_columns(rows: Rows, begin: int, end: int, states: Words) -> Word:
    """Hashes the columns of these rows. Returns the number of bits that do not fill a word yet, the same for all; they
    are in the states.
    """
    filled, place = Word(0), 0
    for column in range(len(rows.widths)):
        flags = rows.flags[column, begin:end]
        for i in range(len(flags)):
            states[Word(_REST) + Word(i)] |= Word(flags[Word(i)]) << filled
        filled += Word(8)
        if filled == Word(_BITS):
            filled = Word(0)
            _hash_whole_words(states, end - begin)
        for _ in range(rows.widths[column]):
            _hash_words(rows.words[place, begin:end], filled, states)
            place += 1
    return filled


@inlined
def _add_lengths(rows: Rows, begin: int, end: int, states: Words) -> None:
    """Writes the length of each row in bytes to the highest byte of its last word. Only that byte of it counts."""
    length = Word(0)
    for column in range(len(rows.widths)):
        length += Word(1) + Word(8) * Word(rows.widths[column])
    for i in range(end - begin):
        more = Word(rows.bounds[begin + i + 1] - rows.bounds[begin + i]) if len(rows.bounds) else Word(0)
        states[Word(_REST) + Word(i)] |= (length + more) << Word(56)


@inlined
def _hash_whole_words(states: Words, count: int) -> None:
    """Hashes what fills a word in each row."""
    for i in range(count):
        v0, v1, v2, v3, rest = _read(states, Word(i))
        v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, rest)
        _write(states, Word(i), v0, v1, v2, v3, Word(0))


@inlined
def _hash_words(words: Words, filled: Word, states: Words) -> None:
    """Hashes a further word of each row, when `filled` bits do not fill a word yet."""
    left, any_left = _left(filled)
    for i in range(len(words)):
        v0, v1, v2, v3, rest = _read(states, Word(i))
        word = words[Word(i)]
        v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, rest | word << filled)
        _write(states, Word(i), v0, v1, v2, v3, word >> left & any_left)


@inlined
def _hash_common_words(data: Bytes, bounds: Ints, filled: Word, states: Words) -> Word:
    """Hashes as many whole words of what follows the columns as each row has. Returns the number of their bytes."""
    least = bounds[1] - bounds[0]
    for i in range(1, len(bounds) - 1):
        least = min(least, bounds[i + 1] - bounds[i])
    at, end = Word(0), Word(least) & ~Word(7)
    words = states[_WORDS : _WORDS + len(bounds) - 1]
    while at < end:
        for i in range(len(words)):
            words[Word(i)] = _word_at(data, Word(bounds[i]) + at)
        _hash_words(words, filled, states)
        at += Word(8)
    return end


@inlined
def _word_at(data: Bytes, at: Word) -> Word:
    word = Word(0)
    for k in range(8):
        word |= Word(data[at + Word(k)]) << Word(8 * k)
    return word


@inlined
def _hash_rest(data: Bytes, bounds: Ints, hashed: Word, filled: Word, states: Words) -> None:
    """Hashes the bytes that follow the columns, without the first `hashed` ones, when `filled` bits do not fill a word
    yet.
    """
    left, any_left = _left(filled)
    for i in range(len(bounds) - 1):
        at, end = Word(bounds[i]) + hashed, Word(bounds[i + 1])
        if at == end:
            continue
        v0, v1, v2, v3, rest = _read(states, Word(i))
        while end - at >= Word(8):
            word = _word_at(data, at)
            at += Word(8)
            v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, rest | word << filled)
            rest = word >> left & any_left
        bits = filled
        while at < end:
            rest |= Word(data[at]) << bits
            at += Word(1)
            bits += Word(8)
            if bits == Word(_BITS):
                v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, rest)
                rest, bits = Word(0), Word(0)
        _write(states, Word(i), v0, v1, v2, v3, rest)


@inlined
def _left(filled: Word) -> tuple[Word, Word]:
    """How far to the right a word is shifted that has `filled` bits before it, for what does not fit; and a mask for
    the result, as a word cannot be shifted by all of its bits.
    """
    return Word(_BITS) - filled & Word(_BITS - 1), Word(0) - Word(filled != Word(0))


@inlined
def _end_rows(states: Words, count: int) -> None:
    """Hashes the last word of each row. The hashes are then in place of v0 and v1."""
    for i in range(count):
        v0, v1, v2, v3, rest = _read(states, Word(i))
        v0, v1, v2, v3 = _with_word(v0, v1, v2, v3, rest)
        low, high = _end(v0, v1, v2, v3)
        states[Word(i)], states[Word(_TOGETHER) + Word(i)] = low, high


@inlined
def _read(states: Words, i: Word) -> tuple[Word, Word, Word, Word, Word]:
    n = Word(_TOGETHER)
    return states[i], states[n + i], states[n * Word(2) + i], states[n * Word(3) + i], states[Word(_REST) + i]


@inlined
def _write(states: Words, i: Word, v0: Word, v1: Word, v2: Word, v3: Word, rest: Word) -> None:
    n = Word(_TOGETHER)
    states[i], states[n + i], states[n * Word(2) + i], states[n * Word(3) + i] = v0, v1, v2, v3
    states[Word(_REST) + i] = rest


@kernel
def _order_by_length(bounds: Ints, places: Ints, order: Int32s) -> None:
    """Writes to `order` the numbers of the groups: those of one length side by side, and after them all long ones.
    `places` has a zero for each length, and a last one for the long ones.
    """
    longest = len(places) - 1
    for i in range(len(order)):
        places[min(_length(bounds, i), longest)] += 1
    place = 0
    for length in range(len(places)):
        count = places[length]
        places[length] = place
        place += count
    for i in range(len(order)):
        length = min(_length(bounds, i), longest)
        order[places[length]] = i
        places[length] += 1


@kernel
def _hash_records(hashes: Words, records: Records, order: Int32s, key: Words, states: Words, found: Words) -> None:
    """`order` has the numbers of the groups, in any order; blocks are groups with the same number of records, one after
    the other there. `states` has room for the states of a block.
    """
    event, stage, marks, bounds = records
    begin, end = 0, 0
    while begin < len(order):
        length = _length(bounds, order[begin])
        while end < len(order) and end - begin < _TOGETHER and _length(bounds, order[end]) == length:
            end += 1
        block = order[begin:end]
        _start_rows(key, states, len(block))
        for record in range(length):
            for half in range(2):
                for i in range(len(block)):
                    number = event[bounds[block[i]] + record]
                    states[Word(_REST) + Word(i)] = hashes[number, half] if number >= 0 else Word(0)
                _hash_whole_words(states, len(block))
            if len(stage):
                for i in range(len(block)):
                    states[Word(_REST) + Word(i)] = stage[bounds[block[i]] + record]
                _hash_whole_words(states, len(block))
            for mark in range(marks.shape[1]):
                for i in range(len(block)):
                    states[Word(_REST) + Word(i)] = marks[bounds[block[i]] + record, mark]
                _hash_whole_words(states, len(block))
        size = Word(length * (2 + (len(stage) > 0) + marks.shape[1]) * 8)
        for i in range(len(block)):
            states[Word(_REST) + Word(i)] = size << Word(56)
        _end_rows(states, len(block))
        for i in range(len(block)):
            found[block[i], 0], found[block[i], 1] = states[Word(i)], states[Word(_TOGETHER) + Word(i)]
        begin = end


@inlined
def _length(bounds: Ints, group: int) -> int:
    return bounds[group + 1] - bounds[group]
