"""SipHash-2-4 with 128-bit results: the compiled function, the one in plain Python and the published test vectors
agree.
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.kernel import siphash as compiled
from cepheid.kernel.siphash import siphash, siphash_records
from cepheid.kernel.siphash_reference import siphash_reference

VECTORS = [bytes.fromhex(line) for line in (Path(__file__).parent / "siphash_vectors.txt").read_text().split()]
"""`vectors_sip128` in vectors.h of the reference implementation, github.com/veorq/SipHash, at f26d35e. Line n, from
0, is the hash of the n bytes 00, 01, 02, … under the key 00, 01, … 0f.
"""
KEY = bytes(range(16))


def hashes(messages: list[bytes], key: bytes) -> list[bytes]:
    """The compiled function's hashes, all in one call."""
    bounds = np.array([0, *accumulate(map(len, messages))], np.int64)
    return [row.tobytes() for row in siphash(np.frombuffer(b"".join(messages), np.uint8), bounds, key)]


def test_published_vectors() -> None:
    """Both functions give the published hashes."""
    messages = [bytes(range(length)) for length in range(64)]
    assert len(VECTORS) == 64
    assert [siphash_reference(message, KEY) for message in messages] == VECTORS
    assert hashes(messages, KEY) == VECTORS


@given(st.lists(st.binary(max_size=300), max_size=20), st.binary(min_size=16, max_size=16))
def test_compiled_equals_reference(messages: list[bytes], key: bytes) -> None:
    """The compiled function gives for each group of bytes the hash that plain Python gives."""
    assert hashes(messages, key) == [siphash_reference(message, key) for message in messages]


@pytest.mark.parametrize("length", [255, 256, 257, 4096, 100_003])
def test_long_messages(length: int) -> None:
    """Of the length only the last byte is part of the hash."""
    message = bytes(i * 7 % 256 for i in range(length))
    assert hashes([message], KEY) == [siphash_reference(message, KEY)]


def test_it_is_compiled_once() -> None:
    """Arrays that can be written, and buffers of Arrow, which cannot, are of one type to the compiled function."""
    data, bounds = np.arange(9, dtype=np.uint8), np.array([0, 9])
    expected = siphash_reference(data.tobytes(), KEY)
    assert siphash(data, bounds, KEY).tobytes() == expected
    assert siphash(np.frombuffer(data.tobytes(), np.uint8), bounds, KEY).tobytes() == expected
    assert data.flags.writeable
    assert len(compiled._hash_rows.signatures) == 1  # type: ignore[attr-defined]  # noqa: SLF001


@given(
    st.lists(st.lists(st.tuples(st.integers(-1, 2), st.integers(-(2**63), 2**63 - 1)), max_size=4)),
    st.binary(min_size=16, max_size=16),
)
def test_records(rows: list[list[tuple[int, int]]], key: bytes) -> None:
    """The hash of records is that of their bytes: the event's hash, zero for none, and the mark."""
    events = np.arange(6, dtype=np.uint64).reshape(3, 2) * np.uint64(0x9E3779B97F4A7C15)
    members = [member for row in rows for member in row]
    event = np.array([number for number, _ in members], np.int32)
    marks = np.array([[mark] for _, mark in members], np.int64).reshape(-1, 1)
    bounds = np.cumsum([0, *map(len, rows)])
    nothing = bytes(16)
    content = [(events[n].tobytes() if n >= 0 else nothing) + struct.pack("<q", mark) for n, mark in members]
    expected = [siphash_reference(b"".join(content[a:b]), key) for a, b in pairwise(bounds.tolist())]
    assert [found.tobytes() for found in siphash_records(events, event, marks, bounds, key)] == expected
