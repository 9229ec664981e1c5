"""From occurrences to rows: one each, in the documented columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import ConditionError
from cepheid.events import EVENT_PREFIX, KEY_PREFIX, TIME_TYPE, VALUE_PREFIX, Batch
from cepheid.identity import digests, joined, raw_bytes
from cepheid.kernel.algebra_occurrence import Derivation, Member, Occurrence, events_in, is_temporal
from cepheid.output import MATCH, as_typed, event_structs, hex_ids, identities, purpose
from cepheid.plan.algebra import OccurrencePlan, Variable
from cepheid.plan.plan import Slot
from cepheid.plan.script import Aggregate, Fold
from cepheid.slots import StageEvents, slot_values

Positions: TypeAlias = npt.NDArray[np.int64]

_EVENT, _CLOSES, _OPENS = 0, 1, 2
"""What stands in the identity of an occurrence: an event; and a temporal event, with its delay, around the members of
what it comes behind.
"""
_MARK = np.dtype([("what", np.int64), ("delay", np.int64)])


def occurrence_schema(plan: OccurrencePlan) -> pa.Schema:
    """The columns of a matcher's rows: match_id, the key, times, then the slots of the measures or a column a variable
    and the events.
    """
    fields = [
        pa.field("match_id", pa.string(), nullable=False),
        *plan.schema.key_fields,
        *(pa.field(name, TIME_TYPE) for name in ("match_start", "match_end", "detected_at")),
    ]
    if plan.measures is not None:
        return pa.schema([*fields, *(pa.field(name, slot.type) for name, slot in plan.slots.items())])
    variables = [pa.field(v.name, _variable_type(plan, v)) for _, v in _given(plan)]
    return pa.schema([*fields, *variables, pa.field("events", pa.list_(_member_type(plan)))])


def occurrence_rows(plan: OccurrencePlan, found: Sequence[Derivation], events: Batch, positions: Positions) -> pa.Table:
    """The occurrences as rows; `events` are those that they and their variables are made of, at ascending positions."""
    schema = occurrence_schema(plan)
    if not found:
        return schema.empty_table()
    rows = _Rows(plan, events, positions)
    occurrences = [derivation.occurrence for derivation in found]
    first = rows.of([next(events_in(occurrence.members)) for occurrence in occurrences])
    ends = [occurrence.end for occurrence in occurrences]
    columns = [
        _match_ids(rows, occurrences),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        _times([occurrence.start for occurrence in occurrences]),
        _times(ends),
        _times(ends),  # an occurrence is certain when it ends
    ]
    if plan.measures is None:
        columns += [_variable_column(rows, number, variable, found) for number, variable in _given(plan)]
        columns.append(_events_column(rows, occurrences))
    else:
        columns += [_slot_column(rows, name, slot, found) for name, slot in plan.slots.items()]
    typed = [as_typed(field.type, column) for field, column in zip(schema, columns, strict=True)]
    return pa.table(typed, schema=schema)


@dataclass(frozen=True)
class _Rows:
    """Events, and where they stand."""

    plan: OccurrencePlan
    events: Batch
    positions: Positions

    def of(self, positions: Sequence[int]) -> npt.NDArray[np.int32]:
        """The rows of the events; -1 of -1, which is no event."""
        wanted = np.asarray(positions, np.int64)
        return np.where(wanted < 0, -1, np.searchsorted(self.positions, wanted)).astype(np.int32)


def _given(plan: OccurrencePlan) -> list[tuple[int, Variable]]:
    """The variables that are known outside of the expression, with their numbers."""
    return [(number, variable) for number, variable in enumerate(plan.variables) if variable.in_output]


def _times(times: Sequence[int | None]) -> pa.Array:
    return pa.array(times, pa.int64()).cast(TIME_TYPE)


# Identity


def _match_ids(rows: _Rows, occurrences: Sequence[Occurrence]) -> pa.Array:
    """A digest of the pattern's name, the key and the identities of the members."""
    plan, marks, positions, ends = rows.plan, [], [], []
    for occurrence in occurrences:
        for what, delay, position in _marks(occurrence.members):
            marks.append((what, delay))
            positions.append(position)
        ends.append(len(marks))
    row = rows.of(positions)
    ids = identities(plan.schema, plan.columns, rows.events).take(pa.array(row, mask=row < 0))
    named = joined(raw_bytes(np.array(marks, _MARK)), ids.fill_null(b""))
    return hex_ids(digests(named, ends, purpose(plan.pattern.name, MATCH)))


def _marks(members: Iterable[Member]) -> Iterator[tuple[int, int, int]]:
    for member in members:
        if is_temporal(member):
            _, _, delay, inner = member
            yield _OPENS, delay, -1
            yield from _marks(inner)
            yield _CLOSES, 0, -1
        else:
            yield _EVENT, 0, member[1]


# Variables and events


def _variable_type(plan: OccurrencePlan, variable: Variable) -> pa.DataType:
    if variable.is_event:
        return pa.struct([plan.schema.columns.field(name) for name in plan.columns])
    return pa.struct([pa.field("start", TIME_TYPE), pa.field("end", TIME_TYPE)])


def _variable_column(rows: _Rows, number: int, variable: Variable, found: Sequence[Derivation]) -> pa.Array:
    bound = [_bound(derivation, number) for derivation in found]
    type_ = _variable_type(rows.plan, variable)
    if variable.is_event:
        row = rows.of([-1 if one is None else one.members[0][1] for one in bound])
        return event_structs(type_, rows.plan.columns, rows.events, row, absent=row < 0)
    parts = [_times([None if one is None else one.start for one in bound])]
    parts.append(_times([None if one is None else one.end for one in bound]))
    return pa.StructArray.from_arrays(parts, fields=[*type_], mask=pa.array([one is None for one in bound]))


def _bound(derivation: Derivation, variable: int) -> Occurrence | None:
    return next((occurrence for number, occurrence in derivation.binding if number == variable), None)


def _member_type(plan: OccurrencePlan) -> pa.DataType:
    told = [pa.field("type", plan.type_column.type), pa.field("time", TIME_TYPE)]
    if plan.has_delays:
        told += [pa.field("delay", pa.duration("us")), pa.field("depth", pa.int32())]
    return pa.struct([*told, *(plan.schema.columns.field(name) for name in plan.member_columns)])


def _listed(members: Iterable[Member], depth: int = 0) -> Iterator[tuple[int, int, int | None, int]]:
    """Time, position, delay and depth of each; a temporal event is followed by what it comes behind, one deeper."""
    for member in members:
        if is_temporal(member):
            time, _, delay, inner = member
            yield time, -1, delay, depth
            yield from _listed(inner, depth + 1)
        else:
            yield *member, None, depth


def _events_column(rows: _Rows, occurrences: Sequence[Occurrence]) -> pa.Array:
    plan, type_ = rows.plan, _member_type(rows.plan)
    listed = [list(_listed(occurrence.members)) for occurrence in occurrences]
    times, positions, delays, depths = zip(*chain.from_iterable(listed), strict=True)
    row = rows.of(positions)
    taken = pa.array(row, mask=row < 0)
    kind, *chosen = (
        rows.events.column(EVENT_PREFIX + name).take(taken) for name in (plan.type_column.name, *plan.member_columns)
    )
    told = [kind, _times(times)]
    if plan.has_delays:
        told += [pa.array(delays, pa.duration("us")), pa.array(depths, pa.int32())]
    typed = [as_typed(field.type, column) for field, column in zip(type_, [*told, *chosen], strict=True)]
    offsets = np.cumsum([0, *map(len, listed)])
    structs = pa.StructArray.from_arrays(typed, fields=[*type_])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=pa.list_(type_))


# Measures


def _slot_column(rows: _Rows, name: str, slot: Slot, found: Sequence[Derivation]) -> pa.Array:
    variable, plan = slot.stage, rows.plan
    bound = [_bound(derivation, variable) for derivation in found]
    if isinstance(slot, Aggregate) and slot.column == plan.time_value:
        at = 0 if slot.fold is Fold.MIN else -1
        return _member_times(rows, [None if one is None else one.members[at] for one in bound], slot.type)
    single = [one is not None and len(one.members) == 1 and not is_temporal(one.members[0]) for one in bound]
    taken = rows.of(
        [one.members[0][1] for one, is_one in zip(bound, single, strict=True) if one is not None and is_one]
    )
    stage = StageEvents(taken, np.concatenate([[0], np.cumsum(single)]))
    try:
        return slot_values(slot, stage, rows.events)
    except ConditionError as error:
        measure = next(measure for measure in plan.measures or () if name in measure.slots)
        raise ConditionError(f"measure {measure.name!r}: {error}") from error


def _member_times(rows: _Rows, members: Sequence[Member | None], type_: pa.DataType) -> pa.Array:
    """The times of the members in the type of the time column, which may be one without a zone."""
    positions, delays = zip(*map(_behind, members), strict=True)
    row = rows.of(positions)
    times = rows.events.column(f"{VALUE_PREFIX}{rows.plan.time_value}").take(pa.array(row, mask=row < 0))
    return pc.add(times.cast(pa.int64()), pa.array(delays, pa.int64())).cast(type_)


def _behind(member: Member | None) -> tuple[int, int]:
    """The position of the event that the member is or comes behind in the end, -1 for none, and how far behind."""
    if member is None:
        return -1, 0
    if not is_temporal(member):
        return member[1], 0
    position, delay = _behind(member[3][-1])
    return position, delay + member[2]
