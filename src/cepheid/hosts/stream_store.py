"""What a shard keeps in Spark's state store, and how it is reached there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol


class Head(NamedTuple):
    """What is read of a shard in every call."""

    state: bytes
    """A name that no other state of any shard has."""
    entries: int
    log_bytes: int
    room: int
    """Bytes that the log may have."""
    passed: int
    """Microseconds: time has passed to here."""
    open: int
    """How many partial matches are."""
    timer: int | None


class Entry(NamedTuple):
    """What came in one call."""

    passed: int
    """Time had passed to here (microseconds): what came with an earlier time, or this one, was late."""
    events: bytes
    digest: bytes
    """Of the events: Arrow trusts what it reads."""

    @staticmethod
    def of(passed: int, events: bytes) -> Entry:
        return Entry(passed, events, _digest(events))

    @property
    def is_whole(self) -> bool:
        return _digest(self.events) == self.digest


class Kept(Protocol):
    """What is behind a head."""

    def snapshot(self) -> bytes: ...

    def log(self) -> Sequence[Entry]:
        """In the order of writing."""


class Store(Kept, Protocol):
    """Where a shard is kept."""

    def head(self) -> Head | None:
        """None where the shard has no state."""

    def write(self, head: Head, snapshot: bytes) -> None:
        """In place of all that was kept."""

    def append(self, head: Head, entry: Entry) -> None: ...

    def clear(self) -> None: ...


def _digest(events: bytes) -> bytes:
    return blake2b(events, digest_size=16).digest()
