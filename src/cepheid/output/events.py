"""Rows of events: each event of a match has a row of its own.

Matchers and hosts work with one row per match, which has the events in a list (`EVENTS`). Where rows leave a host, the
list is unnested. So what happens to a match, as a retraction, happens to all of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.events.batch import EVENT_PREFIX, NUMBER, Batch
from cepheid.kernel.arrays import Int32s
from cepheid.output.typed import as_typed
from cepheid.plan.plan_set import PatternPlan
from cepheid.plan.reserved import POSITION, ROW_NUMBER, STAGE, STAGE_POSITION

EVENTS = "_events"
"""The column with the list of a match's events."""


class Taken(NamedTuple):
    """The events of matches, one match after the other, each in its order."""

    ends: Ints
    """(matches,) the events of match i end before ends[i]."""
    row: Int32s
    """(events,) the row of each in a batch."""
    stage: pa.Array
    """(events,) the name of the stage or variable, NULL for none."""
    stage_position: pa.Array
    """(events,) the place among the events of the stage, from 1; NULL for none."""

    @property
    def position(self) -> Ints:
        """(events,) the place in the match, from 1."""
        lengths = np.diff(self.ends, prepend=0)
        found: Ints = np.arange(len(self.row)) - np.repeat(self.ends - lengths, lengths) + 1
        return found


def events_field(plan: PatternPlan) -> pa.Field:
    """The field of `EVENTS`: per event its place, its columns or its number, and the slots of running measures."""
    columns = [plan.schema.columns.field(name).with_nullable(nullable=True) for name in own_columns(plan)]
    parts = [
        pa.field(STAGE, pa.string()),
        *(pa.field(name, pa.int64()) for name in (POSITION, STAGE_POSITION)),
        *([pa.field(ROW_NUMBER, pa.int64())] if plan.numbered else columns),
        *(pa.field(name, slot.type) for name, slot in plan.running_slots.items()),
    ]
    return pa.field(EVENTS, pa.list_(pa.struct(parts)))


def own_columns(plan: PatternPlan) -> list[str]:
    """The event columns that rows of events have in addition to the key."""
    return [name for name in dict.fromkeys(plan.columns) if name not in plan.schema.key]


def events_column(plan: PatternPlan, taken: Taken, events: Batch, running: Mapping[str, pa.Array]) -> pa.Array:
    """The column `EVENTS`; `running` has the slots of running measures, for each event."""
    rows = pa.array(taken.row)
    own = {name: events.column(source).take(rows) for name, source in _sources(plan).items()}
    return _lists(
        plan,
        {
            STAGE: taken.stage,
            POSITION: pa.array(taken.position),
            STAGE_POSITION: taken.stage_position,
            **own,
            **running,
        },
        np.concatenate([[0], taken.ends]),
    )


def lone_events(plan: PatternPlan, events: Batch) -> pa.Array:
    """The column `EVENTS` for rows that are about one event each, which is in no match."""
    return _lists(
        plan,
        {name: events.column(source) for name, source in _sources(plan).items()},
        np.arange(len(events) + 1),
    )


def _sources(plan: PatternPlan) -> dict[str, str]:
    """The columns of a batch that parts of `EVENTS` have their values from."""
    return {ROW_NUMBER: NUMBER} if plan.numbered else {name: EVENT_PREFIX + name for name in own_columns(plan)}


def _lists(plan: PatternPlan, parts: Mapping[str, pa.Array], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Lists of structs of these parts; parts that are missing are NULL."""
    type_, count = events_field(plan).type, int(offsets[-1])
    columns = [
        as_typed(part.type, parts[part.name]) if part.name in parts else pa.nulls(count, part.type)
        for part in type_.value_type
    ]
    structs = pa.StructArray.from_arrays(columns, fields=[*type_.value_type])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=type_)


def unnested_schema(rows: pa.Schema) -> pa.Schema:
    """The columns of `unnested`."""
    if EVENTS not in rows.names:
        return rows
    place = rows.names.index(EVENTS)
    fields = [*rows]
    return pa.schema([*fields[:place], *rows.field(EVENTS).type.value_type, *fields[place + 1 :]])


def unnested(rows: pa.Table) -> pa.Table:
    """A row for each event of each row, in place of the list. Rows of other shapes stay as they are."""
    if EVENTS not in rows.schema.names:
        return rows
    schema = unnested_schema(rows.schema)
    return pa.Table.from_batches([_unnested(batch, schema) for batch in rows.to_batches()], schema)


def _unnested(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    lists = rows.column(EVENTS)
    match, events = pc.list_parent_indices(lists), lists.flatten()
    columns: list[pa.Array] = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        columns += events.flatten() if name == EVENTS else [column.take(match)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def places_within(group: Ints) -> Ints:
    """For each member the number of members of its group up to it, from 1."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(begins, np.diff(begins, append=len(group))) + 1
    return place
