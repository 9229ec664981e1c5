"""SipHash-2-4 with 128-bit results in plain Python, after the reference implementation (github.com/veorq/SipHash). It
defines `siphash`; tests compare both with each other and with the published test vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

_WORD = (1 << 64) - 1


def siphash_reference(message: bytes, key: bytes) -> bytes:
    """The 16 bytes of the message's hash; the key has 16 bytes."""
    state = start(key)
    for word in _words(message):
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xEE
    _rounds(state, 4)
    first = state[0] ^ state[1] ^ state[2] ^ state[3]
    state[1] ^= 0xDD
    _rounds(state, 4)
    second = state[0] ^ state[1] ^ state[2] ^ state[3]
    return first.to_bytes(8, "little") + second.to_bytes(8, "little")


def start(key: bytes) -> list[int]:
    """The state before the first word."""
    low, high = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    state = [low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D, low ^ 0x6C7967656E657261, high ^ 0x7465646279746573]
    state[1] ^= 0xEE  # of 128 bits
    return state


def _words(message: bytes) -> Iterator[int]:
    """The message as words of eight bytes. The last word has the bytes that are left over, then zeros, and in its last
    byte the message's length.
    """
    whole = len(message) // 8 * 8
    for i in range(0, whole, 8):
        yield int.from_bytes(message[i : i + 8], "little")
    yield int.from_bytes(message[whole:].ljust(7, b"\0") + bytes([len(message) % 256]), "little")


def _rounds(state: list[int], count: int) -> None:
    for _ in range(count):
        _mix(state, 0, 1, 13, 32)
        _mix(state, 2, 3, 16, 0)
        _mix(state, 0, 3, 21, 0)
        _mix(state, 2, 1, 17, 32)


def _mix(state: list[int], a: int, b: int, turn_b: int, turn_a: int) -> None:
    """Adds word b to word a, and changes both."""
    state[a] = (state[a] + state[b]) & _WORD
    state[b] = _turned(state[b], turn_b) ^ state[a]
    state[a] = _turned(state[a], turn_a)


def _turned(word: int, bits: int) -> int:
    """The word, rotated left."""
    return (word << bits | word >> (64 - bits)) & _WORD
