"""The tables of rows that a durable host writes for a deployed pattern, and their rows."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.durable.deployed import Deployed
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import RowTable
from cepheid.output.common import INSERTION, LATE, MATCH, NO_MATCH, RETRACTION, TIMEOUT
from cepheid.plan.reserved import CAUSE

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


def open_table(deployed: Deployed) -> RowTable | None:
    """The table of open partial matches; None if the pattern has none that can be listed."""
    columns = deployed.open_schema
    if columns is None:
        return None
    keys = tuple(deployed.deployment.key)
    asked = [columns.field(name) for name in deployed.deployment.promoted or () if name not in deployed.correlated]
    promoted = tuple(
        (field.name,) for field in asked if not pa.types.is_duration(field.type)
    )  # DuckDB has no such index
    indexes = (("key_id",), ("status", "wakeup"), *([keys] if keys else []), *promoted)
    return RowTable(f"open_{deployed.deployment.slug}", columns, None, indexes, deployed.correlated)


def found_tables(deployed: Deployed, among: Container[str] | None = None) -> dict[str, RowTable]:
    """The tables for what is found, by the kind of row; `among` restricts the outputs."""
    asked, slug = deployed.deployment.outputs, deployed.deployment.slug
    kinds = {"matches": MATCH, "timeouts": TIMEOUT, "no_match": NO_MATCH, "late": LATE}
    tables = {}
    for output, kind in kinds.items():
        if output in asked and (among is None or output in among):
            indexes = (("detected_at",),)  # old rows are removed by it
            tables[kind] = RowTable(f"{output}_{slug}", _found_schema(deployed, kind), "match_id", indexes)
    return tables


def tables_of(deployed: Deployed) -> list[RowTable]:
    """All tables of the pattern."""
    open_ = open_table(deployed)
    return [*([] if open_ is None else [open_]), *found_tables(deployed).values()]


def _found_schema(deployed: Deployed, kind: str) -> pa.Schema:
    """match_id and version, then the columns of the rows that may have a value in rows of this kind."""
    without = {"kind", "pattern", "match_id", *({"event"} if kind != LATE else ())}
    if NO_MATCH in deployed.deployment.outputs and kind != NO_MATCH:
        without.add(CAUSE)
    others = [field for field in deployed.schema if field.name not in without]
    return pa.schema([deployed.schema.field("match_id"), pa.field("version", pa.string()), *others])


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
    ids: list[str] = rows.filter(pc.equal(rows.column("kind"), RETRACTION)).column("match_id").to_pylist()
    return ids
