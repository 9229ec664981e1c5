"""The tables of rows for users in a SQL database: open partial matches, matches, timeouts, late events."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.store import RowTable
from cepheid.hosts.durable.stores.database import Database, create_table, quoted
from cepheid.hosts.durable.stores.layout import TABLES, USER_TABLES


def make_table(database: Database, table: RowTable) -> None:
    """Makes the table, or adds the columns that it lacks.

    Raises:
        StoreError: there is a table of this name that no host has made, a column has another type, or the database
            gives two columns one name.
    """
    types = {field.name: database.type_name(field.type) for field in table.columns}
    there = _types_of(database, table.name)
    _check_names(database, table.name, [*types, *(there or {})])
    if there is None:
        _create(database, table)
    else:
        check_types(table.name, there, types)
        for name in types.keys() - there:
            database.execute(f"ALTER TABLE {quoted(table.name)} ADD COLUMN {quoted(name)} {types[name]}")
        _create_indexes(database, table, there)
    if types.keys() - (there or {}):
        _save_types(database, table.name, {**(there or {}), **types})


def _check_names(database: Database, table: str, names: Sequence[str]) -> None:
    """
    Raises:
        StoreError: names differ only after the place where the database cuts them.
    """
    first: dict[str, str] = {}
    for name in names:
        cut = name.encode()[: database.longest_name].decode(errors="ignore")  # no character is cut in two
        other = first.setdefault(cut, name)
        if other != name:
            raise StoreError(
                f"table {table!r} would have two columns of one name, as the database cuts names after "
                f"{database.longest_name} bytes: {other!r} and {name!r}. Give one of them a shorter name"
            )


def _create(database: Database, table: RowTable) -> None:
    if table.name in database.tables():
        raise StoreError(
            f"the database has a table {table.name!r} that no host has made. Rename it, or give the host a database "
            "or a schema of its own"
        )
    create_table(database, table.name, table.columns, table.key)
    _create_indexes(database, table, {})


def _create_indexes(database: Database, table: RowTable, before: Collection[str]) -> None:
    """Makes the indexes of a table that had the columns `before`, and the indexes over them alone."""
    plain = [("", columns) for columns in table.indexes]
    looked_up = [(_method(database, table.columns.field(name).type), (name,)) for name in table.looked_up]
    new = [(method, columns) for method, columns in (*plain, *looked_up) if not {*columns} <= {*before}]
    for number, (method, columns) in enumerate(new if database.has_indexes else (), len(before)):  # no number twice
        named = ", ".join(map(quoted, columns))
        index = quoted(f"{table.name}_{number}")
        database.execute(f"CREATE INDEX {index} ON {quoted(table.name)}{method} ({named})")


def _method(database: Database, type_: pa.DataType) -> str:
    """The method of an index for equality alone, as SQL."""
    return database.method_for_texts if pa.types.is_string(type_) or pa.types.is_large_string(type_) else ""


def _types_of(database: Database, table: str) -> dict[str, str] | None:
    """The types of the columns of a table that a host has made."""
    rows = database.rows(f"SELECT types FROM {USER_TABLES} WHERE name = {database.mark}", (table,))
    return json.loads(rows[0][0]) if rows else None


def _save_types(database: Database, table: str, types: Mapping[str, str]) -> None:
    database.execute(f"DELETE FROM {USER_TABLES} WHERE name = {database.mark}", (table,))
    row = {"name": [table], "types": [json.dumps(types)]}
    database.insert(USER_TABLES, pa.table(row, schema=TABLES[USER_TABLES]))


def check_types(table: str, there: Mapping[str, str], types: Mapping[str, str]) -> None:
    """
    Raises:
        StoreError: a column that is there has another type now.
    """
    changed = [
        f"{name!r} is {there[name]} there, not {types[name]}"
        for name in sorted(types.keys() & there)
        if there[name] != types[name]
    ]
    folded = {name.lower(): name for name in there}
    changed += [
        f"{folded[name.lower()]!r} and {name!r} differ in case alone"
        for name in sorted(types.keys() - there)
        if name.lower() in folded
    ]
    if changed:
        raise StoreError(
            f"table {table!r} has other columns from an earlier version: {', '.join(changed)}. Give these columns "
            "other names"
        )
