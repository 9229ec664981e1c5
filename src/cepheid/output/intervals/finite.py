"""Converts the matches in a finite input to rows, in the order of BY_END."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.kernel.intervals.layout import EmittedIntervals
from cepheid.kernel.intervals.sorting import order_of
from cepheid.output.common import MATCH, event_type
from cepheid.output.ids import Hashes, Ids, hex_ids
from cepheid.output.intervals.rows import Placed, row_schema, times_of
from cepheid.output.typed import as_typed
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.reserved import BY_END, LEADING, PATTERN

_SIGN = np.uint64(1 << 63)


def finite_schema(plan: IntervalPlan, *, named: bool) -> pa.Schema:
    """The columns of the matches in a finite input, which has no retractions and no late events. If `named`, they
    include kind and pattern.
    """
    every = row_schema(plan)
    return pa.schema([every.field(i) for i in _columns(plan, named=named)])


def _columns(plan: IntervalPlan, *, named: bool) -> range:
    """Their numbers in `row_schema`. Names will not do: a key may have that of a column that is left out."""
    count = len(row_schema(plan))
    if plan.rows_per == "event":
        return range(0 if named or plan.outputs is not None else LEADING.index(PATTERN), count)
    return range(count) if plan.outputs is not None else range(0 if named else len(LEADING), count - 1)


def finite_rows(
    plan: IntervalPlan, emitted: EmittedIntervals, events: Batch, places: Int32s, ids: Ids, *, named: bool
) -> pa.Table:
    """Converts matches to rows of `finite_schema`, in the order of BY_END. `events` has the events of the matches, with
    ordinals. `places` is (rows, n): the row in `events` of each match's events. detected_at is match_end: a match is
    certain when its last event ends, because no later event can forbid it.
    """
    found = Placed(plan, events, places.T)
    hashes = found.match_ids(found.identities(ids))
    order = _by_end(emitted, hashes)
    placed = Placed(plan, events, places[order].T)
    start, end = times_of(emitted.start[order]), times_of(emitted.end[order])
    chosen, schema = _columns(plan, named=named), finite_schema(plan, named=named)
    columns = [
        *(pa.repeat(pa.scalar(text, pa.string()), len(order)) for text in (MATCH, plan.pattern.name)[chosen.start :]),
        hex_ids(hashes[order]),
        *placed.keys,
        *(start, end, end),
        *placed.shown,
    ]
    if len(columns) < len(schema):
        columns.append(pa.nulls(len(order), event_type(plan)))
    typed = [as_typed(field.type, column) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(typed, schema=schema)])


def _by_end(emitted: EmittedIntervals, hashes: Hashes) -> Ints | Int32s:
    """(n,) the order of the matches by end, start, and the text of the id: the hash's first byte counts most."""
    halves = (hashes.view(np.uint64).byteswap() ^ _SIGN).view(np.int64)
    words, nothing = np.column_stack([emitted.end, emitted.start, halves]), np.empty((len(hashes), 0), np.int32)
    if (np.diff(emitted.end) >= 0).all():
        return order_of(words, nothing)
    ascending = np.argsort(emitted.end, kind="stable")
    return ascending[order_of(words[ascending], nothing)]


def merged_by_end(rows: pa.Table) -> pa.Table:
    """The rows in the order of BY_END. Each chunk of the table is in this order already. Few rows of one chunk usually
    belong between those of others, and only these are copied.
    """
    chunks = [pa.Table.from_batches([batch]) for batch in rows.to_batches() if batch.num_rows]
    return pa.concat_tables([rows.slice(0, 0), *_merged(chunks)])


def _merged(chunks: list[pa.Table]) -> Iterator[pa.Table]:
    first_ends = [int(_ends(chunk)[0]) for chunk in chunks]
    # For each chunk the first end of all later ones.
    later = [*accumulate(reversed(first_ends), min, initial=FOREVER)][-2::-1]
    waiting: pa.Table | None = None
    """The rows so far that end when a row of a later chunk does, or afterwards."""
    for chunk, least in zip(chunks, later, strict=True):
        whole = chunk if waiting is None else _two_merged(waiting, chunk)
        final = int(np.searchsorted(_ends(whole), least))
        yield whole.slice(0, final)
        waiting = whole.slice(final) if final < len(whole) else None


def _two_merged(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of both tables in order. Each table is in order itself."""
    between = int(np.searchsorted(_ends(others), _ends(rows)[-1], side="right"))
    both = pa.concat_tables([rows, others.slice(0, between)])
    return pa.concat_tables([both.sort_by([(name, "ascending") for name in BY_END]), others.slice(between)])


def _ends(rows: pa.Table) -> Ints:
    ends: Ints = rows.column("match_end").cast(pa.int64()).to_numpy()
    return ends
