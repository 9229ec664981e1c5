"""What an interval matcher tells, as rows: insertions and retractions of matches, and events that were late."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, ORDINAL, TIME, TIME_TYPE, Batch
from cepheid.events.identity import canonical_bytes, digests
from cepheid.kernel.intervals.layout import BEGINNING, INSERTION, LATE, RETRACTION, ToldIntervals
from cepheid.kernel.stages.layout import FOREVER, Int32s
from cepheid.output.stages import as_typed, event_structs, hex_ids, purpose
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans

END = "_end"
"""The column of a batch that has the events' ends; `_time` is their start."""
INSERTION_KIND, RETRACTION_KIND = "insertion", "retraction"
KINDS = {LATE: "late", INSERTION: INSERTION_KIND, RETRACTION: RETRACTION_KIND}


def told_schema(plan: IntervalPlan) -> pa.Schema:
    """The columns of all rows."""
    event = _event_type(plan)
    return pa.schema(
        [
            pa.field("kind", pa.string(), nullable=False),
            pa.field("pattern", pa.string(), nullable=False),
            pa.field("match_id", pa.string(), nullable=False),
            *plan.schema.key_fields,
            *(pa.field(name, TIME_TYPE) for name in ("match_start", "match_end", "detected_at")),
            *(pa.field(positive.variable, event) for positive in plan.pattern.positives),
            pa.field("event", event),
        ]
    )


def matches_schema(plans: IntervalPlans) -> pa.Schema:
    """The columns of those rows that say what matches, where all are insertions: those of all patterns, a name once."""
    left_out = _OF_ARRIVAL if plans.named else (*_OF_ARRIVAL, "pattern")
    fields = {field.name: field for plan in plans.each for field in told_schema(plan)}
    return pa.schema([field for name, field in fields.items() if name not in left_out])


_OF_ARRIVAL = ("kind", "detected_at", "event")


def told_rows(plan: IntervalPlan, told: ToldIntervals, events: Batch, place: Int32s) -> pa.Table:
    """The rows. `events` has the events that these are about, with ordinals; `place` says for each position in `told`
    which it is.
    """
    schema, count = told_schema(plan), len(told.event)
    late = told.sign == LATE
    variables = [place[np.where(late, told.event, told.match[:, v])] for v in range(plan.positives)]
    first = place[np.where(late, told.event, told.match[:, 0])]
    identities = canonical_bytes([*identity(plan, events), events.column(ORDINAL)], len(events))
    columns = [
        pa.array([KINDS[sign] for sign in told.sign.tolist()], pa.string()),
        pa.array([plan.pattern.name] * count, pa.string()),
        _ids(plan, identities, late, first, variables),
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        *(_times(times, late) for times in (told.start, told.end)),
        _times(told.clock, (told.clock == BEGINNING) | (told.clock == FOREVER)),
        *(_structs(plan, events, rows, late) for rows in variables),
        _structs(plan, events, first, ~late),
    ]
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(typed, schema=schema)])


def _times(times: npt.NDArray[np.int64], absent: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(times, pa.int64(), mask=absent).cast(TIME_TYPE)


def _event_type(plan: IntervalPlan) -> pa.DataType:
    return pa.struct([plan.schema.columns.field(name) for name in plan.columns])


def _structs(plan: IntervalPlan, events: Batch, rows: Int32s, absent: npt.NDArray[np.bool_]) -> pa.Array:
    return event_structs(_event_type(plan), plan.columns, events, rows, absent=absent)


def identity(plan: IntervalPlan, events: Batch) -> list[pa.Array]:
    """What an event is known by: its key, its times and its chosen columns; with an ordinal among those that agree."""
    known = *plan.schema.key, plan.schema.start, plan.schema.end
    chosen = [events.column(EVENT_PREFIX + name) for name in plan.columns if name not in known]
    return [*events.keys, events.column(TIME), events.column(END), *chosen]


def _ids(
    plan: IntervalPlan, identities: pa.Array, late: npt.NDArray[np.bool_], first: Int32s, variables: list[Int32s]
) -> pa.Array:
    """Of a match a digest of the pattern's name and the identity of each variable's event; of a late event of its own.
    An insertion and the retraction that takes it back have the same.
    """
    found: list[bytes] = [b""] * len(late)
    for what, about, positions in (("late interval", late, [first]), ("interval", ~late, variables)):
        rows = np.stack([position[about] for position in positions], axis=1)
        ends = np.arange(1, len(rows) + 1) * rows.shape[1]
        made = digests(identities.take(pa.array(rows.ravel())), ends, purpose(plan.pattern.name, what))
        if len(made) == len(found):
            return hex_ids(made)
        for place, digest in zip(np.flatnonzero(about).tolist(), made, strict=True):
            found[place] = digest
    return hex_ids(found)
