"""`cepheid host patterns`, `open`, `matches`, `sql` and `grants`: what a host has, and who may read it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, require_installed
from cepheid.cli.host.opened import asked
from cepheid.cli.host.options import OutputFile, PatternName, StoreUrl
from cepheid.cli.host.shown import show

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


def patterns(store: StoreUrl, *, output: OutputFile = None, as_json: o.AsJson = False) -> None:
    """List the deployed patterns, with their versions, what has become of them, and the names of their tables."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        columns = "name, version, status, input, open_table, matches_table"
        rows = ask(f"SELECT {columns} FROM patterns ORDER BY number")
        show(rows, output, as_json=as_json, if_none="no patterns: deploy some with `cepheid host deploy`")


def open_(store: StoreUrl, name: PatternName, *, output: OutputFile = None, as_json: o.AsJson = False) -> None:
    """List the open partial matches of a pattern, the oldest first."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        table = _table_of(ask, name, "open_table")
        rows = ask(f"SELECT * FROM {table} ORDER BY started, id")
        show(rows, output, as_json=as_json, if_none="nothing is open", in_json=_nested(ask, name, rows))


def matches(
    store: StoreUrl,
    name: PatternName,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only what was detected from this time on, as 2026-01-31T12:00:00Z. A time without a zone is read in "
            "the zone of the input.",
        ),
    ] = None,
    output: OutputFile = None,
    as_json: o.AsJson = False,
) -> None:
    """List the matches of a pattern in the order in which they were detected."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        from cepheid.cli.host.detected_since import detected_since
        from cepheid.requests.arguments import time_of

        table = _table_of(ask, name, "matches_table")
        where = "" if since is None else f" WHERE {detected_since(ask, name, table, time_of('since', since))}"
        has_event_rows = _has_event_rows(ask, name)
        place = ", position" if has_event_rows else ""
        rows = ask(f"SELECT * FROM {table}{where} ORDER BY detected_at, match_id{place}")
        nested = [] if has_event_rows else _nested(ask, name, rows)
        show(rows, output, as_json=as_json, if_none="no matches", in_json=nested)


def sql(
    store: StoreUrl,
    query: Annotated[str, typer.Argument(help="A query in the SQL of the store's database.", show_default=False)],
    *,
    output: OutputFile = None,
    as_json: o.AsJson = False,
) -> None:
    """Ask a query over the tables of a host. It can change nothing."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        show(ask(query), output, as_json=as_json)


def grants(
    schema: Annotated[
        str, typer.Argument(metavar="SCHEMA", help="The schema of the host's tables.", show_default=False)
    ],
) -> None:
    """Print SQL that makes a schema in PostgreSQL for a host, with roles that run it, deploy, and read."""
    require_installed("PostgreSQL", "psycopg", extra="postgresql")
    from cepheid.hosts.durable.stores.postgresql_rights import grants as sql_of

    sys.stdout.write(sql_of(schema))


def _nested(ask: Callable[[str], pa.Table], name: str, rows: pa.Table) -> list[str]:
    """The columns of a pattern's table that may have events, which some databases have as JSON text: all but those
    whose values users have chosen.
    """
    from cepheid.hosts.durable.stores.database import literal

    chosen = set[str]()
    for content in ask(f"SELECT content FROM patterns WHERE name = {literal(name)}").column(0).to_pylist():
        given = json.loads(content)
        chosen |= {*given["key"], *(given["measures"] or ()), *(given["promoted"] or ())}
    return [column for column in rows.column_names if column not in chosen]


def _has_event_rows(ask: Callable[[str], pa.Table], name: str) -> bool:
    """Whether the table of matches has a row for each event."""
    from cepheid.hosts.durable.stores.database import literal

    contents = ask(f"SELECT content FROM patterns WHERE name = {literal(name)}").column(0).to_pylist()
    return any(json.loads(content).get("rows_per") == "event" for content in contents)


def _table_of(ask: Callable[[str], pa.Table], name: str, column: str) -> str:
    """The pattern's table, as SQL.

    Raises:
        SchemaError: no such pattern was deployed, or it has no such table.
    """
    from cepheid.errors import SchemaError, StoreError, did_you_mean
    from cepheid.hosts.durable.stores.database import quoted

    known = {row["name"]: row[column] for row in ask(f"SELECT name, {column} FROM patterns").to_pylist()}
    if name not in known:
        instead = did_you_mean(name, [*known], if_none="Deploy it with `cepheid host deploy`")
        raise SchemaError(f"no pattern {name!r} was deployed. {instead}")
    table = quoted(known[name])
    try:
        ask(f"SELECT * FROM {table} LIMIT 0")
    except StoreError:
        lacks = "lists no open partial matches" if column == "open_table" else "reports no matches"
        raise SchemaError(f"pattern {name!r} {lacks}, so it has no such table") from None
    return table
