"""The store in DuckDB."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable import lock
from cepheid.hosts.durable.stores.database import (
    LONGEST_QUERY,
    TOO_LONG,
    Reader,
    failing,
    literal,
    quoted,
    reason,
    tables_instead,
)
from cepheid.hosts.durable.stores.results import MOST_RESULT, table_of_batches

_BATCH = 10_000
"""Rows of a result that are read at once."""
_SETTINGS = {
    "TimeZone": "UTC",
    # A checkpoint writes what is there, however often it was replaced since the last one: few cost less than many.
    "wal_autocheckpoint": "64MB",
    # A user's query reads the host's tables, and nothing else.
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
_NO_DOWNLOADS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""For files that are not DuckDB's, such as those of SQLite, it would load extensions, and download them."""


_PARTS = "cepheid_parts"
_TABLES = "SELECT table_name FROM information_schema.tables"


class DuckDbDatabase:
    """A `sql.Database`. DuckDB itself refuses a second process while this one has the file open."""

    mark = "?"
    errors: tuple[type[Exception], ...] = (duckdb.Error,)
    place = "rowid"
    method_for_texts = ""
    longest_name: int | None = None
    has_indexes = False  # a query over a million rows takes some milliseconds, and indexes slow writes down fivefold

    def __init__(self, path: Path | None, readable: Path | None = None) -> None:
        """Without a path the database is in memory. `readable` is a folder of files that it may read, and only these.

        Raises:
            StoreError: it cannot be opened.
        """
        self._path = path
        self._type_names: dict[pa.DataType, str] = {}
        try:
            self._connection = duckdb.connect(":memory:") if path is None else _connected(path)
            if readable is not None:
                self._connection.execute(f"SET allowed_directories = [{literal(f'{readable}/')}]")
            for setting, value in _SETTINGS.items():
                self._connection.execute(f"SET {setting} = '{value}'")
        except duckdb.Error as error:
            raise StoreError(f"the DuckDB database {path} cannot be opened: {_why(error)}") from error

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, [*values])

    def changed(self, statement: str) -> int:
        ((count,),) = self._connection.execute(statement).fetchall()
        return int(count)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with failing(self, "read"):
            return self._connection.execute(query, [*values]).fetchall()

    def insert(self, table: str, rows: pa.Table, key: Sequence[str] = ()) -> None:
        conflict = " ON CONFLICT DO NOTHING" if key else ""
        with self._registered(_with_texts(rows)) as given:
            self._connection.execute(f"INSERT INTO {quoted(table)} BY NAME SELECT * FROM {given}{conflict}")

    def insert_parts(self, rows: pa.Table, counts: Sequence[tuple[str, int]]) -> None:
        if len(counts) == 1:
            self.insert(counts[0][0], rows)
            return
        part = np.repeat(np.arange(len(counts)), [count for _, count in counts])
        with self._registered(_with_texts(rows).append_column("cepheid_part", pa.array(part))) as given:
            # A statement reads a table in half of the time that it takes to read a view of Arrow.
            self._connection.execute(f"CREATE TEMPORARY TABLE {_PARTS} AS SELECT * FROM {given}")
        names = ", ".join(map(quoted, rows.schema.names))
        for number, (table, _) in enumerate(counts):
            some = f"SELECT {names} FROM {_PARTS} WHERE cepheid_part = {number}"
            self._connection.execute(f"INSERT INTO {quoted(table)} ({names}) {some}")
        self._connection.execute(f"DROP TABLE {_PARTS}")

    def insert_new(self, table: str, rows: pa.Table, key: str, known: str) -> None:
        """Adds the rows whose value in `key` is not in the table `known`."""
        with self._registered(_with_texts(rows)) as given:
            there = f"SELECT {quoted(key)} FROM {quoted(known)}"
            where = f"WHERE {quoted(key)} NOT IN ({there})"
            self._connection.execute(f"INSERT INTO {quoted(table)} BY NAME SELECT * FROM {given} {where}")

    def table(self, query: str) -> pa.Table:
        """The result of a query of ours."""
        with failing(self, "read"):
            return self._connection.sql(query).to_arrow_table()

    def delete_where_in(self, table: str, column: str, values: Sequence[str], condition: str = "") -> None:
        with self._registered(pa.table({"value": pa.array(values, pa.string())})) as given:
            where = f"{quoted(column)} IN (SELECT value FROM {given}){' AND ' if condition else ''}{condition}"
            self._connection.execute(f"DELETE FROM {quoted(table)} WHERE {where}")

    def delete_places(self, table: str, places: Sequence[Any]) -> None:
        with self._registered(pa.table({"place": pa.array(places, pa.int64())})) as given:
            self._connection.execute(f"DELETE FROM {quoted(table)} WHERE rowid IN (SELECT place FROM {given})")

    def rows_where_in(
        self, columns: str, table: str, column: str, values: Sequence[str], condition: str
    ) -> list[tuple[Any, ...]]:
        with self._registered(pa.table({"value": pa.array(values, pa.string())})) as given:
            where = f"{quoted(column)} IN (SELECT value FROM {given}) AND {condition}"
            return self.rows(f"SELECT {columns} FROM {quoted(table)} WHERE {where}")

    def type_name(self, type_: pa.DataType) -> str:
        """The type that DuckDB itself gives to the Arrow type; nested ones are JSON, as the stages of two versions of a
        pattern may differ in their columns.
        """
        if pa.types.is_nested(type_):
            return "JSON"
        if type_ not in self._type_names:
            with self._registered(pa.table({"value": pa.array([], type_)})) as given:
                ((_, name, *_),) = self.rows(f"DESCRIBE SELECT value FROM {given}")
            self._type_names[type_] = str(name)
        return self._type_names[type_]

    def time_literal(self, time: int) -> str:
        return f"make_timestamptz({time:d})"

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows(_TABLES)}

    def begin(self) -> None:
        self._connection.execute("BEGIN TRANSACTION")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    @property
    def reader(self) -> Reader:
        return self

    def query(self, sql: str) -> pa.Table:
        return self._query(sql, MOST_RESULT)

    def own_query(self, sql: str) -> pa.Table:
        return self._query(sql, None)

    def _query(self, sql: str, most: int | None) -> pa.Table:
        reader = self._connection.cursor()
        reader.execute("BEGIN TRANSACTION READ ONLY")
        return _answer(reader, most, sql)

    def reader_now(self, table: str, most: int | None) -> Callable[[str], pa.Table]:
        """Answers one query over what is there now, with at most `most` bytes. It may be called by another thread.
        `table` is any table.
        """
        reader = self._connection.cursor()
        reader.execute("BEGIN TRANSACTION READ ONLY")
        # A transaction sees what is there at its first read.
        reader.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchall()
        return partial(_answer, reader, most)

    def backup(self, path: Path) -> None:
        self._connection.execute("CHECKPOINT")  # then the file has everything, and its log is empty
        assert self._path is not None
        shutil.copyfile(self._path, path)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _registered(self, rows: pa.Table) -> Iterator[str]:
        """The rows as a view, by its name."""
        self._connection.register("cepheid_rows", rows)
        try:
            yield "cepheid_rows"
        finally:
            self._connection.unregister("cepheid_rows")


def _answer(reader: duckdb.DuckDBPyConnection, most: int | None, sql: str) -> pa.Table:
    """The result of a user's query in a transaction that only reads. The cursor is closed."""
    watch = Timer(LONGEST_QUERY, reader.interrupt)
    watch.daemon = True
    try:
        statements = reader.extract_statements(sql)
        if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
            raise StoreError("a query is one SELECT; this is something else, or several statements")
        watch.start()
        rows = reader.sql(statements[0]).to_arrow_reader(_BATCH)
        return table_of_batches(rows.schema, rows, most)
    except (duckdb.Error, OSError) as error:  # the latter from Arrow, for an error after the first rows
        problem = f"{reason(error).rstrip('!')}{_instead(error, reader)}"
        raise StoreError(f"DuckDB refuses the query: {problem}") from error
    finally:
        watch.cancel()
        reader.close()


def _instead(error: Exception, reader: duckdb.DuckDBPyConnection) -> str:
    if "interrupt" in str(error).lower():
        return TOO_LONG
    if not (isinstance(error, duckdb.CatalogException) and "Table with name" in str(error)):
        return ""
    reader.execute("ROLLBACK")
    names = {name for (name,) in reader.execute(_TABLES).fetchall()}
    # A store in files has tables of recent and of removed rows beside each table.
    own = {f"{kind}{name}" for kind in ("recent_", "gone_") for name in names}
    return tables_instead(names - own)


def _why(error: duckdb.Error) -> str:
    """Why a database cannot be opened. All connections of a process have one configuration, which a host locks."""
    message = reason(error)
    return "another host of this program has it open" if "configuration has been locked" in message else message


def _connected(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection; waits a moment if another process has the file open, as a command has it only for a moment."""
    until = time.monotonic() + lock.PATIENCE
    while True:
        try:
            return duckdb.connect(path, config=_NO_DOWNLOADS)
        except duckdb.IOException as error:
            if "lock" not in str(error):
                raise
            if time.monotonic() > until:
                raise StoreError(f"another host has the store {path} open: close it first") from error
            time.sleep(0.05)


def _with_texts(rows: pa.Table) -> pa.Table:
    """The rows with JSON text in place of nested values."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            rows = rows.set_column(place, field.name, json_texts(rows.column(place).combine_chunks()))
    return rows
