"""Converts what an interval matcher emits to rows: insertions and retractions of matches, and late events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import END, EVENT_ID, EVENT_PREFIX, KEY_PREFIX, ORDINAL, TIME, VALUE_PREFIX, Batch
from cepheid.events.direction import SEQUENCE_PREFIX, Direction
from cepheid.events.identity import DIGEST_SIZE
from cepheid.events.order import ranked
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.kernel.intervals.layout import (
    BEGINNING,
    COMPLETION,
    INSERTION,
    LATE,
    OPEN_END,
    RETRACTION,
    EmittedIntervals,
)
from cepheid.output import common
from cepheid.output.common import MATCH, event_structs, event_type
from cepheid.output.events import Taken, events_column, events_field
from cepheid.output.ids import Hashes, Identifying, Identities, Ids, Members, hex_ids, identified, purpose
from cepheid.output.typed import as_typed
from cepheid.plan.conditions.script import StageValue
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.lifted import Slot
from cepheid.plan.reserved import LEADING, PATTERN

KINDS = {
    RETRACTION: common.RETRACTION,
    LATE: common.LATE,
    INSERTION: common.INSERTION,
    COMPLETION: common.COMPLETION,
}
"""Their numbers ascend."""


def row_schema(plan: IntervalPlan) -> pa.Schema:
    """The columns of all rows. Measures have their slots in place of variables. Rows of events have the list of events
    in place of variables and the late event.
    """
    shown = [] if plan.measures is not None else _variables(plan)
    events = [pa.field(name, event_type(plan)) for name in (*shown, "event")]
    return pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in LEADING),
            pa.field("match_id", pa.string(), nullable=False),
            *plan.schema.key_fields,
            *(pa.field(name, TIME_TYPE) for name in ("match_start", "match_end", "detected_at")),
            *(pa.field(name, slot.type) for name, slot in plan.slots.items()),
            *([events_field(plan)] if plan.rows_per == "event" else events),
        ]
    )


def finite_schema(plan: IntervalPlan, *, named: bool) -> pa.Schema:
    """The columns of the matches in a finite input, which has no retractions and no late events. If `named`, they
    include kind and pattern.
    """
    return pa.schema([row_schema(plan).field(i) for i in _finite_columns(plan, named=named)])


def _finite_columns(plan: IntervalPlan, *, named: bool) -> range:
    """Their numbers in `row_schema`. Names will not do: a key may have that of a column that is left out."""
    count = len(row_schema(plan))
    if plan.rows_per == "event":
        return range(0 if named or plan.outputs is not None else LEADING.index(PATTERN), count)
    return range(count) if plan.outputs is not None else range(0 if named else len(LEADING), count - 1)


def finite_rows(plan: IntervalPlan, insertions: pa.Table, *, named: bool) -> pa.Table:
    """Converts rows of `row_schema` to rows of `finite_schema`. detected_at is match_end: a match is certain when its
    last event ends, because no later event can forbid it.
    """
    at = insertions.schema.names.index("detected_at")
    known = insertions.set_column(at, insertions.schema.field(at), insertions.column("match_end"))
    known = known.set_column(0, known.schema.field(0), pa.repeat(pa.scalar(MATCH, pa.string()), len(known)))
    if plan.outputs is not None and "matches" not in plan.outputs:
        known = known.slice(0, 0)
    return known.select([*_finite_columns(plan, named=named)])


def rows_of(plan: IntervalPlan, emitted: EmittedIntervals, events: Batch, place: Int32s, ids: Ids) -> pa.Table:
    """Converts what was emitted to rows. `events` has the events of these rows, with ordinals. `place` maps a position
    in `emitted` to a row of `events`.
    """
    schema, count = row_schema(plan), len(emitted.event)
    late = emitted.sign == LATE
    positions = emitted.match.T
    if late.any():
        positions = np.where(late, emitted.event, positions)
    variables = [place[one] for one in positions]
    first = variables[0]
    known = identified(ids, Identifying([*identity(plan, events), events.column(ORDINAL)], len(events)))
    columns = [
        _kinds(emitted.sign),
        pa.repeat(pa.scalar(plan.pattern.name, pa.string()), count),
        _match_ids(plan, known, late, first, variables),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        _times(emitted.start, late),
        _times(emitted.end, late | (emitted.end == OPEN_END)),
        _times(emitted.clock, (emitted.clock == BEGINNING) | (emitted.clock == FOREVER)),
    ]
    columns += [_slot(slot, variables, events, late) for slot in plan.slots.values()]
    if plan.rows_per == "event":
        columns.append(events_column(plan, _taken(plan, late, first, np.stack(variables), events), events, {}))
    else:
        shown = [] if plan.measures is not None else variables
        columns += [*(_structs(plan, events, rows, late) for rows in shown), _structs(plan, events, first, ~late)]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(typed, schema=schema)])


def _kinds(signs: npt.NDArray[np.int64]) -> pa.Array:
    if (signs == INSERTION).all():
        return pa.repeat(pa.scalar(common.INSERTION, pa.string()), len(signs))
    names = pa.array(KINDS.values(), pa.string())
    return names.take(pa.array(np.searchsorted([*KINDS], signs)))


def _variables(plan: IntervalPlan) -> list[str]:
    """The variables of a match."""
    return [positive.variable for positive in plan.pattern.positives]


def _slot(slot: Slot, variables: Sequence[Int32s], events: Batch, absent: npt.NDArray[np.bool_]) -> pa.Array:
    """The slot's value for each row: that of the one event of its variable."""
    assert isinstance(slot, StageValue), "aggregates are refused: a variable is one event"
    return events.column(f"{VALUE_PREFIX}{slot.column}").take(pa.array(variables[slot.stage], mask=absent))


def _taken(
    plan: IntervalPlan, late: npt.NDArray[np.bool_], first: Int32s, variables: npt.NDArray[np.int32], events: Batch
) -> Taken:
    """The events of the matches, in the order of their starts, their ends and the sequence; of a late event itself."""
    times = [events.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END)]
    order = np.lexsort([rank[variables] for rank in (*reversed(_ranks(events)), *reversed(times))], axis=0)
    places = np.where(late, first, np.take_along_axis(variables, order, axis=0)).T
    there = ~late[:, None] | (np.arange(plan.positives) == 0)
    stage = pa.array(order.T[there], mask=np.broadcast_to(late[:, None], there.shape)[there])
    names = pa.array(_variables(plan), pa.string()).take(stage)
    only = pc.if_else(stage.is_valid(), 1, None)
    return Taken(np.cumsum(there.sum(axis=1)), places[there].astype(np.int32), names, only)


def _ranks(events: Batch) -> list[npt.NDArray[np.int64]]:
    """For each column of the sequence, numbers that sort as it does."""
    names = [name for name in events.data.schema.names if name.startswith(SEQUENCE_PREFIX)]
    leaves = [leaf for name in names for leaf in ranked(events.column(name), Direction.of(name))]
    return [pc.rank(leaf, tiebreaker="dense").to_numpy().astype(np.int64) for leaf in leaves]


def _times(times: npt.NDArray[np.int64], absent: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(times, pa.int64(), mask=absent).cast(TIME_TYPE)


def _structs(plan: IntervalPlan, events: Batch, rows: Int32s, absent: npt.NDArray[np.bool_]) -> pa.Array:
    type_ = event_type(plan)
    if absent.all():
        return pa.nulls(len(rows), type_)
    return event_structs(type_, plan.columns, events, rows, absent=absent)


def identity(plan: IntervalPlan, events: Batch) -> list[pa.Array]:
    """The columns that identify an event, together with an ordinal among equal events: its key, its times and its
    sequence or, without one, its chosen columns. If a column identifies events, it alone does.
    """
    if plan.schema.event_id is not None:
        return [events.column(EVENT_ID)]
    known = *plan.schema.key, *plan.schema.times
    chosen = [events.column(EVENT_PREFIX + name) for name in plan.columns if name not in known]
    return [*events.keys, events.column(TIME), events.column(END), *(events.sequence or chosen)]


def _match_ids(
    plan: IntervalPlan, known: Identities, late: npt.NDArray[np.bool_], first: Int32s, variables: list[Int32s]
) -> pa.Array:
    """The ids of matches and late events. That of a match is a hash of the pattern's name and each variable's event,
    that of a late event a hash of the name and the event. An insertion and its retraction have the same id.
    """
    if not late.any():
        return hex_ids(_hashes(plan, known, "interval", variables))
    found = np.zeros((len(late), DIGEST_SIZE), np.uint8)
    found[late] = _hashes(plan, known, "late interval", [first[late]])
    found[~late] = _hashes(plan, known, "interval", [position[~late] for position in variables])
    return hex_ids(found)


def _hashes(plan: IntervalPlan, known: Identities, what: str, positions: list[Int32s]) -> Hashes:
    """The ids of rows of a kind; `positions` has each row's first event, each row's second event, and so on."""
    events = np.stack(positions, axis=1)
    ends = np.arange(1, len(events) + 1) * events.shape[1]
    return known.hashes(Members(events.ravel(), ends), purpose(plan.pattern.name, what))
