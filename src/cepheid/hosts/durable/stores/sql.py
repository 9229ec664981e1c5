"""The store in a SQL database: what all databases share. What differs is in `Database`, one module each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.documents import deployment_from_json, input_from_json
from cepheid.hosts.durable.outbox import outbox_rows
from cepheid.hosts.durable.state import Deployment, Input, Stored
from cepheid.hosts.durable.store import OpenPart, RowTable, Sent
from cepheid.hosts.durable.stores.database import Database, create_table, failing, literal, quoted
from cepheid.hosts.durable.stores.layout import (
    EVENTS,
    FORMAT,
    HOST,
    INPUTS,
    KEYS,
    OUTBOX_TABLE,
    PATTERNS,
    TABLES,
)
from cepheid.hosts.durable.stores.listed import input_row, pattern_row
from cepheid.hosts.durable.stores.migrations import MIGRATIONS
from cepheid.hosts.durable.stores.script_rows import save_scripts
from cepheid.hosts.durable.stores.sql_shard import SqlShard, flush
from cepheid.hosts.durable.stores.user_tables import make_table
from cepheid.hosts.durable.whole_file import whole_file
from cepheid.output.ids import Ids


class SqlStore:
    """A HostStore, and its Transaction, in a SQL database."""

    lists_when_asked = False

    def __init__(self, connect: Callable[[], Database]) -> None:
        """`connect` opens the database for writing. Makes the host's tables if there are none.

        Raises:
            StoreError: the database cannot be opened, another host has it open, it has tables of these names that are
                not a host's, or a newer version wrote it.
        """
        self._connect = connect
        self._open()

    def reopen(self) -> None:
        with suppress(*self._database.errors):
            self._database.close()
        self._open()

    def _open(self) -> None:
        self._database = self._connect()
        self._shards: dict[int, SqlShard] = {}
        try:
            with failing(self._database, "opened"), self._all_or_nothing():
                self._prepare()
                self._database.execute(f"UPDATE {HOST} SET epoch = epoch + 1")
                ((self._epoch,),) = self._rows("epoch", HOST)
        except BaseException:
            self._database.close()
            raise

    def load(self) -> Stored:
        inputs = [input_from_json(json.loads(text)) for (text,) in self._rows("content", INPUTS, "name")]
        deployments = [deployment_from_json(json.loads(text)) for (text,) in self._rows("content", PATTERNS, "number")]
        ((sent, ids),) = self._rows("sent, ids", HOST)
        return Stored(inputs, deployments, sent, Ids(ids))

    @contextmanager
    def transaction(self) -> Iterator[SqlStore]:
        with failing(self._database, "written"), self._all_or_nothing():
            yield self
            flush(self._database, self._shards.values())
            # The lock keeps other hosts out, but a connection that breaks loses it without a word.
            if not self._database.changed(f"UPDATE {HOST} SET sent = sent WHERE epoch = {self._epoch:d}"):
                raise StoreError("another host has opened this store since, so this one may not write any more")

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        self._database.begin()
        try:
            yield
            self._database.commit()
        except BaseException:
            self._shards = {}
            with suppress(*self._database.errors):  # without a connection nothing is left to roll back
                self._database.rollback()
            raise

    def listing(self) -> AbstractContextManager[SqlStore]:
        return nullcontext(self)

    def reader(self) -> Callable[[str], pa.Table]:
        return self._database.reader.query

    def own_reader(self) -> Callable[[str], pa.Table]:
        return self._database.reader.own_query

    def backup(self, path: Path) -> None:
        with failing(self._database, "copied"), whole_file(path) as new:
            self._database.backup(new)

    def close(self) -> None:
        self._database.close()

    def shard(self, deployment: int) -> SqlShard:
        if deployment not in self._shards:
            self._shards[deployment] = SqlShard(self._database, deployment)
        return self._shards[deployment]

    def save_input(self, given: Input) -> None:
        self._replace(INPUTS, "name", input_row(given))

    def save_deployment(self, deployment: Deployment) -> None:
        self._replace(PATTERNS, "number", pattern_row(deployment))
        save_scripts(self._database, deployment)

    def keep(self, source: str, number: int, latest: int, events: bytes) -> None:
        row = {"input": [source], "number": [number], "latest": [latest], "events": [events]}
        self._database.insert(EVENTS, pa.table(row, schema=TABLES[EVENTS]))

    def forget(self, source: str, until: int) -> None:
        condition = f"input = {literal(source)} AND latest < {until:d}"
        self._database.execute(f"DELETE FROM {EVENTS} WHERE {condition}")

    def kept(self, source: str) -> Iterator[bytes]:
        query = f"SELECT events FROM {EVENTS} WHERE input = {literal(source)} ORDER BY number"
        for (events,) in self._database.rows(query):
            yield bytes(events)

    def create(self, table: RowTable) -> None:
        make_table(self._database, table)

    def insert(self, table: RowTable, rows: pa.Table) -> None:
        self._database.insert(table.name, rows, table.key)

    def delete(self, table: RowTable, ids: Sequence[str]) -> None:
        assert table.id is not None
        self._database.delete_where_in(table.name, table.id, ids)

    def remove_older(self, table: RowTable, time: int) -> None:
        condition = f"detected_at < {self._database.time_literal(time)}"
        self._database.execute(f"DELETE FROM {quoted(table.name)} WHERE {condition}")

    def keep_latest(self, table: RowTable, rows: int) -> None:
        name = quoted(table.name)
        last = f"SELECT detected_at FROM {name} ORDER BY detected_at DESC LIMIT 1 OFFSET {rows - 1:d}"
        self._database.execute(f"DELETE FROM {name} WHERE detected_at < ({last})")

    def replace_open(self, rows: pa.Table, parts: Sequence[OpenPart]) -> None:
        ids, new, begin = rows.column("id").to_pylist(), list[int](), 0
        counts: list[tuple[str, int]] = []
        for table, version, keys, count in parts:
            known = self._places(table, keys, version) if keys else []
            before, now = {id_ for _, id_ in known}, ids[begin : begin + count]
            stays = before.intersection(now)
            if gone := [place for place, id_ in known if id_ not in stays]:
                self._database.delete_places(table.name, gone)
            mine = [row for row, id_ in enumerate(now, begin) if id_ not in before]
            if mine:
                counts.append((table.name, len(mine)))
            new, begin = new + mine, begin + count
        if new:
            self._database.insert_parts(rows if len(new) == len(ids) else rows.take(new), counts)

    def _places(self, table: RowTable, keys: Sequence[str], version: str) -> list[tuple[Any, str]]:
        """Where the rows of the keys are, and their ids."""
        columns, condition = f"{self._database.place}, id", f"version = {literal(version)}"
        return self._database.rows_where_in(columns, table.name, "key_id", keys, condition)

    def delete_expired(self, table: RowTable, version: str, until: int) -> None:
        time = self._database.time_literal(until)
        condition = f"status = 'waiting' AND wakeup <= {time} AND version = {literal(version)}"  # in this index
        self._database.execute(f"DELETE FROM {quoted(table.name)} WHERE {condition}")

    def clear(self, table: RowTable, version: str) -> None:
        self._database.execute(f"DELETE FROM {quoted(table.name)} WHERE version = {literal(version)}")

    def send(self, sent: Sequence[Sent]) -> None:
        rows = outbox_rows(sent)
        self._database.insert(OUTBOX_TABLE, rows)
        self._database.execute(f"UPDATE {HOST} SET sent = sent + {rows.num_rows}")

    def forget_sent(self, first: int) -> None:
        self._database.execute(f"DELETE FROM {OUTBOX_TABLE} WHERE number < {first:d}")

    def _prepare(self) -> None:
        there = self._database.tables()
        if HOST in there:
            ((written, ids),) = self._rows("format, ids", HOST)
            if written > FORMAT or ids not in [*Ids]:
                raise StoreError(
                    f"a newer version of Cepheid wrote this store: it has format {written} and ids {ids}, and this "
                    f"version reads formats up to {FORMAT} and ids up to {max(Ids):d}. Upgrade Cepheid"
                )
            self._migrate(written)
            return
        if others := sorted(there & TABLES.keys()):
            raise StoreError(
                f"the database has tables of names that a host uses, and no host made them: {', '.join(others)}. Give "
                "the host a database or a schema of its own"
            )
        for name, columns in TABLES.items():
            create_table(self._database, name, columns, KEYS[name])
        first = pa.table({"format": [FORMAT], "ids": [Ids.SIPHASH], "epoch": [0], "sent": [0]}, schema=TABLES[HOST])
        self._database.insert(HOST, first)

    def _migrate(self, written: int) -> None:
        for migrate in MIGRATIONS[written - 1 :]:
            migrate(self._database)
        if written < FORMAT:
            self._database.execute(f"UPDATE {HOST} SET format = {FORMAT:d}")

    def _rows(self, columns: str, table: str, order: str = "1") -> list[tuple[Any, ...]]:
        return self._database.rows(f"SELECT {columns} FROM {table} ORDER BY {order}")

    def _replace(self, table: str, key: str, row: Sequence[Any]) -> None:
        """Makes the row the only one with its key, which is the first column."""
        self._database.execute(f"DELETE FROM {table} WHERE {key} = {self._database.mark}", row[:1])
        columns = [pa.array([value], field.type) for value, field in zip(row, TABLES[table], strict=True)]
        self._database.insert(table, pa.Table.from_arrays(columns, schema=TABLES[table]))
