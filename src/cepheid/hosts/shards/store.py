"""The border between live matchers and where their state is stored: a head, a snapshot, and the log of events since.

A *shard* is the keys of a pattern that share one matcher, with its state. On Spark it is one of several parts of all
keys; in a durable host it is all keys of a deployed pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

from cepheid.errors import SnapshotError
from cepheid.matchers.watermark import Reached

FORMAT = 2
"""The format of head and log, and of a stream's ledger: increased when older versions can no longer read it. Format 1
is read, too: its logs have no narrow events, and one stream in an entry. Snapshots have their own.
"""

PUT_BACK = "Restore the checkpoint from a copy, or give the query a new one"


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
    over: bool = True
    """Whether the watermark is past `passed`, not within it. On Spark it always is."""
    open_of_each: tuple[int, ...] = ()
    """The number of open partial matches of each pattern, if several have the shard, as they may on Spark. Empty: there
    is one pattern, or a version wrote the head that stored only the sum.
    """

    @property
    def reached(self) -> Reached:
        """The watermark."""
        return Reached(self.passed, self.over)


class Entry(NamedTuple):
    """The events of one call."""

    passed: int
    """The watermark at the call, in microseconds: events at this time or earlier were late."""
    events: bytes
    digest: bytes
    """The digest of both, as Arrow does not verify what it reads."""
    over: bool = True
    """As in Head."""

    @staticmethod
    def of(reached: Reached, events: bytes) -> Entry:
        return Entry(reached.time, events, _digest(reached, events), reached.over)

    @property
    def is_whole(self) -> bool:
        return _digest(self.reached, self.events) == self.digest

    @property
    def reached(self) -> Reached:
        """The watermark at the call."""
        return Reached(self.passed, self.over)


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


def check_format(written: int, known: int = FORMAT) -> None:
    """`known` is the highest format that this version reads.

    Raises:
        SnapshotError: another version wrote it, in a format that this one does not read.
    """
    if not 1 <= written <= known:
        advice = "Use the version of Cepheid that wrote it, or give the query a new checkpoint"
        raise SnapshotError(
            f"the checkpoint has format {written}, and this version reads formats up to {known}. {advice}"
        )


def _digest(reached: Reached, events: bytes) -> bytes:
    within = b"" if reached.over else b"within"
    return blake2b(reached.time.to_bytes(8, "little", signed=True) + within + events, digest_size=16).digest()
