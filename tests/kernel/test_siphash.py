"""SipHash-2-4 with 128-bit results: the compiled functions, those by NumPy, the one in plain Python and the published
test vectors agree.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.compile.arrays import Ints
from cepheid.kernel import siphash as compiled
from cepheid.kernel import siphash_arrays
from cepheid.kernel.arrays import Bytes, Words
from cepheid.kernel.siphash import Records, siphash, siphash_records
from cepheid.kernel.siphash_reference import siphash_reference

VECTORS = [bytes.fromhex(line) for line in (Path(__file__).parent / "siphash_vectors.txt").read_text().split()]
"""`vectors_sip128` in vectors.h of the reference implementation, github.com/veorq/SipHash, at f26d35e. Line n, from
0, is the hash of the n bytes 00, 01, 02, … under the key 00, 01, … 0f.
"""
KEY = bytes(range(16))


@pytest.fixture(params=["compiled", "by NumPy"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How hashes are made."""
    if request.param == "compiled":
        compiled.warm_up()
    with pytest.MonkeyPatch.context() as change:
        change.setattr(compiled, "is_compiled", lambda: request.param == "compiled")
        yield request.param


def hashes(messages: list[bytes], key: bytes) -> list[bytes]:
    """The hashes, all in one call."""
    bounds = np.array([0, *accumulate(map(len, messages))], np.int64)
    return [row.tobytes() for row in siphash(np.frombuffer(b"".join(messages), np.uint8), bounds, key)]


def test_published_vectors() -> None:
    """All functions give the published hashes."""
    messages = [bytes(range(length)) for length in range(64)]
    assert len(VECTORS) == 64
    assert [siphash_reference(message, KEY) for message in messages] == VECTORS
    assert hashes(messages, KEY) == VECTORS


@given(st.lists(st.binary(max_size=300), max_size=20), st.binary(min_size=16, max_size=16))
def test_both_equal_the_reference(messages: list[bytes], key: bytes) -> None:
    """Each group of bytes has the hash that plain Python gives."""
    assert hashes(messages, key) == [siphash_reference(message, key) for message in messages]


@pytest.mark.parametrize("length", [255, 256, 257, 4096, 100_003])
def test_long_messages(length: int) -> None:
    """Of the length only the last byte is part of the hash."""
    message = bytes(i * 7 % 256 for i in range(length))
    assert hashes([message], KEY) == [siphash_reference(message, KEY)]


def test_messages_of_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy hashes few long messages at once, as its memory is that of the longest one for each."""
    monkeypatch.setattr(siphash_arrays, "_BLOCK", 2000)
    blocks, as_it_is = list[int](), siphash_arrays._words  # noqa: SLF001 - the memory

    def words(heads: Bytes, data: Bytes, starts: Ints, lengths: Ints) -> tuple[Words, Ints]:
        found, counts = as_it_is(heads, data, starts, lengths)
        blocks.append(found.nbytes if len(found) > 1 else 0)
        return found, counts

    monkeypatch.setattr(siphash_arrays, "_words", words)
    messages = [bytes(i % 256 for i in range(length)) for length in [5000, 0, 7, 8, 9, 300, 64] * 40]
    bounds, data = np.array([0, *accumulate(map(len, messages))]), np.frombuffer(b"".join(messages), np.uint8)
    found = siphash_arrays.siphash_arrays(np.empty((len(messages), 0), np.uint8), data, bounds, KEY)
    assert [row.tobytes() for row in found] == [siphash_reference(message, KEY) for message in messages]
    assert 0 < max(blocks) < 3000


def test_long_messages_are_not_left_to_numpy(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the functions are compiled, one long message waits for them."""
    called = list[str]()
    monkeypatch.setattr(compiled, "siphash_arrays", lambda *_: called.append("by NumPy") or np.zeros((1, 2), np.uint64))
    hashes([bytes(1 << 14)], KEY)
    hashes([bytes((1 << 14) + 1)], KEY)
    assert called == ["by NumPy"] * (way == "by NumPy")


def test_it_is_compiled_once(way: str) -> None:
    """Arrays that can be written, and buffers of Arrow, which cannot, are of one type to the compiled function."""
    data, bounds = np.arange(9, dtype=np.uint8), np.array([0, 9])
    expected = siphash_reference(data.tobytes(), KEY)
    assert siphash(data, bounds, KEY).tobytes() == expected
    assert siphash(np.frombuffer(data.tobytes(), np.uint8), bounds, KEY).tobytes() == expected
    assert data.flags.writeable
    assert way != "compiled" or len(compiled._hash_rows.signatures) == 1  # type: ignore[attr-defined]  # noqa: SLF001


Member: TypeAlias = tuple[int, int, int]
"""The number of an event, of a stage, and a mark."""
MEMBER = st.tuples(st.integers(-1, 2), st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
EVENTS = np.arange(6, dtype=np.uint64).reshape(3, 2) * np.uint64(0x9E3779B97F4A7C15)


def records_of(rows: list[list[Member]], *, staged: bool) -> tuple[Records, list[bytes]]:
    """The records of groups, with stages or without, and the bytes of each group."""
    members = [member for row in rows for member in row]
    columns = np.array(members, np.int64).reshape(-1, 3)
    event, stage = columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32)
    bounds = np.cumsum([0, *map(len, rows)])
    hashes = [EVENTS[n].tobytes() if n >= 0 else bytes(16) for n, _, _ in members]
    marks = [struct.pack("<qq", *each) if staged else struct.pack("<q", each[1]) for _, *each in members]
    each = [a + b for a, b in zip(hashes, marks, strict=True)]
    records = Records(event, stage if staged else stage[:0], np.ascontiguousarray(columns[:, 2:]), bounds)
    return records, [b"".join(each[a:b]) for a, b in pairwise(bounds.tolist())]


@given(st.lists(st.lists(MEMBER, max_size=4)), st.binary(min_size=16, max_size=16), st.booleans())
def test_records(rows: list[list[Member]], key: bytes, staged: bool) -> None:  # noqa: FBT001 - drawn
    """The hash of records is that of their bytes: the event's hash, zero for none, the stage if there is one, and the
    mark.
    """
    records, content = records_of(rows, staged=staged)
    expected = [siphash_reference(group, key) for group in content]
    assert [found.tobytes() for found in siphash_records(EVENTS, records, key)] == expected


def test_records_of_very_long_groups() -> None:
    """Groups that are too long to be put in the order of their lengths are hashed, too."""
    lengths = [1, 5000, 2, 1023, 1024, 1025, 1026, 5000, 1025, 1]
    rows = [[(k % 3, k % 7, k) for k in range(length)] for length in lengths]
    records, content = records_of(rows, staged=True)
    expected = [siphash_reference(group, KEY) for group in content]
    assert [found.tobytes() for found in siphash_records(EVENTS, records, KEY)] == expected
