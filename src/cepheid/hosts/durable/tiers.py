"""Tiers: the matches of deployed patterns as events of further patterns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.hosts.durable.deployed import Deployed, EventTable
from cepheid.hosts.durable.state import Input, MatchesOf
from cepheid.hosts.in_process.prepare import TimedEvents, instants
from cepheid.output.common import INSERTION, MATCH

PATTERN = "pattern"
"""The column with the name of the matched pattern, NULL in raw events."""


def tier_table(given: MatchesOf, upstream: Sequence[Deployed], sources: Sequence[Input]) -> EventTable:
    """How a tier's events are read. Its columns are those of the raw events, if they come along, and the measures of
    all upstream patterns, after their keys.

    Raises:
        SchemaError: a pattern is not deployed, has no measures, or a measure has the name of another column of another
            type.
    """
    names = [deployed.deployment.name for deployed in upstream]
    faults = [
        f"pattern {name!r}, whose matches are the input, is not deployed"
        for name in given.patterns
        if name not in names
    ]
    faults += [
        f"pattern {deployed.deployment.name!r} has no measures, which are the columns of its matches as events"
        for deployed in upstream
        if deployed.deployment.measures is None
    ]
    if not sources:  # none of the patterns is deployed
        raise SchemaError("\n".join(faults))
    first = sources[0]
    raw = next((one.columns for one in sources if one.name == given.raw), pa.schema([first.columns.field(first.time)]))
    fields = {field.name: field for field in raw}
    for deployed in upstream:
        for name in (*deployed.deployment.key, *(deployed.deployment.measures or ())):
            field = deployed.schema.field(name).with_nullable(nullable=True)
            if (known := fields.setdefault(name, field)).type != field.type:
                what = f"column {name!r} of pattern {deployed.deployment.name!r}"
                faults.append(f"{what} is of type {field.type}, and another column of that name of type {known.type}")
    if faults:
        raise SchemaError("\n".join(faults))
    fields[PATTERN] = pa.field(PATTERN, pa.string())
    sequence = tuple(name for name in first.sequence if name in fields)
    return EventTable(pa.schema(fields.values()), first.time, sequence, first.time_zone, "error")


def events_of_matches(
    table: EventTable, raw: TimedEvents | None, matches: Sequence[tuple[str, pa.Table]]
) -> TimedEvents | None:
    """The tier's events: raw events, and the matches of patterns by name. None if there are none."""
    parts = [] if raw is None else [_filled(raw.events, table)]
    for name, rows in matches:
        found = rows.filter(pc.is_in(rows.column("kind"), value_set=pa.array([MATCH, INSERTION])))
        if not found.num_rows:
            continue
        at = found.column("detected_at").cast(table.columns.field(table.time).type)
        columns = {column: found.column(column) for column in found.schema.names if column in table.columns.names}
        columns |= {table.time: at, PATTERN: pa.array([name] * found.num_rows, pa.string())}
        parts.append(_filled(pa.table(columns), table))
    if not parts:
        return None
    events = pa.concat_tables(parts)
    return TimedEvents(events, (instants(events.column(table.time), table.time, table.time_zone),))


def _filled(rows: pa.Table, table: EventTable) -> pa.Table:
    """The rows with the tier's columns; a missing one is NULL."""
    there = rows.schema.names
    columns = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in table.columns
    ]
    return pa.table(columns, schema=table.columns)
