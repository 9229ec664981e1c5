"""The border between a durable host and its store. What happens within a transaction is stored whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from cepheid.hosts.durable.state import Deployment, Input, Stored
from cepheid.hosts.shards.store import Entry, Head, Store


class RowTable(NamedTuple):
    """A table of rows for users: open partial matches, matches, timeouts or late events of a pattern."""

    name: str
    columns: pa.Schema
    id: str | None
    """The column with the ids by which rows are removed. None: rows are found by their indexes, as each index costs a
    write per row.
    """
    indexes: tuple[tuple[str, ...], ...] = ()
    looked_up: tuple[str, ...] = ()
    """Columns with an index for equality alone. Their values may be of any length."""
    is_small: bool = False
    """Whether it has few rows, which are replaced often."""
    place: str | None = None
    """The column that distinguishes the rows of one id, if an id has several rows; these are inserted at once."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return tuple(name for name in (self.id, self.place) if name is not None)


class ShardWriter(Protocol):
    """Writes the state of a deployment. Its next snapshot may be written in parts, while the present one and its log
    remain the state.
    """

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        """Replaces all of the stored state."""

    def append(self, head: Head, entry: Entry | None) -> None:
        """Appends an entry to the log. None: there were no events, and only the head is new."""

    def write_part(self, number: int, content: bytes) -> None:
        """Writes a part of the next snapshot. Number 0 comes first, and begins it anew."""

    def put_in_place(self, head: Head, since: int, before: Head) -> None:
        """Makes the parts written the snapshot, in place of the one before and the first `since` entries of its
        log. `head` is that of the new state, `before` the one that it replaces.
        """


class ShardStore(ShardWriter, Store, Protocol):
    """The place where the state of a deployment is stored."""


class Sent(NamedTuple):
    """What a step of a pattern has found, for the outbox."""

    numbers: Sequence[int]
    """The numbers of the rows in the outbox, ascending. Those of other patterns may lie between them."""
    pattern: str
    version: str
    rows: pa.Table


class OpenPart(NamedTuple):
    """A part of the rows of open partial matches: those of a version of a pattern."""

    table: RowTable
    version: str
    keys: Sequence[str]
    """The keys (values of `key_id`) whose rows are replaced; other keys of the part have none before."""
    rows: int
    """How many there are."""


class OpenRows(Protocol):
    """Writes rows of open partial matches."""

    def replace_open(self, rows: pa.Table, parts: Sequence[OpenPart]) -> None:
        """Makes the rows of each part the only ones that its keys have of its version. The parts follow one
        another, and together are all rows. Rows whose ids (`id`) are there already are not written again.
        """

    def delete_expired(self, table: RowTable, version: str, until: int) -> None:
        """Removes the version's rows with a `wakeup` up to `until` (microseconds)."""


class Transaction(Protocol):
    """The writes of one transaction."""

    def shard(self, deployment: int) -> ShardStore:
        """The state of a deployment's matcher."""

    def save_input(self, given: Input) -> None:
        """Adds or replaces the input of this name."""

    def save_deployment(self, deployment: Deployment) -> None:
        """Adds or replaces the deployment of this number."""

    def keep(self, source: str, number: int, latest: int, events: bytes) -> None:
        """Keeps a feed of the input; `latest` (microseconds) is the time of its latest event."""

    def forget(self, source: str, until: int) -> None:
        """Removes the input's kept feeds whose latest event is before `until` (microseconds)."""

    def create(self, table: RowTable) -> None:
        """Makes the table, or adds the columns that it lacks.

        Raises:
            StoreError: there is a table of this name that is not the host's, or a column has another type.
        """

    def insert(self, table: RowTable, rows: pa.Table) -> None:
        """Adds rows; those whose id is there already are left out."""

    def delete(self, table: RowTable, ids: Sequence[str]) -> None:
        """Removes rows by their ids."""

    def remove_older(self, table: RowTable, time: int) -> None:
        """Removes the rows with a `detected_at` before the time (microseconds)."""

    def keep_latest(self, table: RowTable, rows: int) -> None:
        """Removes all but so many rows with the greatest `detected_at`, and those of the time of the last of these."""

    def clear(self, table: RowTable, version: str) -> None:
        """Removes all rows of open partial matches that the version has."""

    def send(self, sent: Sequence[Sent]) -> None:
        """Adds what was found to the outbox. The numbers follow those in the outbox without gaps."""

    def forget_sent(self, first: int) -> None:
        """Removes the rows of the outbox before this number."""


class HostStore(Protocol):
    """The place where a durable host stores everything. One host has it open for writing."""

    def reopen(self) -> None:
        """Opens the store anew after a StoreError.

        Raises:
            StoreError: that is not possible either.
        """

    def load(self) -> Stored:
        """What is stored."""

    def shard(self, deployment: int) -> Store:
        """The state of a deployment's matcher, for reading."""

    def kept(self, source: str) -> Iterable[bytes]:
        """The kept feeds of the input, in their order."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Stores what is written within the block, unless it raises.

        Raises:
            StoreError: another host has taken over the store, or it cannot be written.
        """

    lists_when_asked: bool
    """Whether rows of open partial matches are written only before a query, and not in each transaction. Only a store
    that nobody but its host can query may do so. After `load` it has none.
    """

    def listing(self) -> AbstractContextManager[OpenRows]:
        """Writes rows of open partial matches: in the transaction that is open, or, if the store lists when asked, for
        the next reader.
        """

    def reader(self) -> Callable[[str], pa.Table]:
        """Gives the result of one query, as things are now; the query can change nothing. The result may be called by
        any thread, and raises StoreError if the database refuses the query.
        """

    def own_reader(self) -> Callable[[str], pa.Table]:
        """The same for a query of the host itself, which need not be checked."""

    def backup(self, path: Path) -> None:
        """Writes all that is stored to a new file or folder, from which `open_store.restore` makes a store.

        Raises:
            StoreError: there is something at the path already, or it cannot be written.
        """

    def close(self) -> None:
        """Gives up the store."""


OUTBOX = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("pattern", pa.string(), nullable=False),
        pa.field("version", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("match_id", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
    ]
)
"""The columns of what is sent: the number, in order without gaps; what was found; and the whole row as JSON."""
