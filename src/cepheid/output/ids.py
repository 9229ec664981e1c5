"""Ids of rows. They become primary keys of databases, and show which rows were written twice. So an id that a version
has given may never change.

The id of a row is a hash of *records*, one for each event of the row, in order. A record has the hash of the event's
identity (`output.common.identities`), in 16 bytes, then marks in eight bytes each, with the low byte first: for a match
of stages the number of the event's stage, for a timeout the deadline as well, for a partial match that a negation has
ended when it did and the number of its stage. The key of the hash comes from the pattern's name and the kind of row.

    id = hexadecimal(SipHash-2-4-128(purpose(name, kind), record 1, record 2, …))
    record = SipHash-2-4-128(EVENT_KEY, identity of the event), mark 1, mark 2, …

Events are hashed by themselves because an event may be in many matches: each is hashed once, and a match of three
events is then 72 bytes, however long its texts are.

Earlier versions made ids with BLAKE2b, of the whole identities of all events. A matcher whose snapshot such a version
wrote continues with them, so that a match keeps its id: a retraction has that of its insertion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.identity import (
    DIGEST_SIZE,
    canonical_parts,
    digests,
    joined,
    raw_bytes,
)
from cepheid.kernel.arrays import Int32s, Words
from cepheid.kernel.hexadecimal import hexadecimal
from cepheid.kernel.row_hashes import row_hashes
from cepheid.kernel.siphash import Records, siphash_records

Hashes: TypeAlias = npt.NDArray[np.uint8]
"""(n, 16) one hash per row."""

_NO_STAGES = np.empty(0, np.int32)

EVENT_KEY = b"cepheid event id"
"""The key of the hashes of events."""


class Ids(IntEnum):
    """How ids are made. Snapshots store the number."""

    BLAKE2B = 1
    SIPHASH = 2


class Members(NamedTuple):
    """What ids are made of: n rows with m members in all, of which most are events."""

    event: Int32s
    """(m,) the number of each event; -1 for a member that is not an event."""
    ends: Ints
    """(n,) the members of row i end before ends[i]."""
    before: tuple[npt.NDArray[Any], ...] = ()
    """Marks, (m,) integers each."""
    after: tuple[npt.NDArray[Any], ...] = ()
    """Further marks. With BLAKE2b they come after the event, and those in `before` come before it."""
    stage: Int32s | None = None
    """(m,) for matches of stages: the number of the event's stage. It is the first mark. BLAKE2b hashes two bytes of
    it.
    """


class Identities(Protocol):
    """The identities of events, ready for ids."""

    def hashes(self, members: Members, key: bytes) -> Hashes:
        """The ids of the rows, as bytes. The key is a `purpose`."""

    def hashes_with(self, keys: Sequence[bytes], bounds: Ints, members: Members) -> Hashes:
        """The same with several keys: that of the rows from bounds[i] to before bounds[i + 1] is keys[i]."""


class Identifying(NamedTuple):
    """The columns that identify events."""

    columns: Sequence[pa.Array]
    length: int
    """The number of events."""


def identified(ids: Ids, events: Identifying) -> Identities:
    """The identities of events, ready for ids of this kind. They are the canonical bytes of the columns."""
    if ids is Ids.BLAKE2B:
        return _Bytes(pa.concat_arrays([pa.array([], pa.large_binary()), *canonical_parts(*events)]))
    return _Hashed(row_hashes(*events, EVENT_KEY))


class _Identities(ABC):
    def hashes(self, members: Members, key: bytes) -> Hashes:
        return self.hashes_with([key], np.array([0, len(members.ends)]), members)

    @abstractmethod
    def hashes_with(self, keys: Sequence[bytes], bounds: Ints, members: Members) -> Hashes: ...


@dataclass(frozen=True)
class _Hashed(_Identities):
    """Identities for `Ids.SIPHASH`."""

    events: Words
    """(events, 2) the hash of each event's identity."""

    def hashes_with(self, keys: Sequence[bytes], bounds: Ints, members: Members) -> Hashes:
        each = *members.before, *members.after
        marks = np.empty((len(members.event), len(each)), np.int64)
        for place, mark in enumerate(each):
            marks[:, place] = mark
        places, rows = np.concatenate([[0], members.ends]), pairwise(bounds.tolist())
        event = np.ascontiguousarray(members.event, np.int32)
        stage = _NO_STAGES if members.stage is None else np.ascontiguousarray(members.stage, np.int32)
        records = Records(event, stage, marks, places)
        found = [
            siphash_records(self.events, records._replace(bounds=places[begin : end + 1]), key)
            for key, (begin, end) in zip(keys, rows, strict=True)
        ]
        return _joined(found).view(np.uint8)


@dataclass(frozen=True)
class _Bytes(_Identities):
    """Identities for `Ids.BLAKE2B`."""

    events: pa.Array
    """The canonical bytes of each event."""

    def hashes_with(self, keys: Sequence[bytes], bounds: Ints, members: Members) -> Hashes:
        events = self.events.take(pa.array(members.event, mask=members.event < 0)).fill_null(b"")
        stages = () if members.stage is None else (members.stage.astype(np.int16),)
        rows = joined(*map(raw_bytes, (*stages, *members.before)), events, *map(raw_bytes, members.after))
        ends, found = np.concatenate([[0], members.ends]), list[bytes]()
        for key, (begin, end) in zip(keys, pairwise(bounds.tolist()), strict=True):
            some = rows.slice(ends[begin], ends[end] - ends[begin])
            found += digests(some, ends[begin + 1 : end + 1] - ends[begin], key)
        return np.frombuffer(b"".join(found), np.uint8).reshape(-1, DIGEST_SIZE)


def _joined(parts: Sequence[Words]) -> Words:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def single(events: Sequence[int] | Int32s) -> Members:
    """Rows of one event each, without marks."""
    return Members(np.asarray(events, np.int32), np.arange(1, len(events) + 1))


def purpose(name: str, kind: str) -> bytes:
    """The key of the ids for a pattern (by name) and a kind of row, so that their ids differ from all others."""
    return blake2b(name.encode(), digest_size=blake2b.PERSON_SIZE, person=kind.encode()).digest()


def hex_ids(found: Hashes) -> pa.Array:
    """The hashes as hexadecimal text."""
    length = 2 * DIGEST_SIZE
    end = np.int32(len(found) * length)  # raises if 32 bits are too few
    offsets = np.arange(0, int(end) + 1, length, dtype=np.int32)
    text = hexadecimal(np.ascontiguousarray(found))
    return pa.Array.from_buffers(pa.string(), len(found), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
