"""Tiers: the matches of deployed patterns as events of further patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.events.batch import COMPUTED
from cepheid.events.time import arrow_zone
from cepheid.hosts.durable.deployed import Deployed, EventTable, Found, in_sequence
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.output.common import INSERTION, MATCH
from cepheid.plan.sequence import columns_of

PATTERN = "pattern"
"""The column with the name of the matched pattern, NULL in raw events."""


def tier_table(
    given: MatchesOf, upstream: Sequence[Deployed], sources: Sequence[Input], ended: Collection[str]
) -> EventTable:
    """How a tier's events are read. Its columns are those of the raw events, if they come along, and the measures of
    all upstream patterns, after their keys. `ended` are the names of patterns that were deployed at some time.

    Raises:
        SchemaError: a pattern is not deployed, has no measures, or a measure has the name of another column of another
            type.
    """
    names = [deployed.deployment.name for deployed in upstream]
    faults = [_not_running(name, ended) for name in given.patterns if name not in names]
    faults += [
        f"pattern {deployed.deployment.name!r} has no measures, which are the columns of its matches as events"
        for deployed in upstream
        if deployed.deployment.measures is None
    ]
    faults += [
        f"pattern {deployed.deployment.name!r} has a row for each event (rows_per='event'), and a tier takes matches: "
        "deploy the pattern under another name with rows_per='match'"
        for deployed in upstream
        if deployed.deployment.rows_per == "event"
    ]
    if not sources:  # none of the patterns is deployed
        raise SchemaError("\n".join(faults))
    first = sources[0]
    raw = next((one.columns for one in sources if one.name == given.raw), pa.schema([first.columns.field(first.time)]))
    fields = {field.name: field for field in raw}
    for deployed in upstream:
        for name, type_ in _columns_of(deployed).items():
            if (known := fields.setdefault(name, pa.field(name, type_))).type != type_:
                what = f"column {name!r} of pattern {deployed.deployment.name!r}"
                faults.append(f"{what} is of type {type_}, and another column of that name of type {known.type}")
    if faults:
        raise SchemaError("\n".join(faults))
    fields[PATTERN] = pa.field(PATTERN, pa.string())
    # Of the sequence, what is made from columns that the events of this tier have.
    sequence = tuple(text for text in first.sequence if {*columns_of([text], first.columns)} <= {*fields})
    events = in_sequence(pa.schema(fields.values()).empty_table(), sequence, first.time_zone)
    return EventTable(events.schema, first.time, sequence, first.time_zone, "error")


def _not_running(name: str, ended: Collection[str]) -> str:
    what = f"pattern {name!r}, whose matches are the input, is"
    if name not in ended:
        return f"{what} not deployed: deploy it first"
    return f"{what} retired or drains, so it begins no more matches: deploy it with a new version first"


def events_of_matches(
    table: EventTable, raw: TimedEvents | None, matches: Sequence[tuple[str, Found]]
) -> TimedEvents | None:
    """The tier's events: raw events, and the matches of patterns by name. None if there are none."""
    parts = [] if raw is None else [(_filled(raw.events, table), raw.times[0])]
    for name, found in matches:
        kinds = found.rows.column("kind")
        rows, detected = found.filter(pc.is_in(kinds, value_set=pa.array([MATCH, INSERTION])))
        if not rows.num_rows:
            continue
        columns = {column: rows.column(column) for column in rows.schema.names if column in table.columns.names}
        columns |= {table.time: _shown(detected, table), PATTERN: pa.array([name] * rows.num_rows, pa.string())}
        parts.append((_filled(pa.table(columns), table), detected))
    if not parts:
        return None
    times = pa.chunked_array([chunk for _, times in parts for chunk in times.chunks], parts[0][1].type)
    events = in_sequence(pa.concat_tables([events for events, _ in parts]), table.sequence, table.time_zone)
    return TimedEvents(events, (times,))


def _shown(detected: pa.ChunkedArray, table: EventTable) -> pa.ChunkedArray:
    """The instants in the type of the tier's time column."""
    type_ = table.columns.field(table.time).type
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return detected.cast(type_)
    in_zone = detected.cast(pa.timestamp("us", arrow_zone(table.time_zone)))
    return pc.local_timestamp(in_zone).cast(type_, safe=False)


def _filled(rows: pa.Table, table: EventTable) -> pa.Table:
    """The rows with the tier's columns; a missing one is NULL."""
    there, own = rows.schema.names, pa.schema([one for one in table.columns if not one.name.startswith(COMPUTED)])
    columns = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in own
    ]
    return pa.table(columns, schema=own)


# Tiers among the deployments


def upstream_first(running: Iterable[Deployed]) -> list[Deployed]:
    """The deployments in the order of their numbers, but each after those whose matches it reads."""
    left, ordered = sorted(running, key=lambda one: one.deployment.number), list[Deployed]()
    while left:
        waiting = {one.deployment.name for one in left}
        ready = [one for one in left if waiting.isdisjoint(_read_by(one.deployment))]
        assert ready, "deploy refuses cycles"
        ordered += ready
        left = [one for one in left if one not in ready]
    return ordered


def sources_of(given: str | MatchesOf, deployments: Sequence[Deployment]) -> set[str]:
    """The inputs that a deployment depends on: those of all versions of each upstream pattern that run or drain, or of
    the newest one.
    """
    if isinstance(given, str):
        return {given}
    found = set() if given.raw is None else {given.raw}
    for name in given.patterns:
        versions = [one for one in deployments if one.name == name]
        for one in [one for one in versions if one.status != "retired"] or versions[-1:]:
            found |= sources_of(one.input, deployments)
    return found


def cycle_faults(deployment: Deployment, running: Sequence[Deployed]) -> Iterator[str]:
    """A fault if the pattern would read its own matches, perhaps through other patterns."""
    paths: list[tuple[str, ...]] = [(name,) for name in _read_by(deployment)]
    while paths:
        path = paths.pop()
        if path[-1] == deployment.name:
            way = " reads ".join(repr(name) for name in (deployment.name, *path))
            yield f"input: the pattern would take its own matches as events: {way}"
            return
        upstream = (one.deployment for one in running if one.deployment.name == path[-1])
        paths += [(*path, name) for one in upstream for name in _read_by(one)]


def reader_faults(deployed: Deployed, former: Deployed | None, running: Sequence[Deployed]) -> Iterator[str]:
    """Faults for the running patterns that read the matches of this new version as events."""
    name, columns = deployed.deployment.name, _columns_of(deployed)
    before = {} if former is None else _columns_of(former)
    for reader in running:
        if name not in _read_by(reader.deployment):
            continue
        who = f"pattern {reader.deployment.name!r} reads the matches of {name!r}"
        if "matches" not in deployed.deployment.outputs:
            yield f"{who}: add 'matches' to the outputs"
        for column, type_ in columns.items():
            if column in reader.table.columns.names and reader.table.columns.field(column).type != type_:
                known = reader.table.columns.field(column).type
                yield f"{who}, and takes column {column!r} as {known}; here it is {type_}"
        for column in before:
            if column in reader.used_columns and column not in columns:
                yield f"{who}, and needs column {column!r}: add it to the measures"


def _read_by(deployment: Deployment) -> tuple[str, ...]:
    """The names of the patterns whose matches it reads."""
    return () if isinstance(deployment.input, str) else deployment.input.patterns


def _columns_of(deployed: Deployed) -> Mapping[str, pa.DataType]:
    """The columns that its matches have as events."""
    names = (*deployed.deployment.key, *(deployed.deployment.measures or ()))
    return {name: deployed.schema.field(name).type for name in names}
