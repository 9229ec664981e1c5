"""Functions for the rows of all kinds of pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, ORDINAL, TIME, Batch, Schema
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.output.events import EVENTS, lone_events
from cepheid.output.ids import Identifying, Ids, hex_ids, identified, purpose, single
from cepheid.output.typed import as_typed
from cepheid.plan.plan_set import PatternPlan


class _Column(Protocol):
    """A field of Arrow or of Spark."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=_Column)

MOST_BYTES = 1 << 31
"""The most bytes of texts in a column, nearly."""

MATCH, TIMEOUT, NO_MATCH, INCONSISTENT, LATE = "match", "timeout", "no_match", "inconsistent", "late"
INSERTION, RETRACTION, COMPLETION = "insertion", "retraction", "completion"
"""Kinds of rows. If matches may be retracted, they are emitted as insertions and retractions. A completion has an end
of a match that was not known when it was inserted.
"""


def merged(columns: Sequence[Sequence[C]], last: Sequence[str] = ("event",)) -> list[C]:
    """The columns for rows of several patterns: those of each pattern, each name once, then those named in `last`."""
    if len(columns) == 1:
        return [*columns[0]]
    found: dict[str, C] = {}
    for column in chain.from_iterable(columns):
        found.setdefault(column.name, column)
    end = [found.pop(name) for name in last if name in found]
    return [*found.values(), *end]


def net_matches(rows: pa.Table) -> int:
    """The insertions among the rows without the retractions."""
    kinds = rows.column("kind")
    inserted, taken_back = (pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in (INSERTION, RETRACTION))
    return int(inserted - taken_back)


def nullable(rows: pa.Schema) -> pa.Schema:
    """The same columns, each allowed to be NULL."""
    return pa.schema([field.with_nullable(nullable=True) for field in rows])


def filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of the schema; a missing column is NULL."""
    there = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns = [
        as_typed(field.type, there[field.name]) if field.name in there else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def late_rows(plan: PatternPlan, schema: pa.Schema, events: Batch, time: int, ids: Ids) -> pa.RecordBatch:
    """Late events as rows of the plan, whose outputs include "late". `time` is what the watermark had reached when they
    came.
    """
    detected_at = None if plan.schema.time is None or time == FOREVER else time
    times = pa.array([detected_at] * len(events), pa.int64()).cast(TIME_TYPE)
    return event_rows(plan, schema, LATE, events, {"detected_at": times}, ids=ids)


def event_rows(
    plan: PatternPlan, schema: pa.Schema, kind: str, events: Batch, own: Mapping[str, pa.Array], *, ids: Ids
) -> pa.RecordBatch:
    """Rows of a kind that is about one event each; `own` has the columns that only this kind has."""
    known = identified(ids, identities(plan.schema, plan.columns, events))
    columns: dict[str, pa.Array] = {
        "kind": pa.array([kind] * len(events), pa.string()),
        "pattern": pa.array([plan.pattern.name] * len(events), pa.string()),
        "match_id": hex_ids(known.hashes(single(range(len(events))), purpose(plan.pattern.name, kind))),
        **{name: events.column(f"{KEY_PREFIX}{i}") for i, name in enumerate(plan.schema.key)},
        **own,
    }
    if EVENTS in schema.names:
        columns[EVENTS] = lone_events(plan, events)
    else:
        rows = np.arange(len(events), dtype=np.int32)
        columns["event"] = event_structs(event_type(plan), plan.columns, events, rows)
    nothing = (pa.nulls(len(events), field.type) for field in schema)
    filled = [columns.get(field.name, nulls) for field, nulls in zip(schema, nothing, strict=True)]
    return pa.RecordBatch.from_arrays([as_typed(f.type, c) for f, c in zip(schema, filled, strict=True)], schema=schema)


def event_type(plan: PatternPlan) -> pa.DataType:
    return pa.struct([plan.schema.columns.field(name) for name in plan.columns])


def event_structs(
    type_: pa.DataType, chosen: Sequence[str], events: Batch, rows: Int32s, *, absent: np.ndarray | None = None
) -> pa.Array:
    """Events as structs of their chosen columns, NULL where `absent`. The other `rows` are rows of `events`."""
    indices, missing = pa.array(rows), None
    if absent is not None and absent.any():
        indices, missing = pa.array(rows, mask=absent), pa.array(absent)
    # The rows are ours, so Arrow need not check that each is there, which took half the time for a column of numbers.
    fields = [pc.take(events.column(EVENT_PREFIX + name), indices, boundscheck=False) for name in chosen]
    if not fields:
        valid = None if missing is None else pc.invert(missing).buffers()[1]
        return pa.Array.from_buffers(type_, len(rows), [valid])
    return pa.StructArray.from_arrays(
        [as_typed(type_.field(i).type, field) for i, field in enumerate(fields)],
        fields=[type_.field(i) for i in range(len(fields))],
        mask=missing,
    )


def identities(schema: Schema, chosen: Sequence[str], events: Batch) -> Identifying:
    """What identifies each event among the events of all keys. That always includes key and time, so these are left out
    of the chosen columns.
    """
    known = *schema.key, schema.time
    content = [events.column(EVENT_PREFIX + name) for name in chosen if name not in known]
    columns = [*events.keys, events.column(TIME), *events.finer, events.column(ORDINAL), *(events.sequence or content)]
    return Identifying(columns, len(events))
