"""The columns of an input: written as in SQL, or those of a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMN = re.compile(r"\s*(?:`([^`]+)`|(\w+))\s+([^()]+(?:\([\d\s,]*\))?)\s*")
_BETWEEN = re.compile(r",(?![^(]*\))")


def columns_from(schema: str | None, like: Path | None, times: list[str]) -> pa.Schema:
    """The columns that one of the two names; text in the columns `times` of the file is read as times.

    Raises:
        typer.BadParameter: none or both are given, or the text is not a list of columns.
        FileProblem: the file cannot be read.
    """
    if (schema is None) == (like is None):
        raise typer.BadParameter("give one, as in --schema 'user STRING, at TIMESTAMP'", param_hint="--schema, --like")
    if schema is not None:
        return _columns_in(schema)
    from cepheid.cli.files import event_files, read_schema

    return read_schema(event_files([str(like)]), times=times)


def _columns_in(schema: str) -> pa.Schema:
    import pyarrow as pa

    from cepheid.lang.type_names import KNOWN, read_type

    fields, faults = [], []
    for text in _BETWEEN.split(schema):
        found = _COLUMN.fullmatch(text)
        if found is None:
            faults.append(f"{text.strip()!r} is not a name and a type, as in 'at TIMESTAMP'")
            continue
        try:
            fields.append(pa.field(found[1] or found[2], read_type(found[3])))
        except ValueError:
            faults.append(f"{found[3]!r} is no type; known: {KNOWN}. Nested columns can be given by --like FILE")
    if faults:
        raise typer.BadParameter("; ".join(faults), param_hint="--schema")
    return pa.schema(fields)
