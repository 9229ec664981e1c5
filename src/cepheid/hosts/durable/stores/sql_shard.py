"""The state of a deployed pattern in a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.hosts.durable.stores.database import Database
from cepheid.hosts.durable.stores.layout import HEADS, LOG, PART, SNAPSHOTS, TABLES
from cepheid.hosts.shards.store import Entry, Head


class _Places(NamedTuple):
    """Where the rows of the present state are; those of the next snapshot come after its parts."""

    first_part: int = 0
    parts: int = 0
    first_entry: int = 1


class SqlShard:
    """The state of a deployment's matcher: a `ShardStore`. Heads and entries of the log are written by `flush`, as a
    step may change many deployments.
    """

    def __init__(self, database: Database, deployment: int) -> None:
        self._database = database
        self._deployment = deployment
        self._places = _Places()
        self._parts = 0
        """The parts of the next snapshot."""
        self.unsaved_head: tuple[Any, ...] | None = None
        self.unsaved_entries: list[tuple[Any, ...]] = []

    def head(self) -> Head | None:
        """The head as it was after the last transaction. It must be read before anything is written."""
        rows = self._select(", ".join(TABLES[HEADS].names[1:]), HEADS, "1")
        if not rows:
            return None
        format_, state, *numbers, over, first_part, parts, first_entry = rows[0]
        self._places = _Places(first_part, parts, first_entry)
        entries, log_bytes, room, passed, open_, timer = numbers
        return Head(format_, bytes(state), entries, log_bytes, room, passed, open_, timer, bool(over))

    def snapshot(self) -> bytes:
        first = self._places.first_part
        condition = f"part >= {first:d} AND part < {first + self._places.parts:d}"
        return b"".join(bytes(part) for (part,) in self._select("content", SNAPSHOTS, "part", condition))

    def log(self) -> list[Entry]:
        condition = f"number >= {self._places.first_entry:d}"
        found = self._select("passed, events, digest, over", LOG, "number", condition)
        return [Entry(passed, bytes(events), bytes(digest), bool(over)) for passed, events, digest, over in found]

    def entry(self, number: int) -> Entry:
        return self.log()[number - 1]

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        if before is not None:
            self.clear(before)
        parts = [snapshot[start : start + PART] for start in range(0, len(snapshot), PART)]
        rows = {"deployment": [self._deployment] * len(parts), "part": [*range(len(parts))], "content": parts}
        self._database.insert(SNAPSHOTS, pa.table(rows, schema=TABLES[SNAPSHOTS]))
        self._places, self._parts = _Places(parts=len(parts)), 0
        self._save(head)

    def append(self, head: Head, entry: Entry | None) -> None:
        self._save(head)
        if entry is not None:
            number = self._places.first_entry + head.entries - 1
            row = (self._deployment, number, entry.passed, entry.events, entry.digest, entry.over)
            self.unsaved_entries.append(row)

    def write_part(self, number: int, content: bytes) -> None:
        at = self._places.first_part + self._places.parts + number
        if number == 0:  # a host that ended may have left some
            self._delete(SNAPSHOTS, f"part >= {at:d}")
        row = {"deployment": [self._deployment], "part": [at], "content": [content]}
        self._database.insert(SNAPSHOTS, pa.table(row, schema=TABLES[SNAPSHOTS]))
        self._parts = number + 1

    def put_in_place(self, head: Head, since: int, before: Head) -> None:  # noqa: ARG002 - as for `clear`
        first_part, parts, first_entry = self._places
        self._places = _Places(first_part + parts, self._parts, first_entry + since)
        self._delete(SNAPSHOTS, f"part < {self._places.first_part:d}")
        self._delete(LOG, f"number < {self._places.first_entry:d}")
        self._save(head)

    def clear(self, before: Head) -> None:  # noqa: ARG002 - the border has it for stores that cannot delete by key
        self.unsaved_head, self.unsaved_entries = None, []
        for table in (HEADS, SNAPSHOTS, LOG):
            self._delete(table)

    def _save(self, head: Head) -> None:
        # All but `open_of_each`: a deployment has one pattern.
        self.unsaved_head = (self._deployment, *head[:-1], *self._places)

    def _delete(self, table: str, condition: str = "TRUE") -> None:
        self._database.execute(f"DELETE FROM {table} WHERE deployment = {self._deployment:d} AND {condition}")

    def _select(self, columns: str, table: str, order: str, condition: str = "TRUE") -> list[tuple[Any, ...]]:
        where = f"deployment = {self._deployment:d} AND {condition}"
        return self._database.rows(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}")


def flush(database: Database, shards: Iterable[SqlShard]) -> None:
    """Writes the heads and entries of all shards."""
    changed = [shard for shard in shards if shard.unsaved_head is not None]
    heads = [shard.unsaved_head for shard in changed if shard.unsaved_head is not None]
    if heads:
        numbers = ", ".join(str(head[0]) for head in heads)
        database.execute(f"DELETE FROM {HEADS} WHERE deployment IN ({numbers})")
        _insert(database, HEADS, heads)
    if entries := [entry for shard in changed for entry in shard.unsaved_entries]:
        _insert(database, LOG, entries)
    for shard in changed:
        shard.unsaved_head, shard.unsaved_entries = None, []


def _insert(database: Database, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = [
        pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), TABLES[table], strict=True)
    ]
    database.insert(table, pa.Table.from_arrays(columns, schema=TABLES[table]))
