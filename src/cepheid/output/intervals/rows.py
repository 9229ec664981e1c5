"""Converts what an interval matcher emits to rows: insertions and retractions of matches, and late events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import END, EVENT_ID, EVENT_PREFIX, KEY_PREFIX, ORDINAL, TIME, VALUE_PREFIX, Batch
from cepheid.events.direction import SEQUENCE_PREFIX, Direction
from cepheid.events.identity import DIGEST_SIZE
from cepheid.events.order import ranked
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import FOREVER, Flags, Int32s
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
from cepheid.output.common import event_structs, event_type
from cepheid.output.events import Taken, events_column, events_field
from cepheid.output.ids import Hashes, Identifying, Identities, Ids, Members, hex_ids, identified, purpose
from cepheid.output.typed import as_typed
from cepheid.plan.conditions.script import StageValue
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.lifted import Slot
from cepheid.plan.reserved import LEADING

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


def rows_of(plan: IntervalPlan, emitted: EmittedIntervals, events: Batch, places: Int32s, ids: Ids) -> pa.Table:
    """Converts what was emitted to rows. `events` has the events of these rows, with ordinals. `places` is (rows, n):
    in place of the positions of each match's events their rows in `events`; those of a late event are all its own.
    """
    schema, count = row_schema(plan), len(emitted.event)
    late = emitted.sign == LATE
    placed = Placed(plan, events, places.T, late if late.any() else None)
    columns = [
        _kinds(emitted.sign),
        pa.repeat(pa.scalar(plan.pattern.name, pa.string()), count),
        hex_ids(_ids(placed, placed.identities(ids))),
        *placed.keys,
        times_of(emitted.start, late),
        times_of(emitted.end, late | (emitted.end == OPEN_END)),
        times_of(emitted.clock, (emitted.clock == BEGINNING) | (emitted.clock == FOREVER)),
        *placed.shown,
    ]
    if plan.rows_per != "event":
        columns.append(_structs(plan, events, placed.first, ~late))
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


@dataclass(frozen=True)
class Placed:
    """Matches, and late events, as rows of a batch of events."""

    plan: IntervalPlan
    events: Batch
    """With ordinals."""
    variables: npt.NDArray[np.int32]
    """(n, rows) for each of the n events of a match, its row in `events`; of a late event always its own."""
    late: Flags | None = None
    """(rows,) which of them are late events; None: none."""

    @property
    def first(self) -> Int32s:
        found: Int32s = self.variables[0]
        return found

    @property
    def keys(self) -> Iterator[pa.Array]:
        """The columns of the key."""
        names = (f"{KEY_PREFIX}{i}" for i in range(len(self.plan.schema.key)))
        return (self.events.column(name).take(pa.array(self.first)) for name in names)

    @property
    def shown(self) -> Iterator[pa.Array]:
        """The columns of slots, then those of variables or, for rows of events, the list of events."""
        yield from map(self._slot, self.plan.slots.values())
        if self.plan.rows_per == "event":
            yield events_column(self.plan, _taken(self), self.events, {})
        elif self.plan.measures is None:
            yield from (_structs(self.plan, self.events, rows, self.late) for rows in self.variables)

    def identities(self, ids: Ids) -> Identities:
        identifying = [*identity(self.plan, self.events), self.events.column(ORDINAL)]
        return identified(ids, Identifying(identifying, len(self.events)))

    def match_ids(self, known: Identities) -> Hashes:
        """The ids of the matches: a hash of the pattern's name and each variable's event. An insertion and its
        retraction have the same id.
        """
        return _hashes(self.plan, known, "interval", self.variables)

    def _slot(self, slot: Slot) -> pa.Array:
        """The slot's value for each row: that of the one event of its variable."""
        assert isinstance(slot, StageValue), "aggregates are refused: a variable is one event"
        rows = pa.array(self.variables[slot.stage], mask=self.late)
        return self.events.column(f"{VALUE_PREFIX}{slot.column}").take(rows)


def _taken(placed: Placed) -> Taken:
    """The events of the matches, in the order of their starts, their ends and the sequence; of a late event itself."""
    events, variables = placed.events, placed.variables
    late = np.zeros(variables.shape[1], np.bool_) if placed.late is None else placed.late
    times = [events.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END)]
    order = np.lexsort([rank[variables] for rank in (*reversed(_ranks(events)), *reversed(times))], axis=0)
    places = np.where(late, placed.first, np.take_along_axis(variables, order, axis=0)).T
    there = ~late[:, None] | (np.arange(len(variables)) == 0)
    stage = pa.array(order.T[there], mask=np.broadcast_to(late[:, None], there.shape)[there])
    names = pa.array(_variables(placed.plan), pa.string()).take(stage)
    only = pc.if_else(stage.is_valid(), 1, None)
    return Taken(np.cumsum(there.sum(axis=1)), places[there].astype(np.int32), names, only)


def _ranks(events: Batch) -> list[npt.NDArray[np.int64]]:
    """For each column of the sequence, numbers that sort as it does."""
    names = [name for name in events.data.schema.names if name.startswith(SEQUENCE_PREFIX)]
    leaves = [leaf for name in names for leaf in ranked(events.column(name), Direction.of(name))]
    return [pc.rank(leaf, tiebreaker="dense").to_numpy().astype(np.int64) for leaf in leaves]


def times_of(times: npt.NDArray[np.int64], absent: Flags | None = None) -> pa.Array:
    mask = absent if absent is not None and absent.any() else None
    return pa.array(times, pa.int64(), mask=mask).cast(TIME_TYPE)


def _structs(plan: IntervalPlan, events: Batch, rows: Int32s, absent: Flags | None) -> pa.Array:
    type_ = event_type(plan)
    if absent is not None and absent.all():
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


def _ids(placed: Placed, known: Identities) -> Hashes:
    """The ids of matches and late events. That of a late event is a hash of the pattern's name and the event."""
    late = placed.late
    if late is None:
        return placed.match_ids(known)
    found = np.zeros((len(late), DIGEST_SIZE), np.uint8)
    found[late] = _hashes(placed.plan, known, "late interval", placed.variables[:1, late])
    found[~late] = _hashes(placed.plan, known, "interval", placed.variables[:, ~late])
    return found


def _hashes(plan: IntervalPlan, known: Identities, what: str, rows: npt.NDArray[np.int32]) -> Hashes:
    """The ids of rows of a kind; `rows` has each one's first event, each one's second event, and so on."""
    ends = np.arange(1, rows.shape[1] + 1) * len(rows)
    return known.hashes(Members(rows.T.ravel(), ends), purpose(plan.pattern.name, what))
