"""The store in PostgreSQL, by psycopg 3."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.json import Jsonb

from cepheid.errors import StoreError
from cepheid.events.batch import python_values
from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable import lock
from cepheid.hosts.durable.stores.database import failing, quoted, reason
from cepheid.hosts.durable.stores.layout import HOST, TABLES, USER_TABLES
from cepheid.hosts.durable.stores.postgresql_backup import dump, load, schema_in
from cepheid.hosts.durable.stores.postgresql_reader import ALL_TABLES, PostgresReader

_LOCK = 0x63657068
"""The first number of the advisory lock that the writing host has; the second one stands for the schema."""


class PostgresDatabase:
    """A `sql.Database`. Rows are written by binary COPY; nested values are jsonb."""

    mark = "%s"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    place = "ctid::text"
    method_for_texts = " USING hash"  # the usual one refuses a row with a text of more than 8,191 bytes
    longest_name: int | None = 63
    has_indexes = True

    def __init__(self, url: str) -> None:
        self._url = url
        self.reader = PostgresReader(url)
        try:
            self._connection = psycopg.connect(url, autocommit=True, application_name="cepheid host")
        except psycopg.Error as error:
            raise StoreError(f"the PostgreSQL database cannot be opened: {reason(error)}") from error
        try:
            self._connection.execute("SET TIME ZONE 'UTC'")
            self._lock()
        except BaseException:
            self._connection.close()
            raise

    def _lock(self) -> None:
        """Takes the lock of the writing host. The server may notice only after a moment that one has died."""
        until = time.monotonic() + lock.PATIENCE
        while not self.rows(f"SELECT pg_try_advisory_lock({_LOCK}, hashtext(current_schema()))")[0][0]:
            if time.monotonic() > until:
                raise StoreError("another host has this PostgreSQL database open: close it first")
            time.sleep(0.05)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, values or None)

    def changed(self, statement: str) -> int:
        return self._connection.execute(statement).rowcount

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with failing(self, "read"):
            return self._connection.execute(query, values or None, binary=True).fetchall()

    def insert(self, table: str, rows: pa.Table, key: Sequence[str] = ()) -> None:
        if not key:
            self._copy(quoted(table), rows)
            return
        names = ", ".join(map(quoted, rows.schema.names))
        # A name for the table with these columns, as it may get further ones. Names of 63 bytes would be cut.
        new = quoted(f"new_{blake2b(f'{table} {names}'.encode(), digest_size=16).hexdigest()}")
        self.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {new} (LIKE {quoted(table)}) ON COMMIT DELETE ROWS")
        self._copy(new, rows)
        self.execute(f"INSERT INTO {quoted(table)} ({names}) SELECT {names} FROM {new} ON CONFLICT DO NOTHING")

    def insert_parts(self, rows: pa.Table, counts: Sequence[tuple[str, int]]) -> None:
        values = zip(*map(_values, rows.columns), strict=True)
        for table, count in counts:
            self._copy_values(quoted(table), rows.schema, islice(values, count))

    def _copy(self, table: str, rows: pa.Table) -> None:
        self._copy_values(table, rows.schema, zip(*map(_values, rows.columns), strict=True))

    def _copy_values(self, table: str, columns: pa.Schema, rows: Iterable[Sequence[Any]]) -> None:
        names = ", ".join(map(quoted, columns.names))
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types([self.type_name(field.type).partition("(")[0] for field in columns])
            for row in rows:
                copy.write_row(row)

    def delete_where_in(self, table: str, column: str, values: Sequence[str], condition: str = "") -> None:
        where = f"{quoted(column)} = ANY(%s){' AND ' if condition else ''}{condition}"
        self.execute(f"DELETE FROM {quoted(table)} WHERE {where}", ([*values],))

    def delete_places(self, table: str, places: Sequence[Any]) -> None:
        self.execute(f"DELETE FROM {quoted(table)} WHERE ctid = ANY(%s::tid[])", ([*places],))

    def rows_where_in(
        self, columns: str, table: str, column: str, values: Sequence[str], condition: str
    ) -> list[tuple[Any, ...]]:
        where = f"{quoted(column)} = ANY(%b) AND {condition.replace('%', '%%')}"
        return self.rows(f"SELECT {columns} FROM {quoted(table)} WHERE {where}", ([*values],))

    def type_name(self, type_: pa.DataType) -> str:
        return next(name(type_) for is_of, name in _TYPES if is_of(type_))

    def time_literal(self, time: int) -> str:
        return f"TIMESTAMPTZ 'epoch' + INTERVAL '{time:d} microseconds'"

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows(ALL_TABLES)}

    def begin(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def backup(self, path: Path) -> None:
        ((schema,),) = self.rows("SELECT current_schema()::text")
        ours = {*TABLES, *(name for (name,) in self.rows(f"SELECT name FROM {USER_TABLES}"))}
        dump(self._url, schema, ours, path)

    def restore(self, path: Path) -> None:
        """Makes the tables of a backup.

        Raises:
            StoreError: the file is no backup or one of another schema, or the tables cannot be made; nothing has
                changed.
        """
        written = schema_in(path, self._url)
        if written is None:
            raise StoreError(f"{path} is no backup of a host: it has no table {HOST}")
        ((schema,),) = self.rows("SELECT current_schema()::text")
        if schema != written:
            raise StoreError(
                f"{path} has the tables of schema {written!r}, and can be restored only to a schema of this name, in "
                f"another database. The URL's is {schema!r}: make {written!r} there with CREATE SCHEMA, and add "
                f"{'&' if '?' in self._url else '?'}{_option(written)} to the URL"
            )
        load(path, self._url)

    def close(self) -> None:
        """Gives the lock back at once: a busy server may notice only after seconds that the connection has ended."""
        with suppress(psycopg.Error):  # the connection may be lost, or in a transaction that has failed
            self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._connection.close()


def _option(schema: str) -> str:
    """The parameter of a URL that makes the schema the one of the session."""
    name = schema if re.fullmatch("[a-z_][a-z0-9_]*", schema) else quoted(schema)
    escaped = name.replace("\\", "\\\\").replace(" ", "\\ ")  # of these the server makes arguments
    return f"options={quote(f'-csearch_path={escaped}', safe='-')}"


def _fixed(name: str) -> Callable[[pa.DataType], str]:
    return lambda _: name


_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], str]], ...] = (
    (pa.types.is_boolean, _fixed("boolean")),
    (pa.types.is_integer, _fixed("bigint")),
    (pa.types.is_floating, _fixed("double precision")),
    (pa.types.is_decimal, lambda type_: f"numeric({type_.precision}, {type_.scale})"),
    (lambda type_: pa.types.is_timestamp(type_) and type_.tz is not None, _fixed("timestamptz")),
    (pa.types.is_timestamp, _fixed("timestamp")),
    (pa.types.is_date, _fixed("date")),
    (pa.types.is_time, _fixed("time")),
    (pa.types.is_duration, _fixed("interval")),
    (lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_), _fixed("bytea")),
    (pa.types.is_nested, _fixed("jsonb")),
    (lambda _: True, _fixed("text")),
)
"""The first type whose test fits."""


_NUL, _IN_ITS_PLACE = "\0", "\N{REPLACEMENT CHARACTER}"
"""PostgreSQL's texts cannot have this character. The state of the matchers has it, as it is stored as bytes."""
_NUL_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values as psycopg takes them."""
    if pa.types.is_nested(column.type):
        texts = json_texts(column.combine_chunks()).to_pylist()
        return [None if text is None else Jsonb(_json(text), dumps=str.encode) for text in texts]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.replace_substring(column, _NUL, _IN_ITS_PLACE)
    return python_values(column)


def _json(text: str) -> str:
    return _NUL_IN_JSON.sub(rf"\1{_IN_ITS_PLACE}", text) if "\\u0000" in text else text
