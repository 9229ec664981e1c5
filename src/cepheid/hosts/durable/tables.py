"""The tables of rows that a durable host writes for a deployed pattern, and their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import RowTable
from cepheid.output.common import INCONSISTENT, INSERTION, LATE, MATCH, NO_MATCH, RETRACTION, TIMEOUT
from cepheid.plan.reserved import CAUSE, OF_EVENTS, POSITION

KINDS = {"matches": MATCH, "timeouts": TIMEOUT, "no_match": NO_MATCH, "inconsistent": INCONSISTENT, "late": LATE}
"""The kinds of rows, by output."""
_OF_ONE_EVENT = (LATE, INCONSISTENT)
"""The kinds of rows that are about an event in no match."""
_LONGEST = 40
"""PostgreSQL cuts names at 63 bytes; `matches_`, a digest and the number of an index come on top."""


def slug_of(name: str) -> str:
    """The part of table names that stands for a pattern. A name that is plain and short is its own slug; others get a
    digest, so that no two names have one slug.
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:_LONGEST]
    if plain == name:
        return plain
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{plain}_{digest}" if plain else digest


def open_table(deployment: Deployment, columns: pa.Schema, correlated: tuple[str, ...]) -> RowTable:
    """The table of open partial matches. `correlated` names the columns that are correlations."""
    keys = tuple(deployment.key)
    asked = [columns.field(name) for name in deployment.promoted or () if name not in correlated]
    promoted = tuple(
        (field.name,) for field in asked if not pa.types.is_duration(field.type)
    )  # DuckDB has no such index
    indexes = (("key_id",), ("status", "wakeup"), *([keys] if keys else []), *promoted)
    return RowTable(f"open_{deployment.slug}", columns, None, indexes, correlated)


def found_tables(deployment: Deployment, rows: pa.Schema) -> dict[str, RowTable]:
    """The tables for what is found, by the kind of row; `rows` has the columns of rows of all kinds."""
    tables = {}
    for output, kind in KINDS.items():
        if output in deployment.outputs:
            indexes = (("detected_at",),)  # old rows are removed by it
            columns = _found_schema(deployment, rows, kind)
            place = POSITION if POSITION in columns.names and deployment.rows_per == "event" else None
            tables[kind] = RowTable(f"{output}_{deployment.slug}", columns, "match_id", indexes, place=place)
    return tables


def _found_schema(deployment: Deployment, rows: pa.Schema, kind: str) -> pa.Schema:
    """match_id and version, then the columns of the rows that may have a value in rows of this kind."""
    without = {"kind", "pattern", "match_id"}
    if kind not in _OF_ONE_EVENT:
        without.add("event")
    elif deployment.rows_per == "event":
        without.update(OF_EVENTS)
    with_causes = {NO_MATCH, INCONSISTENT}
    if not with_causes.isdisjoint(deployment.outputs) and kind not in with_causes:
        without.add(CAUSE)
    others = [field for field in rows if field.name not in without]
    return pa.schema([rows.field("match_id"), pa.field("version", pa.string()), *others])


def found_rows(
    deployment: Deployment, tables: Mapping[str, RowTable], rows: pa.Table
) -> Iterator[tuple[RowTable, pa.Table]]:
    """The rows for each table. An insertion is a match; a retraction is in none."""
    kinds = rows.column("kind")
    for kind, table in tables.items():
        mine = rows.filter(pc.is_in(kinds, value_set=pa.array([kind, *([INSERTION] if kind == MATCH else [])])))
        if mine.num_rows:
            version = pa.array([deployment.version] * mine.num_rows, pa.string())
            yield table, mine.append_column("version", version).select(table.columns.names)


def retracted(rows: pa.Table) -> list[str]:
    """The ids of the matches that are retracted."""
    ids: list[str] = pc.unique(rows.filter(pc.equal(rows.column("kind"), RETRACTION)).column("match_id")).to_pylist()
    return ids
