"""The state of a shard in Spark's state store, and how it is read and written there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from cepheid.errors import SnapshotError
from cepheid.matchers.snapshot import fitting

SHARD, EVENTS = "_shard", "_events"
"""The columns of a shard's input: its number, and events."""

FORMAT = 1
"""The format of head, log and ledger: increased when older versions can no longer read it. Snapshots have their own."""

PUT_BACK = "Restore the checkpoint from a copy, or give the query a new one"


def ledger_shard(pattern: int) -> int:
    """The number of the pattern's ledger shard. It has no events: it stores what the checkpoint was written for. It is
    called in every batch that has events.
    """
    return -1 - pattern


def pattern_of_ledger(shard: int) -> int:
    """The number of the pattern whose ledger shard this is."""
    return -1 - shard


class Head(NamedTuple):
    """The part of a shard's state that every call reads."""

    format: int
    """FORMAT of the version that wrote it."""
    state: bytes
    """The name of the snapshot with the log after it: see `state_name_after`."""
    entries: int
    log_bytes: int
    room: int
    """The number of bytes that the log may have."""
    passed: int
    """The watermark, in microseconds."""
    open: int
    """The number of open partial matches."""
    timer: int | None


class Entry(NamedTuple):
    """The events of one call."""

    passed: int
    """The watermark at the call, in microseconds: events at this time or earlier were late."""
    events: bytes
    digest: bytes
    """The digest of both, as Arrow does not verify what it reads."""

    @staticmethod
    def of(passed: int, events: bytes) -> Entry:
        return Entry(passed, events, _digest(passed, events))

    @property
    def is_whole(self) -> bool:
        return _digest(self.passed, self.events) == self.digest


def state_name_after(state: bytes, entry: Entry) -> bytes:
    """The name of a state after one more entry. A new snapshot has a random name, so equal names mean the same snapshot
    and log. The name does not depend on how far time has advanced since: the head has that.
    """
    return blake2b(state + entry.digest, digest_size=16).digest()


class ShardState(Protocol):
    """The state that a head describes."""

    def snapshot(self) -> bytes: ...

    def log(self) -> Sequence[Entry]:
        """The entries, in the order in which they were written."""


class Store(ShardState, Protocol):
    """The place where a shard's state is stored."""

    def head(self) -> Head | None:
        """The head; None if the shard has no state."""

    def entry(self, number: int) -> Entry:
        """The entry of the log with this number, from 1.

        Raises:
            SnapshotError: it is not there.
        """

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        """Replaces all of the stored state."""

    def append(self, head: Head, entry: Entry | None) -> None:
        """Appends an entry to the log. None: there were no events, and only the head is new."""

    def clear(self, before: Head) -> None: ...


def check_format(written: int) -> None:
    """
    Raises:
        SnapshotError: another version wrote it, in a format that this one does not read.
    """
    if written != FORMAT:
        advice = "Use the version of Cepheid that wrote it, or give the query a new checkpoint"
        raise SnapshotError(f"the checkpoint has format {written}, and this version reads {FORMAT}. {advice}")


def ledger_bytes(made_for: dict[str, Any], asked: dict[str, Any]) -> bytes:
    """The ledger: what the checkpoint was written for, and what its plan is made from."""
    return json.dumps({"format": FORMAT, "made_for": made_for, "asked": asked}).encode()


def from_ledger(stored: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments from which `ledger_bytes` made the ledger.

    Raises:
        SnapshotError: it is not a ledger, or has an unknown format.
    """
    try:
        with fitting("the checkpoint's ledger"):
            content = json.loads(stored)
            written, made_for, asked = content["format"], content["made_for"], content["asked"]
    except SnapshotError as error:
        raise SnapshotError(f"{error}. {PUT_BACK}") from error
    check_format(written)
    return made_for, asked


def _digest(passed: int, events: bytes) -> bytes:
    return blake2b(passed.to_bytes(8, "little", signed=True) + events, digest_size=16).digest()
