"""Converts the kernel's flat arrays to rows in the documented columns, one row per match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import ConditionError
from cepheid.events.batch import KEY_PREFIX, TIME, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import NO_TIME, Int32s
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, NEGATED, TIMED_OUT
from cepheid.output.common import MATCH, MOST_BYTES, NO_MATCH, TIMEOUT, event_structs, event_type, identities
from cepheid.output.events import Taken, events_column, events_field, places_within
from cepheid.output.ids import Hashes, Identities, Ids, Members, hex_ids, identified, purpose
from cepheid.output.measures import StageEvents, slot_values
from cepheid.output.running import EventsSoFar, running_values
from cepheid.output.typed import as_typed
from cepheid.plan.reserved import CAUSE, LEADING, PATTERN
from cepheid.plan.stages.plan import Plan, StageColumn

OPEN = "open"
"""The purpose of the ids of stored open partial matches."""
MOST_ROWS = 1 << 25
"""The most rows made at once. Arrow counts the bytes of texts in 32 bits, and match ids are long."""


def parts_of(emitted: Emitted, most: int = MOST_ROWS, *, width: int = 1) -> Iterator[Emitted]:
    """What was emitted, in parts of at most `most` matches. If the widest event has `width` bytes, a part has also no
    more events than fit a column of texts, or only one match.
    """
    start, events = 0, MOST_BYTES // width
    while start < len(emitted.end):
        first = int(emitted.end[start - 1]) if start else 0
        fitting = int(np.searchsorted(emitted.end, first + events, side="right"))
        stop = min(start + most, max(fitting, start + 1))
        yield emitted.part(start, stop)
        start = stop


def row_schema(plan: Plan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then one column per stage or, with measures, one per
    slot. With outputs, kind and pattern come first, all stages are in one map, and the late event comes last. After the
    times is the name of the negated stage that has ended a partial match without a match, if that is among the outputs.
    For rows of events there is the list of events in place of stages, and the pattern comes first in any case.
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
    leading = [pa.field(name, pa.string(), nullable=False) for name in leading_names(plan)]
    late = [pa.field("event", event_type(plan))] * (plan.outputs is not None and plan.rows_per == "match")
    return pa.schema([*leading, *common, *_fields_of_match(plan), *late])


def _fields_of_match(plan: Plan) -> list[pa.Field]:
    if plan.rows_per == "match" and plan.measures is None:
        return [_stage_field(plan, one) for one in plan.stage_columns] if plan.outputs is None else [stages_field(plan)]
    slots = [pa.field(name, slot.type) for name, slot in plan.match_slots.items()]
    return [*slots, *[events_field(plan)] * (plan.rows_per == "event")]


def leading_names(plan: Plan) -> tuple[str, ...]:
    """The columns that come first."""
    if plan.outputs is None:
        return () if plan.rows_per == "match" else (PATTERN,)
    return LEADING


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
        first = first_of_equals(rows.column("match_id")) if kind == TIMEOUT else np.arange(len(place))
        parts.append(rows.take(pa.array(first)))
        places.append(place[first])
    return pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(places))))


def first_of_equals(ids: pa.Array) -> npt.NDArray[np.int64]:
    """The first row of each id (events and time), ascending. Branches that have taken the same events time out
    together. Duplicates that time out later are removed by `ReportedTimeouts`.
    """
    codes = ids.dictionary_encode().indices.to_numpy()  # numbered as they come, so a new one is the greatest so far
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


def stages_field(plan: Plan) -> pa.Field:
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
        hex_ids(hashes_of(plan, kind, emitted, position, known)),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        *times_of(plan, emitted, events.column(TIME), first, last),
    ]
    if NO_MATCH in (plan.outputs or ()):
        columns.append(_causes(plan, emitted))
    columns += _columns_of_match(plan, emitted, events, position)
    texts = {"kind": kind, "pattern": plan.pattern.name}
    columns = [*(pa.repeat(pa.scalar(texts[name]), count) for name in leading_names(plan)), *columns]
    if len(columns) < len(schema):
        columns.append(pa.nulls(count, event_type(plan)))
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _columns_of_match(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> list[pa.Array]:
    """The columns of `_fields_of_match`."""
    if plan.rows_per == "match" and plan.measures is None:
        if plan.outputs is not None:
            return [stage_map([(plan, len(emitted.end))], emitted, events, position)]
        stages = events_of(emitted, position, (column.stage for column in plan.stage_columns))
        return [_stage_column(plan, column, stages[column.stage], events) for column in plan.stage_columns]
    taken = events_of(emitted, position, {slot.stage for slot in plan.match_slots.values()})
    slots = plan.match_slots.items()
    columns = [_value(plan, name, partial(slot_values, slot, taken[slot.stage], events)) for name, slot in slots]
    if plan.rows_per == "event":
        columns.append(_events_column(plan, emitted, events, position))
    return columns


def _events_column(plan: Plan, emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    names = pa.array([leaf.name for leaf in plan.pattern.leaves], pa.string())
    match = np.repeat(np.arange(len(emitted.end)), np.diff(emitted.end, prepend=0))
    places = places_within(match * len(names) + emitted.stage)
    taken = Taken(emitted.end, position, names.take(pa.array(emitted.stage)), pa.array(places))
    slots = plan.running_slots
    so_far = {slot.stage: events_so_far(emitted, position, slot.stage) for slot in slots.values()}
    running = {
        name: _value(plan, name, partial(running_values, slot, so_far[slot.stage], events))
        for name, slot in slots.items()
    }
    return events_column(plan, taken, events, running)


def events_so_far(emitted: Emitted, position: Int32s, stage: int) -> EventsSoFar:
    """For each event of each match the events that the stage has up to it."""
    mine = emitted.stage == stage
    before = np.concatenate([[0], np.cumsum(mine)])
    begins = np.concatenate([[0], emitted.end[:-1]])
    first = np.repeat(before[begins], np.diff(emitted.end, prepend=0))
    return EventsSoFar(position[mine], first, before[1:])


def events_of(emitted: Emitted, position: Int32s, stages: Iterable[int]) -> dict[int, StageEvents]:
    """The events of each of these stages. `position` has that of each event of `emitted`."""
    shared = _shared_stages(emitted)
    if shared is None:
        return {stage: _events_of(emitted, position, stage) for stage in stages}
    of_match = position.reshape(len(emitted.end), len(shared))
    found = {}
    for stage in stages:
        places = np.flatnonzero(shared == stage)
        if len(places) == 1:
            found[stage] = StageEvents(of_match[:, places[0]].copy())
        else:
            offsets = np.arange(len(of_match) + 1) * len(places)
            found[stage] = StageEvents(of_match[:, places].reshape(-1), offsets)
    return found


def _shared_stages(emitted: Emitted) -> Int32s | None:
    """The stage of each event of a match, if it is the same in all matches; otherwise None."""
    count, stage = len(emitted.end), emitted.stage
    width = int(emitted.end[0]) if count else 0
    if not width or len(stage) != count * width or (stage[width:] != stage[:-width]).any():
        return None
    even = np.arange(width, len(stage) + 1, width)
    return stage[:width] if (emitted.end == even).all() else None


def _events_of(emitted: Emitted, position: Int32s, stage: int) -> StageEvents:
    mine = emitted.stage == stage
    before = np.zeros(len(mine) + 1, np.int64)
    np.cumsum(mine, out=before[1:])
    offsets = np.zeros(len(emitted.end) + 1, np.int64)
    offsets[1:] = before[emitted.end]
    return StageEvents(position[np.flatnonzero(mine)], offsets)


def _value(plan: Plan, name: str, values: Callable[[], pa.Array]) -> pa.Array:
    """The values of a slot; ConditionError, with the name of the measure, if they cannot be computed."""
    try:
        return values()
    except ConditionError as error:
        measure = next(measure for measure in plan.measures or () if name in measure.slots)
        raise ConditionError(f"measure {measure.name!r}: {error}") from error


def times_of(plan: Plan, emitted: Emitted, times: pa.Array, first: Int32s, last: Int32s) -> list[pa.Array]:
    """match_start, match_end and detected_at; NULL in processing order."""
    if plan.schema.time is None:
        return [pa.nulls(len(first), TIME_TYPE)] * 3
    at_end = emitted.detected_at == NO_TIME
    detected_at = pa.array(emitted.detected_at, pa.int64(), mask=at_end if at_end.any() else None)
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
        return event_structs(type_, plan.columns, events, row, absent=None if taken.is_one_each else row < 0)
    structs = event_structs(type_.value_type, plan.columns, events, taken.rows)
    return pa.ListArray.from_arrays(pa.array(taken.offsets, pa.int32()), structs, type=type_)


def stage_map(plans: Sequence[tuple[Plan, int]], emitted: Emitted, events: Batch, position: Int32s) -> pa.Array:
    """One map per match, from the name of each stage to its events. The matches of the plans, so many of each, follow
    one another; the plans have events of the same columns.
    """
    counts, columns = [count for _, count in plans], [plan.stage_columns for plan, _ in plans]
    widths = np.repeat([len(stages) for stages in columns], counts)
    lengths, entries = np.diff(emitted.end, prepend=0), np.concatenate([[0], np.cumsum(widths)])
    entry = np.repeat(entries[:-1], lengths) + _places(plans, emitted)
    order = np.argsort(entry, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(entry, minlength=entries[-1]))])
    shared = plans[0][0]
    type_ = stages_field(shared).type
    structs = event_structs(event_type(shared), shared.columns, events, position[order])
    items = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=type_.item_type)
    names = [
        name for stages, count in zip(columns, counts, strict=True) for name in [one.name for one in stages] * count
    ]
    return pa.MapArray.from_arrays(pa.array(entries, pa.int32()), pa.array(names, pa.string()), items, type=type_)


def _places(plans: Sequence[tuple[Plan, int]], emitted: Emitted) -> npt.NDArray[np.int64]:
    """For each event the place of its stage among the stage columns of its plan."""
    found, begin, match = np.empty(len(emitted.stage), np.int64), 0, 0
    for plan, count in plans:
        place = np.zeros(len(plan.conditions), np.int64)
        place[[column.stage for column in plan.stage_columns]] = np.arange(len(plan.stage_columns))
        match += count
        end = int(emitted.end[match - 1]) if match else 0
        found[begin:end] = place[emitted.stage[begin:end]]
        begin = end
    return found


def hashes_of(plan: Plan, kind: str, emitted: Emitted, position: Int32s, known: Identities) -> Hashes:
    """The ids of rows of this kind."""
    return known.hashes(members_of(kind, emitted, position), purpose(plan.pattern.name, kind))


def members_of(kind: str, emitted: Emitted, position: Int32s) -> Members:
    """What the ids of rows of this kind are made of: each event with its stage. For a timeout they include the
    deadline, because the same events may time out in two states. For what a negation has ended they include when and by
    which stage.
    """
    ends = []
    if kind in (TIMEOUT, OPEN, NO_MATCH):
        lengths = np.diff(emitted.end, prepend=0)
        ends.append(np.repeat(emitted.detected_at, lengths))
        if kind == NO_MATCH:
            ends.append(np.repeat(emitted.outcome.astype(np.int64) - NEGATED, lengths))
    return Members(position, emitted.end, after=(*ends,), stage=emitted.stage)
