"""The store in a folder of files: a log of transactions before a database in memory.

A transaction is one record of a log and one sync of the disk, see `journal`. Users query the rows with DuckDB, see
`rows`. Its database is in memory and only a projection: keeping it in a file of DuckDB would mean two commits for a
feed, and rows written by a feed cost more than matching its events (10,000 events: 20 ms to match, 200 ms to store in
DuckDB). So a feed only appends what was found to the log, from where it comes to the database in groups. The rows of
open partial matches are not even in the log: its events and snapshots have the matcher's state, from which they are
listed when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.hosts.durable.disk_errors import refusing
from cepheid.hosts.durable.documents import (
    deployment_from_json,
    deployment_to_json,
    input_from_json,
    input_to_json,
)
from cepheid.hosts.durable.state import Deployment, Input, Stored
from cepheid.hosts.durable.store import RowTable, Sent
from cepheid.hosts.durable.stores.files.contents import (
    HEAD_KINDS,
    Contents,
    entry_change,
    head_of,
    head_to_json,
    keep_change,
    numbers_to_json,
    part_change,
    place_change,
    table_to_json,
)
from cepheid.hosts.durable.stores.files.copies import copy
from cepheid.hosts.durable.stores.files.disk import Disk
from cepheid.hosts.durable.stores.files.journal import LOG_SIZE, Journal
from cepheid.hosts.durable.stores.files.records import Change
from cepheid.hosts.durable.stores.files.recovery import ROWS
from cepheid.hosts.durable.stores.files.rows import RowTables
from cepheid.hosts.durable.stores.layout import OUTBOX_TABLE
from cepheid.hosts.durable.stores.results import MOST_RESULT
from cepheid.hosts.durable.stores.user_tables import check_types
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.hosts.shards.store import Entry, Head


class FileStore:
    """A HostStore."""

    lists_when_asked = True

    def __init__(self, folder: Path, disk: Disk | None = None, log_size: int = LOG_SIZE) -> None:
        """Opens the store in the folder, which is made if it is not there.

        Raises:
            StoreError, SnapshotError: as `Journal`.
        """
        self._folder = folder
        self._disk = Disk() if disk is None else disk
        self._journal = Journal(folder, self._disk, log_size)
        self._cleared: list[tuple[RowTable, str]] = []
        try:
            self._rows = RowTables(folder / ROWS, self._journal.contents)
        except BaseException:
            self._journal.close()
            raise

    def reopen(self) -> None:
        self._journal.open()
        self._rows.close()
        self._rows = RowTables(self._folder / ROWS, self._journal.contents)

    def load(self) -> Stored:
        contents = self._journal.contents
        inputs = [input_from_json(contents.inputs[name]) for name in sorted(contents.inputs)]
        deployments = [deployment_from_json(contents.deployments[number]) for number in sorted(contents.deployments)]
        self._rows.forget_open()
        self._cleared = []
        return Stored(inputs, deployments, contents.sent, self._journal.ids)

    def shard(self, deployment: int) -> FileShard:
        return FileShard(self._journal.contents, deployment)

    def kept(self, source: str) -> Iterator[bytes]:
        for feed in self._journal.contents.kept.get(source, []):
            yield feed.events.read()

    @contextmanager
    def transaction(self) -> Iterator[FileTransaction]:
        if self._journal.is_long:
            self._write_snapshot()
        self._rows.keep_up(self._journal.contents)
        transaction = FileTransaction(self._journal.contents, self._rows)
        yield transaction
        self._journal.commit(transaction.changes)
        self._cleared += transaction.cleared

    def _write_snapshot(self) -> None:
        """Moves the rows since the last snapshot to files, and all else to a snapshot."""
        with refusing(f"the store {self._folder} cannot be written"):
            files = self._rows.flush(self._journal.contents, self._disk, self._journal.number + 1)
            self._journal.replace(files)
            self._rows.flushed(self._journal.contents, self._disk)

    # Reading

    @contextmanager
    def listing(self) -> Iterator[RowTables]:
        self._rows.refresh(self._journal.contents)
        with self._rows.changing():
            for table, version in self._cleared:
                self._rows.clear(table, version)
            self._cleared = []
            yield self._rows

    def reader(self) -> Callable[[str], pa.Table]:
        return self._rows.reader(MOST_RESULT)

    def own_reader(self) -> Callable[[str], pa.Table]:
        return self._rows.reader(None)

    def backup(self, path: Path) -> None:
        self._write_snapshot()
        copy(self._folder, self._journal.number, self._journal.contents.files, to=path, disk=self._disk)

    def close(self) -> None:
        self._rows.close()
        self._journal.close()


class FileTransaction:
    """A Transaction."""

    def __init__(self, contents: Contents, rows: RowTables) -> None:
        self._contents, self._rows = contents, rows
        self.changes: list[Change] = []
        self.cleared: list[tuple[RowTable, str]] = []

    def shard(self, deployment: int) -> FileShard:
        return FileShard(self._contents, deployment, self.changes)

    def save_input(self, given: Input) -> None:
        self._add("input", input_to_json(given))

    def save_deployment(self, deployment: Deployment) -> None:
        self._add("deployment", deployment_to_json(deployment))

    def keep(self, source: str, number: int, latest: int, events: bytes) -> None:
        self.changes.append(keep_change(source, number, latest, events))

    def forget(self, source: str, until: int) -> None:
        if any(feed.latest < until for feed in self._contents.kept.get(source, [])):
            self._add("forget", {"input": source, "until": until})

    def create(self, table: RowTable) -> None:
        known = self._contents.tables.get(table.name)
        there = pa.schema([]) if known is None else known.columns
        check_types(table.name, self._rows.type_names(there), self._rows.type_names(table.columns))
        new = [field for field in table.columns if field.name not in there.names]
        if new:
            self._add("table", table_to_json(table.name, pa.schema([*there, *new]), table.id))

    def insert(self, table: RowTable, rows: pa.Table) -> None:
        self._add("rows", {"table": table.name}, to_stream(rows))

    def delete(self, table: RowTable, ids: Sequence[str]) -> None:
        self._add("gone", {"table": table.name, "ids": [*ids]})

    def remove_older(self, table: RowTable, time: int) -> None:
        self._add("older", {"table": table.name, "time": time})

    def keep_latest(self, table: RowTable, rows: int) -> None:
        self._add("latest", {"table": table.name, "rows": rows})

    def clear(self, table: RowTable, version: str) -> None:
        self.cleared.append((table, version))

    def send(self, sent: Sequence[Sent]) -> None:
        for one in sent:
            about = {"table": OUTBOX_TABLE, "pattern": one.pattern, "version": one.version}
            self._add("outbox", about | numbers_to_json(one.numbers), to_stream(one.rows))
        self._add("sent", {"number": max(one.numbers[-1] for one in sent)})

    def forget_sent(self, first: int) -> None:
        self._add("forget_sent", {"table": OUTBOX_TABLE, "first": first})

    def _add(self, kind: str, value: dict[str, Any], content: bytes | None = None) -> None:
        self.changes.append(Change(kind, value, content))


class FileShard:
    """The state of a deployment's matcher: a `ShardStore`. Without `changes` it is only read."""

    def __init__(self, contents: Contents, deployment: int, changes: list[Change] | None = None) -> None:
        self._contents, self._deployment = contents, deployment
        self._changes = [] if changes is None else changes

    def head(self) -> Head | None:
        for change in reversed(self._changes):
            if change.kind in HEAD_KINDS and change.value["deployment"] == self._deployment:
                return None if change.kind == "clear" else head_of(change.value["head"])
        shard = self._contents.shards.get(self._deployment)
        return None if shard is None else shard.head

    def snapshot(self) -> bytes:
        return b"".join(part.read() for part in self._contents.shards[self._deployment].parts)

    def log(self) -> list[Entry]:
        return [entry.read() for entry in self._contents.shards[self._deployment].log]

    def entry(self, number: int) -> Entry:
        return self._contents.shards[self._deployment].log[number - 1].read()

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:  # noqa: ARG002
        self.write_part(0, snapshot)
        self._changes.append(place_change(self._deployment, head, None))

    def write_part(self, number: int, content: bytes) -> None:
        self._changes.append(part_change(self._deployment, number, content))

    def put_in_place(self, head: Head, since: int, before: Head) -> None:  # noqa: ARG002
        self._changes.append(place_change(self._deployment, head, since))

    def append(self, head: Head, entry: Entry | None) -> None:
        if entry is not None:
            self._changes.append(entry_change(self._deployment, head, entry))
        else:
            about = {"deployment": self._deployment, "head": head_to_json(head)}
            self._changes.append(Change("head", about))

    def clear(self, before: Head) -> None:  # noqa: ARG002
        self._changes.append(Change("clear", {"deployment": self._deployment}))
