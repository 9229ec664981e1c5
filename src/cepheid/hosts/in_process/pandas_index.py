"""Columns that are meant, but that pandas has in the index of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.requests.request import Request

_NAMES = b"cepheid.index"
"""In the metadata of a table: the names of the levels of the index, null for one without a name."""
_TIMES = "datetime64"


def with_index(table: pa.Table, index: Any) -> pa.Table:
    """The table, with what must be known of the index of the pandas table that it was."""
    levels = [index.get_level_values(number) for number in range(index.nlevels)]
    named = [None if level.name is None else str(level.name) for level in levels if _may_be_meant(level)]
    return (
        table.replace_schema_metadata({**(table.schema.metadata or {}), _NAMES: json.dumps(named)}) if named else table
    )


def _may_be_meant(level: Any) -> bool:
    return level.name is not None or str(level.dtype).startswith(_TIMES)


def refuse_index(columns: pa.Schema, request: Request) -> None:
    """Raises SchemaError if a column that is asked for is missing, and the index has its name, or times without a
    name.
    """
    index = json.loads((columns.metadata or {}).get(_NAMES, "[]"))
    faults = [*_faults([name for name in _asked(request) if name[1] not in columns.names], index)] if index else []
    if faults:
        raise SchemaError("\n".join(faults))


def _asked(request: Request) -> Iterator[tuple[str, str]]:
    yield from (("key", name) for name in request.key)
    yield from (("time", name) for name in (request.time, request.end) if name is not None)
    yield from (("sequence", text.split()[0]) for text in request.sequence if text.strip())
    yield from (("columns", name) for name in request.columns or ())


def _faults(missing: list[tuple[str, str]], index: list[str | None]) -> Iterator[str]:
    for what, name in missing:
        if name in index:
            yield f"{what}: {name!r} is in the index of the table, not among its columns: give events.reset_index()"
        elif what == "time" and None in index:
            advice = f"If they are meant, give events.rename_axis({name!r}).reset_index()"
            yield f"time: no column named {name!r}, but the index, which has no name, has times. {advice}"
