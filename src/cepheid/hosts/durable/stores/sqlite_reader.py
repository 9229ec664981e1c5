"""Queries over a store in SQLite, also while another process writes it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.database import LONGEST_QUERY, tables_instead
from cepheid.hosts.durable.stores.results import MOST_RESULT, column_names, table_of

TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
"""The query for the names of all tables."""
_LONGEST_VALUE = 256 << 20
"""Bytes: the most that a value may have that a query computes."""
_STEPS = 100_000
"""Between two looks at the clock; about a millisecond."""


class SqliteReader:
    """A `Reader` of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def query(self, sql: str) -> pa.Table:
        return self._answer(sql, MOST_RESULT)

    def own_query(self, sql: str) -> pa.Table:
        return self._answer(sql, None)

    def _answer(self, sql: str, most: int | None) -> pa.Table:
        reader = self._opened()
        reader.set_authorizer(_only_reads)
        reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        until = time.monotonic() + LONGEST_QUERY
        reader.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            cursor = reader.execute(sql)
            return table_of(cursor.fetchmany, lambda: column_names(cursor.description), most)
        except sqlite3.Error as error:
            raise StoreError(f"SQLite refuses the query: {error}{self._instead(error)}") from error
        finally:
            reader.close()

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)

    def _instead(self, error: sqlite3.Error) -> str:
        if not str(error).startswith("no such table"):
            return ""
        with closing(self._opened()) as reader:
            return tables_instead(name for (name,) in reader.execute(TABLES))


def _only_reads(action: int, *_: str | None) -> int:
    """What a user's query may do: nothing but read the host's tables. It could attach other files."""
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
