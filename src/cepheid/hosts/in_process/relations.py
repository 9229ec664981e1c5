"""Relations of DuckDB as Arrow tables and back. Types that Arrow lacks are kept by casts on the way in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cepheid.hosts.in_process.given_types import in_types_of

_AS_TEXT = {"bit", "time with time zone", "bignum"}
"""DuckDB's types that Arrow has as bytes, or without a part of the value."""
_KEPT = {*_AS_TEXT, "enum", "uuid", "hugeint", "uhugeint"}
"""The types that Arrow has as another type."""
_NESTED = ("list", "array", "struct", "map")


def from_relation(relation: Any) -> tuple[pa.Table, dict[str, str]]:
    """The rows, and what is wrong with the columns that are left out, as their types cannot be used."""
    types = dict(zip(relation.columns, relation.types, strict=True))
    faults = {name: _fault(name, type_) for name, type_ in types.items() if _has(type_, {"union"})}
    if not faults and not any(_has(type_, _AS_TEXT) for type_ in types.values()):
        return pa.table(relation), {}
    columns = [
        f"CAST({_quoted(name)} AS {_read_as(type_)}) AS {_quoted(name)}" if _has(type_, _AS_TEXT) else _quoted(name)
        for name, type_ in types.items()
        if name not in faults
    ]
    return pa.table(relation.project(", ".join(columns))), faults


def to_relation(events: Any, columns: pa.Schema, table: pa.Table, sources: Mapping[str, str]) -> Any:
    """The table as a relation of the events' own connection, so that the two can be joined; columns that have their
    values from one of the events have its type. If the connection may not read Python's variables, it is a relation of
    DuckDB's default connection.
    """
    import duckdb

    cepheid_rows_of_this_call = in_types_of(columns, table, sources)  # DuckDB finds the variable by its name
    listed = ", ".join(_output(events, table.schema.names, sources)) or "*"
    query = f"SELECT {listed} FROM cepheid_rows_of_this_call"  # noqa: S608 - names are quoted
    try:
        return events.query("cepheid_events", query)
    except duckdb.CatalogException:
        return duckdb.from_arrow(cepheid_rows_of_this_call).project(listed)


def _output(events: Any, names: list[str], sources: Mapping[str, str]) -> list[str]:
    """The columns of the output as SQL."""
    types = dict(zip(events.columns, events.types, strict=True))
    kept = {name: types[source] for name, source in sources.items() if source in types and _is_kept(types[source])}
    return [
        f"CAST({_quoted(name)} AS {kept[name]}) AS {_quoted(name)}" if name in kept else _quoted(name) for name in names
    ]


def _is_kept(type_: Any) -> bool:
    return _has(type_, _KEPT) or "JSON" in str(type_)


def _has(type_: Any, kinds: set[str]) -> bool:
    """Whether the type is one of these kinds, or has one within."""
    if type_.id in _NESTED:
        return any(_has(inner, kinds) for name, inner in type_.children if name != "size" or type_.id != "array")
    return type_.id in kinds


def _read_as(type_: Any) -> str:
    """The type, as SQL, with texts in place of what Arrow lacks."""
    if type_.id in _AS_TEXT:
        return "VARCHAR"
    if type_.id not in _NESTED:
        return str(type_)
    parts = dict(type_.children)
    match type_.id:
        case "list":
            return f"{_read_as(parts['child'])}[]"
        case "array":
            return f"{_read_as(parts['child'])}[{parts['size']}]"
        case "map":
            return f"MAP({_read_as(parts['key'])}, {_read_as(parts['value'])})"
    return f"STRUCT({', '.join(f'{_quoted(name)} {_read_as(inner)}' for name, inner in type_.children)})"


def _fault(name: str, type_: Any) -> str:
    what = f"column {name!r} of the events is of DuckDB's type {type_}, which cannot be used"
    return f"{what}. Leave it out with columns=[…], or take a member of it, as in union_extract({name}, 'member')"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
