"""Converts the kernel's flat arrays to rows in the documented columns, one row per match."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import ConditionError, SchemaError
from cepheid.events.batch import KEY_PREFIX, TIME, Batch
from cepheid.events.identity import key_names
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import NO_TIME, Int32s
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, NEGATED, TIMED_OUT
from cepheid.output.common import MATCH, NO_MATCH, TIMEOUT, as_typed, event_structs, event_type, identities
from cepheid.output.ids import Hashes, Identities, Ids, Members, hex_ids, identified, purpose, single
from cepheid.output.measures import StageEvents, slot_values
from cepheid.plan.reserved import CAUSE
from cepheid.plan.stages.plan import Plan, StageColumn

OPEN, SERIES = "open", "series"
"""The purposes of the ids of stored open partial matches."""
MOST_ROWS = 1 << 25
"""The most rows made at once. Arrow counts the bytes of texts in 32 bits, and match ids are long."""


def parts_of(emitted: Emitted, most: int = MOST_ROWS) -> Iterator[Emitted]:
    """What was emitted, in parts of at most `most` matches."""
    for start in range(0, len(emitted.end), most):
        ends = emitted.end[start : start + most]
        first = int(emitted.end[start - 1]) if start else 0
        yield Emitted(
            end=ends - first,
            detected_at=emitted.detected_at[start : start + most],
            outcome=emitted.outcome[start : start + most],
            event=emitted.event[first : ends[-1]],
            stage=emitted.stage[first : ends[-1]],
        )


def row_schema(plan: Plan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then one column per stage or, with measures, one per
    slot. With outputs, kind and pattern come first, all stages are in one map, and the late event comes last. After the
    times is the name of the negated stage that has ended a partial match without a match, if that is among the outputs.
    """
    common = [
        pa.field("match_id", pa.string(), nullable=False),
        *plan.schema.key_fields,
        pa.field("match_start", TIME_TYPE),
        pa.field("match_end", TIME_TYPE),
        pa.field("detected_at", TIME_TYPE),
    ]
    if NO_MATCH in (plan.outputs or ()):
        common.append(pa.field(CAUSE, pa.string()))
    if plan.measures is not None:
        common += [pa.field(name, slot.type) for name, slot in plan.slots.items()]
    elif plan.outputs is None:
        common += [_stage_field(plan, column) for column in plan.stage_columns]
    else:
        common.append(_stages_field(plan))
    if plan.outputs is None:
        return pa.schema(common)
    leading = [pa.field("kind", pa.string(), nullable=False), pa.field("pattern", pa.string(), nullable=False)]
    return pa.schema([*leading, *common, pa.field("event", event_type(plan))])


def rows_of(plan: Plan, emitted: Emitted, events: Batch, position: Int32s, ids: Ids) -> pa.RecordBatch:
    """Converts what was emitted to rows of `row_schema`. The i-th event of `emitted` is row position[i] of `events`."""
    if plan.outputs is None:
        known = identified(ids, identities(plan.schema, plan.columns, events))
        return _rows(plan, MATCH, emitted, events, position, known=known)
    outcome = emitted.outcome
    kinds = (
        (MATCH, "matches", outcome == MATCHED),
        (TIMEOUT, "timeouts", outcome == TIMED_OUT),
        (NO_MATCH, "no_match", outcome >= NEGATED),
    )
    asked = [(kind, chosen) for kind, output, chosen in kinds if output in plan.outputs and chosen.any()]
    if not asked:
        return pa.RecordBatch.from_pylist([], row_schema(plan))
    known, parts, places = identified(ids, identities(plan.schema, plan.columns, events)), [], []
    for kind, chosen in asked:
        part, taken = emitted.only(chosen)
        rows, place = _rows(plan, kind, part, events, position[taken], known=known), np.flatnonzero(chosen)
        first = _first_of_equals(rows.column("match_id")) if kind == TIMEOUT else np.arange(len(place))
        parts.append(rows.take(pa.array(first)))
        places.append(place[first])
    return pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(places))))


def _first_of_equals(ids: pa.Array) -> npt.NDArray[np.int64]:
    """The first row of each id (events and time), ascending. Branches that have taken the same events time out
    together. Duplicates that time out later are removed by `ReportedTimeouts`.
    """
    named = pa.table({"id": ids, "row": np.arange(len(ids))})
    first = named.group_by("id", use_threads=False).aggregate([("row", "min")])
    found: npt.NDArray[np.int64] = np.sort(first.column("row_min").to_numpy())
    return found


class OpenColumns(NamedTuple):
    """What is said of each open partial match."""

    keys: list[pa.Array]
    stage: pa.Array
    """The last stage that took an event."""
    start: pa.Array
    deadline: pa.Array
    stages: pa.Array


def open_columns(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> OpenColumns:
    """The columns of open partial matches; `emitted` is as for `open_rows`."""
    ends = emitted.end
    first, last = position[np.concatenate([[0], ends[:-1]])], position[ends - 1]
    names = pa.array([leaf.name for leaf in plan.pattern.leaves], pa.string())
    start, _, deadline = _times(plan, emitted, events.column(TIME), first, last)
    return OpenColumns(
        keys=[events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))],
        stage=names.take(pa.array(emitted.stage[ends - 1])),
        start=start,
        deadline=deadline,
        stages=_stage_map(plan, emitted, events, position),
    )


def open_schema(plan: Plan) -> pa.Schema:
    """The columns of open partial matches.

    Raises:
        SchemaError: a column of the key has the name of one of the others.
    """
    leading = [pa.field("pattern", pa.string(), nullable=False)]
    open_ = [pa.field("stage", pa.string(), nullable=False), pa.field("match_start", TIME_TYPE)]
    open_ += [pa.field("deadline", TIME_TYPE), _stages_field(plan)]
    if twice := [name for name in plan.schema.key if name in {field.name for field in (*leading, *open_)}]:
        what = f"open partial matches have a column {twice[0]!r}, and so has the key"
        raise SchemaError(f"{what}. Rename the column of the events")
    return pa.schema([*leading, *plan.schema.key_fields, *open_])


def open_rows(plan: Plan, emitted: Emitted, events: Batch, position: Int32s, ids: Ids) -> pa.RecordBatch:
    """Converts open partial matches to rows of `open_schema`. `emitted` has each as the timeout that it would be.
    Branches with the same events and the same deadline are one row.
    """
    schema, open_ = open_schema(plan), open_columns(plan, emitted, events, position)
    names = pa.array([plan.pattern.name] * len(emitted.end), pa.string())
    columns = [names, *open_.keys, open_.stage, open_.start, open_.deadline, open_.stages]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    rows = pa.RecordBatch.from_arrays(typed, schema=schema)
    known = identified(ids, identities(plan.schema, plan.columns, events))
    return rows.take(pa.array(_first_of_equals(hex_ids(_hashes(plan, TIMEOUT, emitted, position, known)))))


def stored_open_schema(plan: Plan) -> pa.Schema:
    """The columns of open partial matches that a host stores: `id` and `series`, the digest of the key, the key, the
    last stage that took an event, the time of the first event, the earliest deadline (NULL: none), the events by stage
    and the slots of the promoted columns.
    """
    return pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("id", "series", "key_id")),
            *plan.schema.key_fields,
            pa.field("stage", pa.string(), nullable=False),
            pa.field("started", TIME_TYPE, nullable=False),
            pa.field("wakeup", TIME_TYPE),
            _stages_field(plan),
            *(pa.field(name, slot.type) for name, slot in plan.promoted_slots.items()),
        ]
    )


def stored_open_rows(plan: Plan, emitted: Emitted, events: Batch, position: Int32s, ids: Ids) -> pa.RecordBatch:
    """Converts open partial matches to rows of `stored_open_schema`; `emitted` is as for `open_rows`.

    `id` is a hash of the events taken, their stages and the deadline, `series` one of the first event: the id changes
    whenever the partial match takes an event, and the series stays.
    """
    schema, ends = stored_open_schema(plan), emitted.end
    first = position[np.concatenate([[0], ends[:-1]])]
    open_ = open_columns(plan, emitted, events, position)
    known = identified(ids, identities(plan.schema, plan.columns, events))
    own = hex_ids(_hashes(plan, OPEN, emitted, position, known))
    series = hex_ids(known.hashes(single(first), purpose(plan.pattern.name, SERIES)))
    names = key_names([column.take(pa.array(first)) for column in events.keys], len(ends))
    taken = {slot.stage: _events_of(emitted, position, slot.stage) for slot in plan.promoted_slots.values()}
    columns = [
        own,
        series,
        pa.array([key_id(name) for name in names], pa.string()),
        *open_.keys,
        open_.stage,
        open_.start,
        open_.deadline,
        open_.stages,
        *(slot_values(slot, taken[slot.stage], events) for slot in plan.promoted_slots.values()),
    ]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    rows = pa.RecordBatch.from_arrays(typed, schema=schema)
    return rows.take(pa.array(_first_of_equals(own)))


def key_id(name: bytes) -> str:
    """The digest of a key's canonical bytes by which stored rows are found."""
    return blake2b(name, digest_size=8).hexdigest()


def _stages_field(plan: Plan) -> pa.Field:
    return pa.field("stages", pa.map_(pa.string(), pa.list_(event_type(plan))))


def _stage_field(plan: Plan, column: StageColumn) -> pa.Field:
    event = event_type(plan)
    return pa.field(column.name, pa.list_(event) if column.repeats else event)


def _rows(
    plan: Plan, kind: str, emitted: Emitted, events: Batch, position: Int32s, *, known: Identities
) -> pa.RecordBatch:
    schema, count = row_schema(plan), len(emitted.end)
    ends = emitted.end
    starts = np.concatenate([[0], ends[:-1]])
    first, last = position[starts], position[ends - 1]
    columns = [
        hex_ids(_hashes(plan, kind, emitted, position, known)),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        *_times(plan, emitted, events.column(TIME), first, last),
    ]
    if NO_MATCH in (plan.outputs or ()):
        columns.append(_causes(plan, emitted))
    if plan.measures is not None:
        taken = {slot.stage: _events_of(emitted, position, slot.stage) for slot in plan.slots.values()}
        columns += [_slot_values(plan, name, taken[slot.stage], events) for name, slot in plan.slots.items()]
    elif plan.outputs is None:
        stages = [(column, _events_of(emitted, position, column.stage)) for column in plan.stage_columns]
        columns += [_stage_column(plan, column, taken, events) for column, taken in stages]
    else:
        columns.append(_stage_map(plan, emitted, events, position))
    if plan.outputs is not None:
        leading = [pa.array([text] * count, pa.string()) for text in (kind, plan.pattern.name)]
        columns = [*leading, *columns, pa.nulls(count, event_type(plan))]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _events_of(emitted: Emitted, position: Int32s, stage: int) -> StageEvents:
    mine = emitted.stage == stage
    before = np.concatenate([[0], np.cumsum(mine)])
    return StageEvents(position[mine], before[np.concatenate([[0], emitted.end])])


def _slot_values(plan: Plan, name: str, taken: StageEvents, events: Batch) -> pa.Array:
    try:
        return slot_values(plan.slots[name], taken, events)
    except ConditionError as error:
        measure = next(measure for measure in plan.measures or () if name in measure.slots)
        raise ConditionError(f"measure {measure.name!r}: {error}") from error


def _times(plan: Plan, emitted: Emitted, times: pa.Array, first: Int32s, last: Int32s) -> list[pa.Array]:
    """match_start, match_end and detected_at; NULL in processing order."""
    if plan.schema.time is None:
        return [pa.nulls(len(first), TIME_TYPE)] * 3
    detected_at = pa.array(emitted.detected_at, pa.int64(), mask=emitted.detected_at == NO_TIME)
    return [times.take(pa.array(first)), times.take(pa.array(last)), detected_at.cast(TIME_TYPE)]


def _causes(plan: Plan, emitted: Emitted) -> pa.Array:
    """The name of the negated stage whose event has ended each partial match, NULL for matches and timeouts."""
    names = pa.array([leaf.name for leaf in plan.pattern.leaves], pa.string())
    return names.take(pa.array(emitted.outcome - NEGATED, mask=emitted.outcome < NEGATED))


def _stage_column(plan: Plan, column: StageColumn, taken: StageEvents, events: Batch) -> pa.Array:
    """One struct per match (NULL if the stage is absent) or, if the stage repeats, an array of structs."""
    type_ = _stage_field(plan, column).type
    if not column.repeats:
        row = taken.nth(0)
        return event_structs(type_, plan.columns, events, row, absent=row < 0)
    structs = event_structs(type_.value_type, plan.columns, events, taken.rows)
    return pa.ListArray.from_arrays(pa.array(taken.offsets, pa.int32()), structs, type=type_)


def _stage_map(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    """One map per match, from the name of each stage to its events."""
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


def _hashes(plan: Plan, kind: str, emitted: Emitted, position: Int32s, known: Identities) -> Hashes:
    """The ids of rows of this kind: hashes of the pattern's name and each event with its stage. For a timeout they
    include the deadline, because the same events may time out in two states. For what a negation has ended they include
    when and by which stage.
    """
    stages, lengths = emitted.stage.astype(np.int16), np.diff(emitted.end, prepend=0)
    ends = [np.repeat(emitted.detected_at, lengths)] if kind in (TIMEOUT, OPEN, NO_MATCH) else []
    ends += [np.repeat(emitted.outcome.astype(np.int64) - NEGATED, lengths)] if kind == NO_MATCH else []
    return known.hashes(Members(position, emitted.end, (stages,), (*ends,)), purpose(plan.pattern.name, kind))
