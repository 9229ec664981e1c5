"""The store in SQLite, from Python's standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.events.batch import python_values
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.json_text import iso_texts, json_texts
from cepheid.hosts.durable.lock import locked
from cepheid.hosts.durable.stores.database import failing, literal, quoted
from cepheid.hosts.durable.stores.sqlite_reader import TABLES, SqliteReader

_AT_ONCE = 30_000
"""SQLite takes at most 32,766 parameters in a statement."""


class SqliteDatabase:
    """A `sql.Database`. Instants are texts in UTC, as in 2024-03-04T10:00:00.000000Z: they sort and compare as times,
    and SQLite's date functions read them. Nested values are JSON.
    """

    mark = "?"
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    place = "rowid"
    method_for_texts = ""
    longest_name: int | None = None
    has_indexes = True

    def __init__(self, path: Path) -> None:
        self.reader = SqliteReader(path)
        self._lock = locked(path)
        try:
            # As in the other stores, a program may call the host by one thread and then by another.
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for the writer
            self._connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk
            # With a million rows an event changes pages all over the file: few of them are read or written twice.
            self._connection.execute("PRAGMA cache_size = -65536")  # KB
            self._connection.execute("PRAGMA wal_autocheckpoint = 4000")  # pages
        except sqlite3.Error as error:
            self._lock.close()
            raise StoreError(f"the SQLite database {path} cannot be opened: {error}") from error

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, values)

    def changed(self, statement: str) -> int:
        return self._connection.execute(statement).rowcount

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with failing(self, "read"):
            return self._connection.execute(query, values).fetchall()

    def insert(self, table: str, rows: pa.Table, key: Sequence[str] = ()) -> None:
        conflict = f" ON CONFLICT ({', '.join(map(quoted, key))}) DO NOTHING" if key else ""
        statement = f"{_insertion(table, tuple(rows.schema.names))}{conflict}"
        self._connection.executemany(statement, zip(*map(_values, rows.columns), strict=True))

    def insert_parts(self, rows: pa.Table, counts: Sequence[tuple[str, int]]) -> None:
        names, values = tuple(rows.schema.names), zip(*map(_values, rows.columns), strict=True)
        for table, count in counts:
            self._connection.executemany(_insertion(table, names), islice(values, count))

    def delete_where_in(self, table: str, column: str, values: Sequence[str], condition: str = "") -> None:
        for some, marks in _parts(values):
            where = f"{quoted(column)} IN ({marks}){' AND ' if condition else ''}{condition}"
            self._connection.execute(f"DELETE FROM {quoted(table)} WHERE {where}", some)

    def delete_places(self, table: str, places: Sequence[Any]) -> None:
        statement = f"DELETE FROM {quoted(table)} WHERE rowid = ?"
        self._connection.executemany(statement, ((place,) for place in places))

    def rows_where_in(
        self, columns: str, table: str, column: str, values: Sequence[str], condition: str
    ) -> list[tuple[Any, ...]]:
        found = []
        for some, marks in _parts(values):
            where = f"{quoted(column)} IN ({marks}) AND {condition}"
            found += self.rows(f"SELECT {columns} FROM {quoted(table)} WHERE {where}", some)
        return found

    def type_name(self, type_: pa.DataType) -> str:
        if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
            return "INTEGER"
        if pa.types.is_floating(type_):
            return "REAL"
        if pa.types.is_decimal(type_):
            return "NUMERIC"
        return "BLOB" if pa.types.is_binary(type_) else "TEXT"

    def time_literal(self, time: int) -> str:
        return _time_literal(time)

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows(TABLES)}

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def backup(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as target:
            self._connection.backup(target)

    def close(self) -> None:
        self._connection.close()
        self._lock.close()


@lru_cache(maxsize=4096)
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    names, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
    return f"INSERT INTO {quoted(table)} ({names}) VALUES ({marks})"


@lru_cache(maxsize=1)
def _time_literal(time: int) -> str:
    """All patterns of a step ask for the same one."""
    return literal(iso_texts(pa.array([time], pa.int64()).cast(TIME_TYPE))[0].as_py())


def _parts(values: Sequence[str]) -> Iterator[tuple[Sequence[str], str]]:
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        yield some, ", ".join("?" * len(some))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values as SQLite takes them."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return python_values(iso_texts(column))
    if pa.types.is_nested(type_):
        return python_values(json_texts(column.combine_chunks()))
    if pa.types.is_decimal(type_) or pa.types.is_date(type_) or pa.types.is_duration(type_) or pa.types.is_time(type_):
        return [None if value is None else str(value) for value in python_values(column)]
    return python_values(column)
