"""Queries over a store in SQLite, also while another process writes it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.database import LONGEST_QUERY, ONE_SELECT, TOO_LONG, tables_instead
from cepheid.hosts.durable.stores.results import MOST_RESULT, column_names, table_of

TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
"""The query for the names of all tables."""
_LONGEST_VALUE = 256 << 20
"""Bytes: the most that a value may have that a query computes."""
_STEPS = 100_000
"""Between two looks at the clock; about a millisecond."""
_UNCHANGED = "&immutable=1"
"""The option of SQLite for a file that nobody changes."""
_CANNOT_WRITE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""SQLite's errors where it cannot make, or write, the files beside a store."""


class SqliteReader:
    """A `Reader` of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def query(self, sql: str) -> pa.Table:
        return self._answer(sql, MOST_RESULT)

    def own_query(self, sql: str) -> pa.Table:
        return self._answer(sql, None)

    def _answer(self, sql: str, most: int | None) -> pa.Table:
        try:
            with closing(self._opened()) as reader:
                return _read(reader, sql, most)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _CANNOT_WRITE and self._path.exists():
                return self._answer_unchanged(sql, most)
            raise StoreError(f"SQLite refuses the query: {error}{self._instead(error)}") from error

    def _answer_unchanged(self, sql: str, most: int | None) -> pa.Table:
        """The answer from the file alone. A user who may not write in its folder cannot make the files that SQLite
        needs beside it, and without a host they are not there. A host that comes meanwhile makes them, or changes the
        file.
        """
        before = self._state()
        if before is None:
            raise StoreError(
                f"{self._path} was not closed by its host, and only a user who may write in its folder can read it: "
                "start the host, or ask as that user"
            )
        try:
            with closing(self._opened(_UNCHANGED)) as reader:
                answer = _read(reader, sql, most)
        except sqlite3.Error as error:
            raise StoreError(f"SQLite refuses the query: {error}{self._instead(error, _UNCHANGED)}") from error
        if self._state() != before:
            raise StoreError(f"a host has changed {self._path} during the query: ask again")
        return answer

    def _state(self) -> tuple[int, int, int] | None:
        """What changes when something is written; None if there are changes beside the file."""
        if self._path.with_name(f"{self._path.name}-wal").exists():
            return None
        status = self._path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _opened(self, option: str = "") -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro{option}", uri=True)

    def _instead(self, error: sqlite3.Error, option: str = "") -> str:
        code = getattr(error, "sqlite_errorcode", None)
        if code in _ADVICE:
            return _ADVICE[code]
        if not str(error).startswith("no such table"):
            return ""
        with closing(self._opened(option)) as reader:
            return tables_instead(name for (name,) in reader.execute(TABLES))


def _read(reader: sqlite3.Connection, sql: str, most: int | None) -> pa.Table:
    reader.set_authorizer(_only_reads)
    reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    until = time.monotonic() + LONGEST_QUERY
    reader.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    cursor = reader.execute(sql)
    return table_of(cursor.fetchmany, lambda: column_names(cursor.description), most)


_ADVICE = {sqlite3.SQLITE_AUTH: ONE_SELECT, sqlite3.SQLITE_INTERRUPT: TOO_LONG}


def _only_reads(action: int, *_: str | None) -> int:
    """What a user's query may do: nothing but read the host's tables. It could attach other files."""
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
