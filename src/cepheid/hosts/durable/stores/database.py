"""What stores in SQL databases ask of a database: one module each has what is special about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cepheid.errors import StoreError

_NO_RIGHTS = "42501"
"""SQL's code for what the user may not do."""
_RIGHTS = (
    ". A host's user needs USAGE and CREATE on the schema, and all rights on the tables that hosts made there. Columns "
    "are added to a table, as for new measures, only by the role that has made it: deploy such a version as that role"
)


class Reader(Protocol):
    """Answers queries over what is stored in a database."""

    def query(self, sql: str) -> pa.Table:
        """The result of a user's query, which cannot change anything.

        Raises:
            StoreError: the database refuses it, the result is too large, or a column has values of several types.
        """

    def own_query(self, sql: str) -> pa.Table:
        """The same for a query of the host itself, which need not be checked."""


class Database(Protocol):
    """A connection to a database, and what is special about its SQL. All values are given as parameters."""

    mark: str
    """The mark of a parameter in a statement."""
    errors: tuple[type[Exception], ...]
    """What the driver raises."""
    place: str
    """The column that says where a row is, within a transaction."""
    method_for_texts: str
    """The method of an index over texts of any length, for equality alone, as SQL; empty: the usual one."""
    longest_name: int | None
    """The bytes after which the database cuts names without a word; None: it does not."""
    has_indexes: bool
    """Whether tables for users get indexes. Not where they cost more at a write than they save at a query."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None: ...

    def changed(self, statement: str) -> int:
        """Executes the statement; returns the number of rows that it has changed."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """
        Raises:
            StoreError: they cannot be read.
        """

    def insert(self, table: str, rows: pa.Table, key: Sequence[str] = ()) -> None:
        """Adds rows. With a `key`, rows whose values in these columns are there already are left out."""

    def insert_parts(self, rows: pa.Table, counts: Sequence[tuple[str, int]]) -> None:
        """Adds to each table so many rows, one table after the other."""

    def delete_where_in(self, table: str, column: str, values: Sequence[str], condition: str = "") -> None:
        """Removes the rows whose column has one of the values, and that fit the condition."""

    def delete_places(self, table: str, places: Sequence[Any]) -> None:
        """Removes the rows at these places."""

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

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    @property
    def reader(self) -> Reader: ...

    def backup(self, path: Path) -> None:
        """Writes the host's tables to a new file, as they are between two transactions."""

    def close(self) -> None: ...


_MOST_SHOWN = 40
"""Tables: a host with many patterns has thousands."""
LONGEST_QUERY = 60
"""Seconds: a user's query that takes longer is ended."""
TOO_LONG = f". A query may take {LONGEST_QUERY} seconds: aggregate less, or read fewer rows"
ONE_SELECT = ". A query is one SELECT over the tables of the host"
"""Advice for what a database says of a query that it ends or refuses."""
_DISK = re.compile(r"disk|no space|too large", re.IGNORECASE)


def quoted(name: str) -> str:
    """The name as SQL. All of a host's statements quote names here."""
    return '"' + name.replace('"', '""') + '"'


def create_table(database: Database, name: str, columns: pa.Schema, key: Sequence[str]) -> None:
    """Makes a table; `key` has the columns of its primary key, if it has one."""
    parts = [f"{quoted(field.name)} {database.type_name(field.type)}" for field in columns]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    database.execute(f"CREATE TABLE {quoted(name)} ({', '.join(parts)})")


def literal(text: str) -> str:
    """The text as SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def failing(database: Database, what: str) -> Iterator[None]:
    """Errors of the driver become errors of the store."""
    try:
        yield
    except database.errors as error:
        problem, advice = reason(error), ""
        if getattr(error, "sqlstate", None) == _NO_RIGHTS:
            advice = _RIGHTS
        elif _DISK.search(problem):
            advice = ". Make room on the disk, then repeat the step"
        raise StoreError(f"the store cannot be {what}: {problem}{advice}") from error


def tables_instead(names: Iterable[str]) -> str:
    """What to add to the error about a table that does not exist: the tables that there are for users."""
    shown = sorted(name for name in names if not name.startswith("cepheid_"))
    more = f", and {len(shown) - _MOST_SHOWN:,} more" if len(shown) > _MOST_SHOWN else ""
    return f". There are: {', '.join(shown[:_MOST_SHOWN])}{more}"


def reason(error: Exception) -> str:
    """The first line of a driver's message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
