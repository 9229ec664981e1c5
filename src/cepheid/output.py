"""From the kernel's flat arrays to rows: one a match, in the documented columns."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events import EVENT_PREFIX, KEY_PREFIX, ORDINAL, SEQUENCE, TIME, TIME_TYPE, Batch
from cepheid.identity import DIGEST_SIZE, canonical_bytes, digests
from cepheid.kernel.compiled import Emitted
from cepheid.kernel.layout import NO_TIME, Int32s
from cepheid.plan.plan import Plan, StageColumn
from cepheid.slots import StageEvents, slot_values


def match_schema(plan: Plan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then a column a stage, or a column a slot of the
    measures.
    """
    common = [
        pa.field("match_id", pa.string(), nullable=False),
        *plan.schema.key_fields,
        pa.field("match_start", TIME_TYPE, nullable=False),
        pa.field("match_end", TIME_TYPE, nullable=False),
        pa.field("detected_at", TIME_TYPE),
    ]
    if plan.measures is not None:
        return pa.schema([*common, *(pa.field(name, slot.type) for name, slot in plan.slots.items())])
    return pa.schema([*common, *(_stage_field(plan, column) for column in plan.stage_columns)])


def _stage_field(plan: Plan, column: StageColumn) -> pa.Field:
    event = pa.struct([plan.schema.columns.field(name) for name in plan.columns])
    return pa.field(column.name, pa.list_(event) if column.repeats else event)


def match_rows(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.RecordBatch:
    """The matches as rows of `match_schema`; the i-th event of `emitted` is row position[i] of `events`."""
    schema = match_schema(plan)
    ends = emitted.end
    starts = np.concatenate([[0], ends[:-1]])
    first, last = position[starts], position[ends - 1]
    times = events.column(TIME)
    columns = [
        _match_ids(plan, emitted, events, position),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        times.take(pa.array(first)),
        times.take(pa.array(last)),
        _detected_at(emitted),
    ]
    if plan.measures is not None:
        slots = plan.slots.values()
        columns += [slot_values(slot, StageEvents.of(emitted, position, slot.stage), events) for slot in slots]
    else:
        stages = [(column, StageEvents.of(emitted, position, column.stage)) for column in plan.stage_columns]
        columns += [_stage_column(plan, column, taken, events) for column, taken in stages]
    typed = [_as(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _as(type_: pa.DataType, column: pa.Array) -> pa.Array:
    """Arrow's own cast of a list to the type that it has fails where its elements are of type null."""
    return column if column.type == type_ else column.cast(type_)


def _detected_at(emitted: Emitted) -> pa.Array:
    return pa.array(emitted.detected_at, pa.int64(), mask=emitted.detected_at == NO_TIME).cast(TIME_TYPE)


def _stage_column(plan: Plan, column: StageColumn, taken: StageEvents, events: Batch) -> pa.Array:
    """A struct a match (NULL where the stage is absent) or, where it repeats, an array of structs."""
    type_ = _stage_field(plan, column).type
    if not column.repeats:
        row = taken.nth(0)
        return _structs(type_, plan, events, row, absent=row < 0)
    structs = _structs(type_.value_type, plan, events, taken.rows, absent=np.zeros(len(taken.rows), np.bool_))
    return pa.ListArray.from_arrays(pa.array(taken.offsets, pa.int32()), structs, type=type_)


def _structs(type_: pa.DataType, plan: Plan, events: Batch, rows: Int32s, *, absent: np.ndarray) -> pa.Array:
    indices, missing = pa.array(rows), None
    if absent.any():
        indices, missing = pa.array(rows, mask=absent), pa.array(absent)
    fields = [events.column(EVENT_PREFIX + name).take(indices) for name in plan.columns]
    if not fields:
        return pa.Array.from_buffers(type_, len(rows), [pc.invert(pa.array(absent)).buffers()[1]])
    return pa.StructArray.from_arrays(
        [_as(type_.field(i).type, field) for i, field in enumerate(fields)],
        fields=[type_.field(i) for i in range(len(fields))],
        mask=missing,
    )


def _match_ids(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    """A digest of the pattern's name, the key, and the identity and stage of each event."""
    identity = [events.column(TIME), events.column(ORDINAL)]
    named = SEQUENCE in events.data.schema.names
    identity += [events.column(SEQUENCE)] if named else events.chosen
    rows = pa.array(position)
    taken = [column.take(rows) for column in [*events.keys, *identity]]
    purpose = blake2b(plan.pattern.name.encode(), digest_size=blake2b.PERSON_SIZE, person=b"match").digest()
    found = digests(canonical_bytes([pa.array(emitted.stage), *taken], len(position)), emitted.end, purpose)
    length = 2 * DIGEST_SIZE
    offsets = np.arange(len(found) + 1, dtype=np.int32) * length
    text = b"".join(found).hex().encode()
    return pa.Array.from_buffers(pa.string(), len(found), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
