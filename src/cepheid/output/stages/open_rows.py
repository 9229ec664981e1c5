"""The rows of open partial matches: those that a matcher lists, and those that a host stores."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.errors import SchemaError
from cepheid.events.batch import KEY_PREFIX, MASK, ROW_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.events.identity import key_names
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.stages.emitted import Emitted
from cepheid.output.common import TIMEOUT, identities
from cepheid.output.ids import Hashes, Ids, hex_ids, identified, purpose, single
from cepheid.output.measures import slot_values
from cepheid.output.stages.rows import (
    OPEN,
    events_of,
    first_of_equals,
    hashes_of,
    members_of,
    stage_map,
    stages_field,
    times_of,
)
from cepheid.output.typed import as_typed
from cepheid.plan.stages.plan import Plan

_SERIES = "series"
"""The purpose of the series of stored open partial matches."""


class Listed(NamedTuple):
    """Some open partial matches of a pattern, at least one."""

    plan: Plan
    emitted: Emitted
    """Each as the timeout that it would be."""
    events: Batch
    position: Int32s
    """The i-th event of `emitted` is row position[i] of `events`."""
    ids: Ids


def open_schema(plan: Plan) -> pa.Schema:
    """The columns of open partial matches.

    Raises:
        SchemaError: a column of the key has the name of one of the others.
    """
    leading = [pa.field("pattern", pa.string(), nullable=False)]
    open_ = [pa.field("stage", pa.string(), nullable=False), pa.field("match_start", TIME_TYPE)]
    open_ += [pa.field("deadline", TIME_TYPE), stages_field(plan)]
    if twice := [name for name in plan.schema.key if name in {field.name for field in (*leading, *open_)}]:
        what = f"open partial matches have a column {twice[0]!r}, and so has the key"
        raise SchemaError(f"{what}. Rename the column of the events")
    return pa.schema([*leading, *plan.schema.key_fields, *open_])


def open_rows(schema: pa.Schema, listed: Listed) -> pa.RecordBatch:
    """The rows, with the columns of `open_schema`. Branches with the same events and the same deadline are one row."""
    plan, emitted, events, position, ids = listed
    names = pa.array([plan.pattern.name] * len(emitted.end), pa.string())
    columns = [names, *_columns([listed], emitted, events, position)]
    rows = _typed(schema, columns)
    known = identified(ids, identities(plan.schema, plan.columns, events))
    return rows.take(pa.array(first_of_equals(hex_ids(hashes_of(plan, TIMEOUT, emitted, position, known)))))


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
            stages_field(plan),
            *(pa.field(name, slot.type) for name, slot in plan.promoted_slots.items()),
        ]
    )


def stored_open_rows(schema: pa.Schema, listed: Sequence[Listed]) -> tuple[pa.RecordBatch, Ints]:
    """The rows of all of these, with the columns of `stored_open_schema`, and how many there are of each. Several have
    the same schema of events, columns and kind of ids, and no promoted columns.

    `id` is a hash of the events taken, their stages and the deadline, `series` one of the first event: the id changes
    whenever the partial match takes an event, and the series stays.
    """
    emitted, events, position = _joined(listed)
    plan, ends = listed[0].plan, emitted.end
    first = position[np.concatenate([[0], ends[:-1]])]
    bounds = np.concatenate([[0], np.cumsum([len(one.emitted.end) for one in listed])])
    known = identified(listed[0].ids, identities(plan.schema, plan.columns, events))
    own = known.hashes_with(_purposes(listed, OPEN), bounds, members_of(OPEN, emitted, position))
    series = known.hashes_with(_purposes(listed, _SERIES), bounds, single(first))
    names = key_names([column.take(pa.array(first)) for column in events.keys], len(ends))
    slots = plan.promoted_slots.values()
    assert len(listed) == 1 or not slots
    taken = events_of(emitted, position, {slot.stage for slot in slots})
    columns = [
        hex_ids(own),
        hex_ids(series),
        pa.array([key_id(name) for name in names], pa.string()),
        *_columns(listed, emitted, events, position),
        *(slot_values(slot, taken[slot.stage], events) for slot in slots),
    ]
    rows = _typed(schema, columns)
    part = np.repeat(np.arange(len(listed)), np.diff(bounds))
    kept = _first_of_each(own, part)
    if len(kept) < len(part):
        rows, part = rows.take(pa.array(kept)), part[kept]
    return rows, np.bincount(part, minlength=len(listed))


def key_id(name: bytes) -> str:
    """The digest of a key's canonical bytes by which stored rows are found."""
    return blake2b(name, digest_size=8).hexdigest()


def _joined(listed: Sequence[Listed]) -> tuple[Emitted, Batch, Int32s]:
    """All of them as if they were those of one pattern. Of the events remain the columns that have the same meaning."""
    if len(listed) == 1:
        return listed[0].emitted, listed[0].events, listed[0].position
    others = (MASK, VALUE_PREFIX, ROW_PREFIX)
    names = [name for name in listed[0].events.data.schema.names if not name.startswith(others)]
    columns = [pa.concat_arrays([one.events.column(name) for one in listed]) for name in names]
    before = np.cumsum([0, *(len(one.events) for one in listed)])
    members = np.cumsum([0, *(len(one.position) for one in listed)])
    emitted = Emitted(
        end=np.concatenate([one.emitted.end + start for one, start in zip(listed, members[:-1], strict=True)]),
        detected_at=np.concatenate([one.emitted.detected_at for one in listed]),
        outcome=np.concatenate([one.emitted.outcome for one in listed]),
        event=np.concatenate([one.emitted.event for one in listed]),
        stage=np.concatenate([one.emitted.stage for one in listed]),
    )
    position = np.concatenate([one.position + start for one, start in zip(listed, before[:-1], strict=True)])
    return emitted, Batch(pa.RecordBatch.from_arrays(columns, names=names)), position.astype(np.int32)


def _columns(listed: Sequence[Listed], emitted: Emitted, events: Batch, position: Int32s) -> list[pa.Array]:
    """The key, the last stage that took an event, the start, the deadline and the events by stage."""
    plan, ends = listed[0].plan, emitted.end
    first, last = position[np.concatenate([[0], ends[:-1]])], position[ends - 1]
    counts = [len(one.emitted.end) for one in listed]
    leaves = [[leaf.name for leaf in one.plan.pattern.leaves] for one in listed]
    stage = emitted.stage[ends - 1] + np.repeat(np.cumsum([0, *map(len, leaves)])[:-1], counts)
    start, _, deadline = times_of(plan, emitted, events.column(TIME), first, last)
    return [
        *(events.column(f"{KEY_PREFIX}{i}").take(pa.array(first)) for i in range(len(plan.schema.key))),
        pa.array([*chain.from_iterable(leaves)], pa.string()).take(pa.array(stage)),
        start,
        deadline,
        stage_map([(one.plan, count) for one, count in zip(listed, counts, strict=True)], emitted, events, position),
    ]


def _typed(schema: pa.Schema, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _purposes(listed: Sequence[Listed], kind: str) -> list[bytes]:
    return [purpose(one.plan.pattern.name, kind) for one in listed]


def _first_of_each(ids: Hashes, part: Ints) -> npt.NDArray[np.int64]:
    """The rows, ascending, without those that have the id of an earlier row of the same part."""
    words = ids.view(np.uint64).reshape(-1, 2)
    order = np.lexsort((words[:, 1], words[:, 0], part))
    same = (np.diff(words[order], axis=0) == 0).all(axis=1) & (np.diff(part[order]) == 0)
    return np.sort(order[np.concatenate([[True], ~same])])
