"""From the kernel's flat arrays to rows: one a match, in the documented columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import ConditionError, SchemaError
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, ORDINAL, TIME, TIME_TYPE, Batch, Schema
from cepheid.events.identity import DIGEST_SIZE, canonical_bytes, digests, joined, raw_bytes
from cepheid.kernel.stages.kernel import Emitted
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Int32s
from cepheid.output.measures import StageEvents, slot_values
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.stages.plan import Plan, StageColumn


class _Column(Protocol):
    """A field of Arrow or of Spark."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=_Column)

MATCH, TIMEOUT, LATE = "match", "timeout", "late"
"""Kinds of rows."""


MOST_ROWS = 1 << 25
"""Rows made at once: Arrow counts the bytes of texts, and match ids have many, in 32 bits."""


def parts_of(emitted: Emitted, most: int = MOST_ROWS) -> Iterator[Emitted]:
    """What was emitted, at most so many matches at once."""
    for start in range(0, len(emitted.end), most):
        ends = emitted.end[start : start + most]
        first = int(emitted.end[start - 1]) if start else 0
        yield Emitted(
            end=ends - first,
            detected_at=emitted.detected_at[start : start + most],
            timeout=emitted.timeout[start : start + most],
            event=emitted.event[first : ends[-1]],
            stage=emitted.stage[first : ends[-1]],
        )


def row_schema(plan: Plan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then a column a stage, or a column a slot of the
    measures. With outputs beside matches: kind and pattern in front, all stages in one map, and the late event.
    """
    common = [
        pa.field("match_id", pa.string(), nullable=False),
        *plan.schema.key_fields,
        pa.field("match_start", TIME_TYPE),
        pa.field("match_end", TIME_TYPE),
        pa.field("detected_at", TIME_TYPE),
    ]
    if plan.measures is not None:
        common += [pa.field(name, slot.type) for name, slot in plan.slots.items()]
    elif plan.outputs is None:
        common += [_stage_field(plan, column) for column in plan.stage_columns]
    else:
        common.append(_stages_field(plan))
    if plan.outputs is None:
        return pa.schema(common)
    told = [pa.field("kind", pa.string(), nullable=False), pa.field("pattern", pa.string(), nullable=False)]
    return pa.schema([*told, *common, pa.field("event", event_type(plan))])


def merged(columns: Sequence[Sequence[C]], last: str = "event") -> list[C]:
    """The columns of the rows of several patterns: those of each, a name once, the one named `last` behind them."""
    if len(columns) == 1:
        return [*columns[0]]
    found: dict[str, C] = {}
    for column in chain.from_iterable(columns):
        found.setdefault(column.name, column)
    behind = [found.pop(last)] if last in found else []
    return [*found.values(), *behind]


def filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the columns of the schema; those that they have not are NULL."""
    there = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns = [
        as_typed(field.type, there[field.name]) if field.name in there else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def rows_of(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.RecordBatch:
    """What was emitted as rows of `row_schema`; the i-th event of `emitted` is row position[i] of `events`."""
    if plan.outputs is None:
        return _rows(plan, MATCH, emitted, events, position)
    parts, places = [], []
    for kind, asked, chosen in (
        (MATCH, "matches" in plan.outputs, ~emitted.timeout),
        (TIMEOUT, "timeouts" in plan.outputs, emitted.timeout),
    ):
        if asked and chosen.any():
            part, taken = emitted.only(chosen)
            rows, place = _rows(plan, kind, part, events, position[taken]), np.flatnonzero(chosen)
            first = _first_of_equals(rows.column("match_id")) if kind == TIMEOUT else np.arange(len(place))
            parts.append(rows.take(pa.array(first)))
            places.append(place[first])
    if not parts:
        return pa.RecordBatch.from_pylist([], row_schema(plan))
    return pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(places))))


def _first_of_equals(ids: pa.Array) -> npt.NDArray[np.int64]:
    """The rows that have not the same events and time as one before: branches that have taken the same events time out
    together. Those that time out later are left to `told`.
    """
    named = pa.table({"id": ids, "row": np.arange(len(ids))})
    first = named.group_by("id", use_threads=False).aggregate([("row", "min")])
    found: npt.NDArray[np.int64] = np.sort(first.column("row_min").to_numpy())
    return found


def late_rows(plan: Plan | OccurrencePlan, schema: pa.Schema, events: Batch, time: int) -> pa.RecordBatch:
    """Events that came when time had passed to `time`, as rows of the plan; its outputs have "late"."""
    detected_at = None if plan.schema.time is None or time == FOREVER else time
    ids = identities(plan.schema, plan.columns, events)
    columns: dict[str, pa.Array] = {
        "kind": pa.array([LATE] * len(events)),
        "pattern": pa.array([plan.pattern.name] * len(events)),
        "match_id": hex_ids(digests(ids, range(1, len(events) + 1), purpose(plan.pattern.name, LATE))),
        **{name: events.column(f"{KEY_PREFIX}{i}") for i, name in enumerate(plan.schema.key)},
        "detected_at": pa.array([detected_at] * len(events), pa.int64()).cast(TIME_TYPE),
        "event": event_structs(event_type(plan), plan.columns, events, np.arange(len(events), dtype=np.int32)),
    }
    nothing = (pa.nulls(len(events), field.type) for field in schema)
    filled = [columns.get(field.name, nulls) for field, nulls in zip(schema, nothing, strict=True)]
    return pa.RecordBatch.from_arrays([as_typed(f.type, c) for f, c in zip(schema, filled, strict=True)], schema=schema)


def open_schema(plan: Plan) -> pa.Schema:
    """The columns of open partial matches.

    Raises:
        SchemaError: a column of the key has the name of one of the others.
    """
    told = [pa.field("pattern", pa.string(), nullable=False)]
    open_ = [pa.field("stage", pa.string(), nullable=False), pa.field("match_start", TIME_TYPE)]
    open_ += [pa.field("deadline", TIME_TYPE), _stages_field(plan)]
    if twice := [name for name in plan.schema.key if name in {field.name for field in (*told, *open_)}]:
        raise SchemaError(f"open partial matches have a column {twice[0]!r}, as the key has. Rename that of the events")
    return pa.schema([*told, *plan.schema.key_fields, *open_])


def open_rows(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.RecordBatch:
    """Open partial matches, emitted as the timeouts that they would be, as rows of `open_schema`. Branches that have
    taken the same events, with the same deadline, are one.
    """
    schema, ends = open_schema(plan), emitted.end
    first, last = position[np.concatenate([[0], ends[:-1]])], position[ends - 1]
    stages = pa.array([leaf.name for leaf in plan.pattern.leaves], pa.string())
    start, _, deadline = _times(plan, emitted, events.column(TIME), first, last)
    columns = [
        pa.array([plan.pattern.name] * len(ends), pa.string()),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        stages.take(pa.array(emitted.stage[ends - 1])),
        start,
        deadline,
        _stage_map(plan, emitted, events, position),
    ]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    rows = pa.RecordBatch.from_arrays(typed, schema=schema)
    return rows.take(pa.array(_first_of_equals(_match_ids(plan, TIMEOUT, emitted, events, position))))


def event_type(plan: Plan | OccurrencePlan) -> pa.DataType:
    return pa.struct([plan.schema.columns.field(name) for name in plan.columns])


def _stages_field(plan: Plan) -> pa.Field:
    return pa.field("stages", pa.map_(pa.string(), pa.list_(event_type(plan))))


def _stage_field(plan: Plan, column: StageColumn) -> pa.Field:
    event = event_type(plan)
    return pa.field(column.name, pa.list_(event) if column.repeats else event)


def _rows(plan: Plan, kind: str, emitted: Emitted, events: Batch, position: Int32s) -> pa.RecordBatch:
    schema, count = row_schema(plan), len(emitted.end)
    ends = emitted.end
    starts = np.concatenate([[0], ends[:-1]])
    first, last = position[starts], position[ends - 1]
    columns = [
        _match_ids(plan, kind, emitted, events, position),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        *_times(plan, emitted, events.column(TIME), first, last),
    ]
    if plan.measures is not None:
        taken = {slot.stage: StageEvents.of(emitted, position, slot.stage) for slot in plan.slots.values()}
        columns += [_slot_values(plan, name, taken[slot.stage], events) for name, slot in plan.slots.items()]
    elif plan.outputs is None:
        stages = [(column, StageEvents.of(emitted, position, column.stage)) for column in plan.stage_columns]
        columns += [_stage_column(plan, column, taken, events) for column, taken in stages]
    else:
        columns.append(_stage_map(plan, emitted, events, position))
    if plan.outputs is not None:
        told = [pa.array([text] * count, pa.string()) for text in (kind, plan.pattern.name)]
        columns = [*told, *columns, pa.nulls(count, event_type(plan))]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _slot_values(plan: Plan, name: str, taken: StageEvents, events: Batch) -> pa.Array:
    try:
        return slot_values(plan.slots[name], taken, events)
    except ConditionError as error:
        measure = next(measure for measure in plan.measures or () if name in measure.slots)
        raise ConditionError(f"measure {measure.name!r}: {error}") from error


def as_typed(type_: pa.DataType, column: pa.Array) -> pa.Array:
    """Arrow's own cast of a list to the type that it has fails where its elements are of type null."""
    return column if column.type == type_ else column.cast(type_)


def _times(plan: Plan, emitted: Emitted, times: pa.Array, first: Int32s, last: Int32s) -> list[pa.Array]:
    """match_start, match_end and detected_at; NULL in processing order."""
    if plan.schema.time is None:
        return [pa.nulls(len(first), TIME_TYPE)] * 3
    detected_at = pa.array(emitted.detected_at, pa.int64(), mask=emitted.detected_at == NO_TIME)
    return [times.take(pa.array(first)), times.take(pa.array(last)), detected_at.cast(TIME_TYPE)]


def _stage_column(plan: Plan, column: StageColumn, taken: StageEvents, events: Batch) -> pa.Array:
    """A struct a match (NULL where the stage is absent) or, where it repeats, an array of structs."""
    type_ = _stage_field(plan, column).type
    if not column.repeats:
        row = taken.nth(0)
        return event_structs(type_, plan.columns, events, row, absent=row < 0)
    structs = event_structs(type_.value_type, plan.columns, events, taken.rows)
    return pa.ListArray.from_arrays(pa.array(taken.offsets, pa.int32()), structs, type=type_)


def _stage_map(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    """A map a match: every stage's events by its name."""
    stages, count = plan.stage_columns, len(emitted.end)
    place = np.zeros(len(plan.conditions), np.int64)
    place[[column.stage for column in stages]] = np.arange(len(stages))
    match = np.repeat(np.arange(count), np.diff(emitted.end, prepend=0))
    entry = match * len(stages) + place[emitted.stage]
    order = np.argsort(entry, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(entry, minlength=count * len(stages)))])
    type_ = _stages_field(plan).type
    structs = event_structs(event_type(plan), plan.columns, events, position[order])
    items = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=type_.item_type)
    names = pa.array([column.name for column in stages] * count, pa.string())
    entries = np.arange(count + 1) * len(stages)
    return pa.MapArray.from_arrays(pa.array(entries, pa.int32()), names, items, type=type_)


def event_structs(
    type_: pa.DataType, chosen: Sequence[str], events: Batch, rows: Int32s, *, absent: np.ndarray | None = None
) -> pa.Array:
    """Events as structs of their chosen columns, NULL where `absent`."""
    indices, missing = pa.array(rows), None
    if absent is not None and absent.any():
        indices, missing = pa.array(rows, mask=absent), pa.array(absent)
    fields = [events.column(EVENT_PREFIX + name).take(indices) for name in chosen]
    if not fields:
        valid = None if missing is None else pc.invert(missing).buffers()[1]
        return pa.Array.from_buffers(type_, len(rows), [valid])
    return pa.StructArray.from_arrays(
        [as_typed(type_.field(i).type, field) for i, field in enumerate(fields)],
        fields=[type_.field(i) for i in range(len(fields))],
        mask=missing,
    )


def _match_ids(plan: Plan, kind: str, emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    """A digest of the pattern's name, the key, and the identity and stage of each event; of a timeout, its deadline
    too: the same events may run out of time in two states.
    """
    stages = raw_bytes(emitted.stage.astype(np.int16))
    parts = [stages, identities(plan.schema, plan.columns, events).take(pa.array(position))]
    if kind == TIMEOUT:
        parts.append(raw_bytes(np.repeat(emitted.detected_at, np.diff(emitted.end, prepend=0))))
    rows = joined(*parts)
    return hex_ids(digests(rows, emitted.end, purpose(plan.pattern.name, kind)))


def identities(schema: Schema, chosen: Sequence[str], events: Batch) -> pa.Array:
    """What tells each event apart from those of all keys. Of the chosen columns, key and time are there already."""
    known = *schema.key, schema.time
    content = [events.column(EVENT_PREFIX + name) for name in chosen if name not in known]
    columns = [*events.keys, events.column(TIME), events.column(ORDINAL), *(events.sequence or content)]
    return canonical_bytes(columns, len(events))


def purpose(name: str, kind: str) -> bytes:
    """Keeps the ids of patterns, by name, and of kinds of rows apart."""
    return blake2b(name.encode(), digest_size=blake2b.PERSON_SIZE, person=kind.encode()).digest()


def hex_ids(found: list[bytes]) -> pa.Array:
    """The digests as text."""
    length = 2 * DIGEST_SIZE
    offsets = pa.array(np.arange(len(found) + 1) * length, pa.int32())  # refuses what 32 bits cannot count
    text = b"".join(found).hex().encode()
    return pa.Array.from_buffers(pa.string(), len(found), [None, offsets.buffers()[1], pa.py_buffer(text)])
