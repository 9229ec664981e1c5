"""Converts occurrences to rows in the documented columns, one row per occurrence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import ConditionError
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import Int32s, distinct
from cepheid.kernel.occurrences.results import EmittedOccurrences
from cepheid.output.common import INCONSISTENT, MATCH, event_rows, event_structs, event_type, identities
from cepheid.output.events import Taken, events_column, events_field, places_within
from cepheid.output.ids import Ids, Members, hex_ids, identified, purpose
from cepheid.output.measures import StageEvents, slot_values
from cepheid.output.typed import as_typed
from cepheid.plan.conditions.script import Aggregate, Fold
from cepheid.plan.lifted import Slot
from cepheid.plan.occurrences.plan import OccurrencePlan, Variable
from cepheid.plan.reserved import CAUSE, KIND, LEADING, PATTERN

Positions: TypeAlias = npt.NDArray[np.int64]

_EVENT, _CLOSES, _OPENS = 0, 1, 2
"""Marks in the identity of an occurrence: an event, or the end or the start of a temporal event. Start and end enclose
the members of the occurrence that the temporal event comes after. The start has the delay.
"""


def row_schema(plan: OccurrencePlan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then the slots of the measures, or one column per
    variable and the events. With several patterns or with outputs, kind and pattern come first. With outputs, the late
    event comes last. For rows of events there is the list of events in place of variables, and the pattern comes first
    in any case.
    """
    fields = [
        *(pa.field(name, pa.string(), nullable=False) for name in _leading(plan)),
        pa.field("match_id", pa.string(), nullable=False),
        *plan.schema.key_fields,
        *(pa.field(name, TIME_TYPE) for name in ("match_start", "match_end", "detected_at")),
    ]
    if plan.measures is not None or plan.rows_per == "event":
        fields += [pa.field(name, slot.type) for name, slot in plan.slots.items()]
    else:
        fields += [pa.field(v.name, _variable_type(plan, v)) for _, v in _output_variables(plan)]
        fields.append(pa.field("events", pa.list_(_member_type(plan))))
    if INCONSISTENT in (plan.outputs or ()):
        fields.append(pa.field(CAUSE, pa.string()))
    if plan.rows_per == "event":
        fields.append(events_field(plan))
    elif plan.outputs is not None:
        fields.append(pa.field("event", event_type(plan)))
    return pa.schema(fields)


def _leading(plan: OccurrencePlan) -> tuple[str, ...]:
    """The columns that come first."""
    if plan.outputs is not None or plan.named:
        return LEADING
    return () if plan.rows_per == "match" else (PATTERN,)


def positions_in(emitted: EmittedOccurrences, length: int) -> Int32s:
    """The distinct positions of all events of the occurrences and their variables, ascending. All are less than
    `length`, the number of events in the working set.
    """
    found = np.concatenate([emitted.position, emitted.first.ravel(), emitted.last.ravel()])
    return distinct(found[found >= 0], length)


def rows_of(plan: OccurrencePlan, emitted: EmittedOccurrences, events: Batch, positions: Int32s, ids: Ids) -> pa.Table:
    """Converts the occurrences to rows. `events` has their events and those of their variables, at ascending
    `positions`.
    """
    schema = row_schema(plan)
    if not len(emitted.start):
        return schema.empty_table()
    rows = _Rows(plan, emitted, events, positions)
    members = rows.at(emitted.position)
    present = np.flatnonzero(members >= 0)
    begins = np.append(0, emitted.stop[:-1])
    first = pa.array(members[present[np.searchsorted(present, begins)]])
    count = len(emitted.start)
    texts = {KIND: MATCH, PATTERN: plan.pattern.name}
    columns = [
        *(pa.repeat(pa.scalar(texts[name]), count) for name in _leading(plan)),
        _match_ids(rows, members, ids),
        *(events.column(f"{KEY_PREFIX}{i}").take(first) for i in range(len(plan.schema.key))),
        _times(emitted.start),
        _times(emitted.end),
        _times(emitted.end),  # an occurrence is certain when it ends
    ]
    if plan.measures is None and plan.rows_per == "match":
        columns += [_variable_column(rows, number, variable) for number, variable in _output_variables(plan)]
        columns.append(_events_column(rows, members))
    else:
        columns += [_slot_column(rows, name, slot) for name, slot in plan.slots.items()]
    if INCONSISTENT in (plan.outputs or ()):
        columns.append(pa.nulls(count, pa.string()))
    if plan.rows_per == "event":
        columns.append(events_column(plan, _taken(rows, members), rows.events, {}))
    elif plan.outputs is not None:
        columns.append(pa.nulls(count, event_type(plan)))
    typed = [as_typed(field.type, column) for field, column in zip(schema, columns, strict=True)]
    return pa.table(typed, schema=schema)


def inconsistent_rows(plan: OccurrencePlan, events: Batch, causes: Sequence[str], ids: Ids) -> pa.Table:
    """Rows for events that contradict what is known in their session, each with the contradiction."""
    times = events.column(TIME).cast(TIME_TYPE)
    own = {**dict.fromkeys(("match_start", "match_end", "detected_at"), times), CAUSE: pa.array(causes, pa.string())}
    return pa.Table.from_batches([event_rows(plan, row_schema(plan), INCONSISTENT, events, own, ids=ids)])


@dataclass(frozen=True)
class _Rows:
    """Occurrences, their events, and the positions of these events."""

    plan: OccurrencePlan
    emitted: EmittedOccurrences
    events: Batch
    positions: Int32s

    def at(self, positions: Positions) -> Int32s:
        """The row of each event in `events`; -1, which is no event, stays -1."""
        return np.where(positions < 0, -1, np.searchsorted(self.positions, positions)).astype(np.int32)


def _output_variables(plan: OccurrencePlan) -> list[tuple[int, Variable]]:
    """The variables that have a column in the output, with their numbers."""
    return [(number, variable) for number, variable in enumerate(plan.variables) if variable.in_output]


def _times(times: Positions, absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(times, pa.int64(), mask=absent).cast(TIME_TYPE)


# Identity


def _match_ids(rows: _Rows, members: Int32s, ids: Ids) -> pa.Array:
    """Hashes of the pattern's name and the members, each with its mark and, for a temporal event, its delay."""
    plan, emitted = rows.plan, rows.emitted
    ends: Positions = emitted.stop
    if (members < 0).any():
        marked = list(_marks(emitted))
        marks = np.array([mark for mark, _, _ in marked], np.int64)
        members = np.array([-1 if member < 0 else members[member] for _, member, _ in marked], np.int32)
        ends = np.searchsorted([row for _, _, row in marked], np.arange(len(emitted.stop)), side="right")
    else:
        marks = np.full((len(members), 2), (_EVENT, 0), np.int64)
    known = identified(ids, identities(plan.schema, plan.columns, rows.events))
    named = Members(members, ends, before=(marks[:, 0], marks[:, 1]))
    return hex_ids(known.hashes(named, purpose(plan.pattern.name, MATCH)))


def _marks(emitted: EmittedOccurrences) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yields each mark, with its member (-1 if the mark is not an event) and the row of the occurrence."""
    member = 0
    for row, stop in enumerate(emitted.stop.tolist()):
        depth = 0
        for member in range(member, stop):  # noqa: B020
            for _ in range(depth - int(emitted.depth[member])):
                yield (_CLOSES, 0), -1, row
            depth = int(emitted.depth[member])
            if emitted.position[member] < 0:
                depth += 1
                yield (_OPENS, int(emitted.delay[member])), -1, row
            else:
                yield (_EVENT, 0), member, row
        for _ in range(depth):
            yield (_CLOSES, 0), -1, row
        member = stop


# Variables and events


def _variable_type(plan: OccurrencePlan, variable: Variable) -> pa.DataType:
    if variable.is_event:
        return event_type(plan)
    return pa.struct([pa.field("start", TIME_TYPE), pa.field("end", TIME_TYPE)])


def _variable_column(rows: _Rows, number: int, variable: Variable) -> pa.Array:
    type_, first = _variable_type(rows.plan, variable), rows.at(rows.emitted.first[:, number])
    if variable.is_event:
        return event_structs(type_, rows.plan.columns, rows.events, first, absent=first < 0)
    parts = [_times(times[:, number], first < 0) for times in (rows.emitted.from_, rows.emitted.to)]
    return pa.StructArray.from_arrays(parts, fields=[*type_], mask=pa.array(first < 0))


def _member_type(plan: OccurrencePlan) -> pa.DataType:
    leading = [] if plan.type_column is None else [pa.field("type", plan.type_column.type)]
    leading.append(pa.field("time", TIME_TYPE))
    if plan.has_delays:
        leading += [pa.field("delay", pa.duration("us")), pa.field("depth", pa.int32())]
    return pa.struct([*leading, *(plan.schema.columns.field(name) for name in plan.member_columns)])


def _events_column(rows: _Rows, members: Int32s) -> pa.Array:
    plan, emitted, type_ = rows.plan, rows.emitted, _member_type(rows.plan)
    temporal = members < 0
    taken = pa.array(members, mask=temporal)
    kind = [] if plan.type_column is None else [plan.type_column.name]
    kinds, chosen = (
        [rows.events.column(EVENT_PREFIX + name).take(taken) for name in names] for names in (kind, plan.member_columns)
    )
    columns = [*kinds, _times(emitted.time)]
    if plan.has_delays:
        delays = pa.array(emitted.delay, pa.int64(), mask=~temporal).cast(pa.duration("us"))
        columns += [delays, pa.array(emitted.depth.astype(np.int32))]
    typed = [as_typed(field.type, column) for field, column in zip(type_, [*columns, *chosen], strict=True)]
    offsets = pa.array(np.append(0, emitted.stop).astype(np.int32))
    structs = pa.StructArray.from_arrays(typed, fields=[*type_])
    return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(type_))


def _taken(rows: _Rows, members: Int32s) -> Taken:
    """The events of the occurrences. The stage of an event is the first variable whose value it is; temporal events are
    left out.
    """
    emitted, variables = rows.emitted, _output_variables(rows.plan)
    occurrence = np.repeat(np.arange(len(emitted.stop)), np.diff(emitted.stop, prepend=0))
    stage = np.full(len(members), len(variables))
    for place, (number, _) in reversed([*enumerate(variables)]):
        stage[(emitted.first[occurrence, number] == emitted.position) & emitted.is_event[occurrence, number]] = place
    present = members >= 0
    stage, occurrence = stage[present], occurrence[present]
    names = pa.array([variable.name for _, variable in variables], pa.string())
    unnamed = stage == len(variables)
    places = pa.array(places_within(occurrence * (len(variables) + 1) + stage), mask=unnamed)
    ends = np.cumsum(np.bincount(occurrence, minlength=len(emitted.stop)))
    return Taken(ends, members[present], names.take(pa.array(stage, mask=unnamed)), places)


# Measures


def _slot_column(rows: _Rows, name: str, slot: Slot) -> pa.Array:
    variable, plan, emitted = slot.stage, rows.plan, rows.emitted
    if isinstance(slot, Aggregate) and slot.column == plan.time_value:
        at, delays = (
            (emitted.first, emitted.first_delay) if slot.fold is Fold.MIN else (emitted.last, emitted.last_delay)
        )
        return _member_times(rows, at[:, variable], delays[:, variable], slot.type)
    single = emitted.is_event[:, variable]
    stage = StageEvents(rows.at(emitted.first[single, variable]), np.concatenate([[0], np.cumsum(single)]))
    try:
        return slot_values(slot, stage, rows.events)
    except ConditionError as error:
        measure = next(measure for measure in plan.measures or () if name in measure.slots)
        raise ConditionError(f"measure {measure.name!r}: {error}") from error


def _member_times(rows: _Rows, positions: Positions, delays: Positions, type_: pa.DataType) -> pa.Array:
    """The times of members in the type of the time column, which may have no time zone."""
    row = rows.at(positions)
    times = rows.events.column(f"{VALUE_PREFIX}{rows.plan.time_value}").take(pa.array(row, mask=row < 0))
    return pc.add(times.cast(pa.int64()), pa.array(delays, pa.int64())).cast(type_)
