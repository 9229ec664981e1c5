"""The store in a SQL database: what all databases share. What differs is in `Database`, one module each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.documents import (
    deployment_from_json,
    deployment_to_json,
    input_from_json,
    input_to_json,
)
from cepheid.hosts.durable.state import BEFORE_ALL, Deployment, Input, Stored
from cepheid.hosts.durable.store import OUTBOX, RowTable
from cepheid.hosts.shards.store import Entry, Head

FORMAT = 1
"""Increased when older versions can no longer read a store."""
IDS = 2
"""The kind of ids that new stores have."""
PART = 1 << 24
"""The most bytes of a snapshot in one row: PostgreSQL's values have at most 1 GB."""

HOST, INPUTS, PATTERNS, OUTBOX_TABLE = "cepheid_host", "inputs", "patterns", "outbox"
HEADS, SNAPSHOTS, LOG, EVENTS = "cepheid_heads", "cepheid_snapshots", "cepheid_log", "cepheid_events"

_INTEGER, _TEXT, _BYTES, _FLAG = pa.int64(), pa.string(), pa.binary(), pa.bool_()
TABLES = {
    HOST: pa.schema([("format", _INTEGER), ("ids", _INTEGER), ("epoch", _INTEGER), ("sent", _INTEGER)]),
    INPUTS: pa.schema(
        [
            *(("name", _TEXT), ("position", _TEXT), ("watermark", pa.timestamp("us", "UTC"))),
            *(("events", _INTEGER), ("content", _TEXT)),
        ]
    ),
    PATTERNS: pa.schema(
        [
            *(("number", _INTEGER), ("name", _TEXT), ("version", _TEXT), ("status", _TEXT), ("input", _TEXT)),
            *(("open_table", _TEXT), ("matches_table", _TEXT), ("document", _TEXT), ("content", _TEXT)),
        ]
    ),
    HEADS: pa.schema(
        [
            *(("deployment", _INTEGER), ("format", _INTEGER), ("state", _BYTES), ("entries", _INTEGER)),
            *(("log_bytes", _INTEGER), ("room", _INTEGER), ("passed", _INTEGER), ("open", _INTEGER)),
            *(("timer", _INTEGER), ("over", _FLAG)),
        ]
    ),
    SNAPSHOTS: pa.schema([("deployment", _INTEGER), ("part", _INTEGER), ("content", _BYTES)]),
    LOG: pa.schema(
        [
            *(("deployment", _INTEGER), ("number", _INTEGER), ("passed", _INTEGER)),
            *(("events", _BYTES), ("digest", _BYTES), ("over", _FLAG)),
        ]
    ),
    EVENTS: pa.schema([("input", _TEXT), ("number", _INTEGER), ("latest", _INTEGER), ("events", _BYTES)]),
    OUTBOX_TABLE: OUTBOX,
}
"""The host's own tables. Those without the prefix are for users to read."""
_KEYS = {
    HOST: ("format",),
    INPUTS: ("name",),
    PATTERNS: ("number",),
    HEADS: ("deployment",),
    SNAPSHOTS: ("deployment", "part"),
    LOG: ("deployment", "number"),
    EVENTS: ("input", "number"),
    OUTBOX_TABLE: ("number",),
}


class Database(Protocol):
    """A connection to a database, and what is special about its SQL. All values are given as parameters."""

    mark: str
    """The mark of a parameter in a statement."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None: ...

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def insert(self, table: str, rows: pa.Table, key: str | None = None) -> None:
        """Adds rows. With a `key`, rows whose value in that column is there already are left out."""

    def delete_where_in(self, table: str, column: str, values: Sequence[str], condition: str = "") -> None:
        """Removes the rows whose column has one of the values, and that fit the condition."""

    def rows_where_in(
        self, columns: str, table: str, column: str, values: Sequence[str], condition: str
    ) -> list[tuple[Any, ...]]:
        """The columns of the rows whose column has one of the values, and that fit the condition."""

    def type_name(self, type_: pa.DataType) -> str:
        """The type of a column."""

    def time_literal(self, time: int) -> str:
        """An instant (microseconds), as SQL."""

    def tables(self) -> set[str]:
        """The names of all tables."""

    def columns_of(self, table: str) -> set[str]: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def query(self, sql: str) -> pa.Table:
        """The result of a user's query, which cannot change anything."""

    def close(self) -> None: ...


def quoted(name: str) -> str:
    """The name as SQL. All of a host's statements quote names here."""
    return '"' + name.replace('"', '""') + '"'


class SqlStore:
    """A HostStore, and its Transaction, in a SQL database."""

    def __init__(self, database: Database) -> None:
        """Makes the host's tables if there are none.

        Raises:
            StoreError: there are tables of these names that are not a host's, or a newer version wrote the store.
        """
        self._database = database
        with self.transaction():
            self._prepare()

    def load(self) -> Stored:
        inputs = [input_from_json(json.loads(text)) for (text,) in self._rows("content", INPUTS, "name")]
        deployments = [deployment_from_json(json.loads(text)) for (text,) in self._rows("content", PATTERNS, "number")]
        ((sent,),) = self._rows("sent", HOST)
        return Stored(inputs, deployments, sent)

    @contextmanager
    def transaction(self) -> Iterator[SqlStore]:
        self._database.begin()
        try:
            yield self
        except BaseException:
            self._database.rollback()
            raise
        self._database.commit()

    def query(self, sql: str) -> pa.Table:
        return self._database.query(sql)

    def close(self) -> None:
        self._database.close()

    def shard(self, deployment: int) -> SqlShard:
        return SqlShard(self._database, deployment)

    def save_input(self, given: Input) -> None:
        content = input_to_json(given)
        position = None if given.position is None else json.dumps(given.position)
        watermark = None if given.reached == BEFORE_ALL else given.reached.time
        self._replace(INPUTS, {"name": given.name}, (position, watermark, given.events, json.dumps(content)))

    def save_deployment(self, deployment: Deployment) -> None:
        content = deployment_to_json(deployment)
        about = (deployment.name, deployment.version, deployment.status, json.dumps(content["input"]))
        tables = (f"open_{deployment.slug}", f"matches_{deployment.slug}")
        documents = (json.dumps(content["pattern"]), json.dumps(content))
        self._replace(PATTERNS, {"number": deployment.number}, (*about, *tables, *documents))

    def keep(self, source: str, number: int, latest: int, events: bytes) -> None:
        row = {"input": [source], "number": [number], "latest": [latest], "events": [events]}
        self._database.insert(EVENTS, pa.table(row, schema=TABLES[EVENTS]))

    def forget(self, source: str, until: int) -> None:
        condition = f"input = {_literal(source)} AND latest < {until:d}"
        self._database.execute(f"DELETE FROM {EVENTS} WHERE {condition}")

    def kept(self, source: str) -> Iterator[bytes]:
        query = f"SELECT events FROM {EVENTS} WHERE input = {_literal(source)} ORDER BY number"
        for (events,) in self._database.rows(query):
            yield bytes(events)

    def create(self, table: RowTable) -> None:
        if table.name not in self._database.tables():
            self._create(table.name, table.columns, (table.id,))
            for number, columns in enumerate(table.indexes):
                named = ", ".join(map(quoted, columns))
                self._database.execute(
                    f"CREATE INDEX {quoted(f'{table.name}_{number}')} ON {quoted(table.name)} ({named})"
                )
            return
        there = self._database.columns_of(table.name)
        for field in table.columns:
            if field.name not in there:
                column = f"{quoted(field.name)} {self._database.type_name(field.type)}"
                self._database.execute(f"ALTER TABLE {quoted(table.name)} ADD COLUMN {column}")

    def insert(self, table: RowTable, rows: pa.Table) -> None:
        self._database.insert(table.name, rows, table.id)

    def delete(self, table: RowTable, ids: Sequence[str]) -> None:
        self._database.delete_where_in(table.name, table.id, ids)

    def replace_open(self, table: RowTable, keys: Sequence[str], version: str, rows: pa.Table) -> None:
        known = self._database.rows_where_in(
            quoted(table.id), table.name, "key_id", keys, f"version = {_literal(version)}"
        )
        before, now = {id_ for (id_,) in known}, rows.column(table.id).to_pylist()
        if gone := [*before.difference(now)]:
            self.delete(table, gone)
        new = [row for row, id_ in enumerate(now) if id_ not in before]
        if new:
            self._database.insert(table.name, rows if len(new) == len(now) else rows.take(new))

    def delete_expired(self, table: RowTable, version: str, until: int) -> None:
        time = self._database.time_literal(until)
        condition = f"version = {_literal(version)} AND wakeup <= {time}"
        self._database.execute(f"DELETE FROM {quoted(table.name)} WHERE {condition}")

    def clear(self, table: RowTable, version: str) -> None:
        self._database.execute(f"DELETE FROM {quoted(table.name)} WHERE version = {_literal(version)}")

    def send(self, rows: pa.Table) -> None:
        self._database.insert(OUTBOX_TABLE, rows)
        self._database.execute(f"UPDATE {HOST} SET sent = sent + {rows.num_rows}")

    def _prepare(self) -> None:
        there = self._database.tables()
        if HOST in there:
            ((written,),) = self._rows("format", HOST)
            if written > FORMAT:
                raise StoreError(
                    f"a newer version of Cepheid wrote this store: it has format {written}, and this version reads up "
                    f"to {FORMAT}. Upgrade Cepheid"
                )
            return
        if others := sorted(there & TABLES.keys()):
            raise StoreError(
                f"the database has tables of names that a host uses, and no host made them: {', '.join(others)}. Give "
                "the host a database or a schema of its own"
            )
        for name, columns in TABLES.items():
            self._create(name, columns, _KEYS[name])
        first = pa.table({"format": [FORMAT], "ids": [IDS], "epoch": [0], "sent": [0]}, schema=TABLES[HOST])
        self._database.insert(HOST, first)

    def _create(self, name: str, columns: pa.Schema, key: Sequence[str]) -> None:
        parts = [f"{quoted(field.name)} {self._database.type_name(field.type)}" for field in columns]
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
        self._database.execute(f"CREATE TABLE {quoted(name)} ({', '.join(parts)})")

    def _rows(self, columns: str, table: str, order: str = "1") -> list[tuple[Any, ...]]:
        return self._database.rows(f"SELECT {columns} FROM {table} ORDER BY {order}")

    def _replace(self, table: str, key: dict[str, Any], values: Sequence[Any]) -> None:
        ((column, value),) = key.items()
        self._database.execute(f"DELETE FROM {table} WHERE {column} = {self._database.mark}", (value,))
        columns = [pa.array([item], field.type) for item, field in zip((value, *values), TABLES[table], strict=True)]
        self._database.insert(table, pa.Table.from_arrays(columns, schema=TABLES[table]))


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


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
