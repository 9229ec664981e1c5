"""Queries over a store in PostgreSQL, in connections of their own."""

from __future__ import annotations

from time import monotonic

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.database import LONGEST_QUERY, ONE_SELECT, TOO_LONG, reason, tables_instead
from cepheid.hosts.durable.stores.postgresql_rights import check_calls
from cepheid.hosts.durable.stores.results import MOST_RESULT, column_names, table_of

ALL_TABLES = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
"""The query for the names of all tables."""
_MOST_ACCEPTED = 256


class PostgresReader:
    """A `Reader` of the database at a URL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._accepted: set[str] = set()
        """Users' queries that were checked. They are often repeated, as by a dashboard."""

    def query(self, sql: str) -> pa.Table:
        return self._answer(sql, is_own=False)

    def own_query(self, sql: str) -> pa.Table:
        return self._answer(sql, is_own=True)

    def _answer(self, sql: str, *, is_own: bool) -> pa.Table:
        try:
            with psycopg.connect(self._url, autocommit=True, application_name="cepheid query") as reader:
                reader.execute("SET TIME ZONE 'UTC'")
                ends = monotonic() + LONGEST_QUERY
                _end_at(reader, ends)
                if not is_own and sql not in self._accepted:
                    check_calls(reader, sql)
                    self._accepted = {*self._accepted, sql} if len(self._accepted) < _MOST_ACCEPTED else {sql}
                reader.execute("BEGIN READ ONLY")
                # Only a SELECT can be a cursor, and in the protocol of binary results a text has one statement.
                reader.execute(f"DECLARE query NO SCROLL CURSOR FOR {sql}", binary=True)
                cursor = reader.cursor(binary=True)

                def fetch(count: int) -> list[TupleRow]:
                    _end_at(reader, ends)  # the server's limit is for a piece, not for the query
                    return cursor.execute(f"FETCH {count:d} FROM query").fetchall()

                return table_of(
                    fetch,
                    lambda: column_names(cursor.description),
                    None if is_own else MOST_RESULT,
                )
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL refuses the query: {reason(error)}{self._instead(error)}") from error

    def _instead(self, error: psycopg.Error) -> str:
        if isinstance(error, psycopg.errors.SyntaxError):
            return ONE_SELECT
        if isinstance(error, psycopg.errors.QueryCanceled):
            return TOO_LONG
        if not isinstance(error, psycopg.errors.UndefinedTable):
            return ""
        with psycopg.connect(self._url) as reader:
            return tables_instead(name for (name,) in reader.execute(ALL_TABLES).fetchall())


def _end_at(reader: psycopg.Connection, time: float) -> None:
    """Makes the next statement end at a time of the clock `monotonic`."""
    reader.execute(f"SET statement_timeout = {max(1, int(1000 * (time - monotonic())))}")
