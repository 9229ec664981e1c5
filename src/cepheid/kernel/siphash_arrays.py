"""SipHash-2-4 with 128-bit results of many messages at once, by NumPy: for the time until `siphash` is compiled, which
takes some seconds. It takes 30 times as long, but that is about a second for a million messages.
"""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Bytes, Words
from cepheid.kernel.siphash_reference import start

_TOGETHER = 4096
"""The most messages of a block: their states stay in the processor's second cache."""
_BLOCK = 1 << 22
"""The most bytes of a block of several messages, all as long as the longest one: hashing it takes 25 times as many."""
_WORD = 8
"""Bytes."""


def siphash_arrays(heads: Bytes, data: Bytes, bounds: Ints, key: bytes) -> Words:
    """(n, 2) the hash of each message, as two words, the low one first. Message i has the bytes heads[i] and then those
    between the positions bounds[i] and bounds[i + 1] of `data`; `bounds` has n + 1 positions, ascending. The key has 16
    bytes.
    """
    found = np.empty((len(heads), 2), np.uint64)
    lengths = np.diff(bounds)
    order, begin = np.argsort(lengths, kind="stable"), 0
    while begin < len(order):
        block = order[begin : begin + _TOGETHER]
        block = block[: _fitting(heads.shape[1] + lengths[block])]
        found[block] = _hashes(*_words(heads[block], data, bounds[block], lengths[block]), key)
        begin += len(block)
    return found


def _fitting(sizes: Ints) -> int:
    """How many of the messages, whose sizes in bytes ascend, are a block; at least one."""
    return max(1, int(np.count_nonzero(np.arange(1, len(sizes) + 1) * sizes <= _BLOCK)))


def _words(heads: Bytes, data: Bytes, starts: Ints, lengths: Ints) -> tuple[Words, Ints]:
    """(n, w) the words of messages of ascending lengths, with zeros after the shorter ones; and how many each has. As
    in `siphash_reference`, the last one has the bytes that are left over and the message's length.
    """
    size = heads.shape[1]
    counts = (size + lengths) // _WORD + 1
    message = np.zeros((len(heads), _WORD * int(counts[-1])), np.uint8)
    message[:, :size] = heads
    places = np.arange(lengths[-1])
    rows, columns = np.nonzero(places < lengths[:, None])
    message[rows, size + columns] = data[starts[rows] + columns]
    message[np.arange(len(heads)), _WORD * counts - 1] = (size + lengths) % 256
    return message.view("<u8"), counts


def _hashes(words: Words, counts: Ints, key: bytes) -> Words:
    """The hashes of these messages; `counts` ascend."""
    states = np.array([np.full(len(words), word, np.uint64) for word in start(key)])
    for place in range(words.shape[1]):
        first = int(np.searchsorted(counts, place, side="right"))  # the messages before have no word there
        v0, v1, v2, v3 = states[:, first:]
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3 ^ words[first:, place])
        states[:, first:] = v0 ^ words[first:, place], v1, v2, v3
    v0, v1, v2, v3 = states
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2 ^ np.uint64(0xEE), v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _rounds(4, v0, v1 ^ np.uint64(0xDD), v2, v3)
    return np.stack([low, v0 ^ v1 ^ v2 ^ v3], axis=1)


def _rounds(count: int, v0: Words, v1: Words, v2: Words, v3: Words) -> tuple[Words, Words, Words, Words]:
    """The states after so many rounds. Sums leave out what does not fit a word."""
    for _ in range(count):
        v0, v1 = _mixed(v0, v1, 13)
        v2, v3 = _mixed(v2, v3, 16)
        v0, v3 = _mixed(_turned(v0, 32), v3, 21)
        v2, v1 = _mixed(v2, v1, 17)
        v2 = _turned(v2, 32)
    return v0, v1, v2, v3


def _mixed(a: Words, b: Words, bits: int) -> tuple[Words, Words]:
    total = a + b
    return total, _turned(b, bits) ^ total


def _turned(words: Words, bits: int) -> Words:
    """The words, each rotated left."""
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)
