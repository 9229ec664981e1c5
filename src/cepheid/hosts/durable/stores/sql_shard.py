"""The state of a deployed pattern in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cepheid.hosts.durable.stores.database import Database
from cepheid.hosts.durable.stores.layout import HEADS, LOG, PART, SNAPSHOTS, TABLES
from cepheid.hosts.shards.store import Entry, Head


class SqlShard:
    """The state of a deployment's matcher: a `hosts.shards.store.Store`."""

    def __init__(self, database: Database, deployment: int) -> None:
        self._database = database
        self._deployment = deployment

    def head(self) -> Head | None:
        rows = self._select(", ".join(TABLES[HEADS].names[1:]), HEADS, "1")
        if not rows:
            return None
        format_, state, *numbers, over = rows[0]
        entries, log_bytes, room, passed, open_, timer = numbers
        return Head(format_, bytes(state), entries, log_bytes, room, passed, open_, timer, bool(over))

    def snapshot(self) -> bytes:
        return b"".join(bytes(part) for (part,) in self._select("content", SNAPSHOTS, "part"))

    def log(self) -> list[Entry]:
        found = self._select("passed, events, digest, over", LOG, "number")
        return [Entry(passed, bytes(events), bytes(digest), bool(over)) for passed, events, digest, over in found]

    def entry(self, number: int) -> Entry:
        return self.log()[number - 1]

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        if before is not None:
            self.clear(before)
        parts = [snapshot[start : start + PART] for start in range(0, len(snapshot), PART)]
        numbers = [*range(len(parts))]
        rows = {"deployment": [self._deployment] * len(parts), "part": numbers, "content": parts}
        self._database.insert(SNAPSHOTS, pa.table(rows, schema=TABLES[SNAPSHOTS]))
        self._insert_head(head)

    def append(self, head: Head, entry: Entry | None) -> None:
        self._delete(HEADS)
        self._insert_head(head)
        if entry is not None:
            row = (self._deployment, head.entries, entry.passed, entry.events, entry.digest, entry.over)
            self._insert(LOG, row)

    def clear(self, before: Head) -> None:  # noqa: ARG002 - the border has it for stores that cannot delete by key
        for table in (HEADS, SNAPSHOTS, LOG):
            self._delete(table)

    def _insert_head(self, head: Head) -> None:
        self._insert(HEADS, (self._deployment, *head))

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        columns = [pa.array([value], field.type) for value, field in zip(row, TABLES[table], strict=True)]
        self._database.insert(table, pa.Table.from_arrays(columns, schema=TABLES[table]))

    def _delete(self, table: str) -> None:
        self._database.execute(f"DELETE FROM {table} WHERE deployment = {self._deployment:d}")

    def _select(self, columns: str, table: str, order: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM {table} WHERE deployment = {self._deployment:d} ORDER BY {order}"
        return self._database.rows(query)
