"""What a shard keeps in Spark's state store, and how it is reached there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from cepheid.errors import SnapshotError
from cepheid.matchers.snapshot import fitting

SHARD, EVENTS = "_shard", "_events"
"""The columns of what comes for a shard: its number, and events."""

FORMAT = 1
"""Of head, log and ledger: raised when older versions can no longer read what is written. A snapshot has its own."""

PUT_BACK = "Put the checkpoint back as it was, from a copy, or give the query one of its own"


def ledger(pattern: int) -> int:
    """The number of the pattern's shard without events, which is called in every batch that has any: it knows what the
    checkpoint is of. And of such a number the pattern's.
    """
    return -1 - pattern


class Head(NamedTuple):
    """What is read of a shard in every call."""

    format: int
    """FORMAT of the version that wrote it."""
    state: bytes
    """Names the snapshot and the log behind it: `named_behind`."""
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
    """Of both: Arrow trusts what it reads."""

    @staticmethod
    def of(passed: int, events: bytes) -> Entry:
        return Entry(passed, events, _digest(passed, events))

    @property
    def is_whole(self) -> bool:
        return _digest(self.passed, self.events) == self.digest


def named_behind(state: bytes, entry: Entry) -> bytes:
    """The name of a state with one more entry. A snapshot's is random, so that equal names are of the same snapshot and
    log; how far time has passed behind them the head says.
    """
    return blake2b(state + entry.digest, digest_size=16).digest()


class Kept(Protocol):
    """What is behind a head."""

    def snapshot(self) -> bytes: ...

    def log(self) -> Sequence[Entry]:
        """In the order of writing."""


class Store(Kept, Protocol):
    """Where a shard is kept."""

    def head(self) -> Head | None:
        """None where the shard has no state."""

    def entry(self, number: int) -> Entry:
        """Of the log, from 1.

        Raises:
            SnapshotError: it is not there.
        """

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        """In place of all that was kept."""

    def append(self, head: Head, entry: Entry | None) -> None:
        """Behind the log; None: nothing came, and only the head is another."""

    def clear(self, before: Head) -> None: ...


def check_format(written: int) -> None:
    """
    Raises:
        SnapshotError: another version wrote it, in a format that this one does not read.
    """
    if written != FORMAT:
        advice = "Go on with the version of Cepheid that wrote it, or give the query a checkpoint of its own"
        raise SnapshotError(f"the checkpoint is of format {written}, and this version reads {FORMAT}. {advice}")


def ledger_bytes(made_for: dict[str, Any], asked: dict[str, Any]) -> bytes:
    """What the checkpoint is of, and what its plan is made from."""
    return json.dumps({"format": FORMAT, "made_for": made_for, "asked": asked}).encode()


def from_ledger(kept: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `ledger_bytes` was given.

    Raises:
        SnapshotError: it is no ledger, or of a format that is not known.
    """
    try:
        with fitting("the checkpoint's ledger"):
            told = json.loads(kept)
            written, *of = told["format"], told["made_for"], told["asked"]
    except SnapshotError as error:
        raise SnapshotError(f"{error}. {PUT_BACK}") from error
    check_format(written)
    made_for, asked = of
    return made_for, asked


def _digest(passed: int, events: bytes) -> bytes:
    return blake2b(passed.to_bytes(8, "little", signed=True) + events, digest_size=16).digest()
