"""The table of near misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Flags
from cepheid.output.near_misses import NearMisses, TriedChange
from cepheid.output.stages.near.find import reasons_for
from cepheid.output.stages.near.found import NearMatches, first_of_each
from cepheid.output.stages.near.reasons import NOT_BEGUN, Known, Reasons, all_of
from cepheid.plan.reserved import ROW_NUMBER


class _Misses(NamedTuple):
    """Starts, and changes with which they match. Row by row: (near misses,)."""

    start: Ints
    """The number of the start."""
    lost: Flags
    change: Ints
    """The number of the change."""
    reasons: Reasons


def near_misses_of(
    known: Known, found: Sequence[NearMatches], failed: Mapping[str, str], source: pa.Table
) -> NearMisses:
    """The near misses of the pattern; `source` has all events, in the order of their numbers."""
    each = [_misses(known, number, near) for number, near in enumerate(found)]
    changes = tuple(
        TriedChange(near.change.text, len(own.start), int(own.lost.sum()), near.dropped)
        for near, own in zip(found, each, strict=True)
    )
    table = _table(known, each, [near.change.text for near in found], source)
    return NearMisses(table, pc.sum(pc.equal(table.column("rank"), 1), min_count=0).as_py(), changes, failed)


def _misses(known: Known, number: int, near: NearMatches) -> _Misses:
    reasons = reasons_for(near, known)
    start = near.taken.starts[reasons.match]
    return _Misses(start, near.lost[reasons.match], np.full(len(start), number), reasons)


def _table(known: Known, each: Sequence[_Misses], changes: Sequence[str], source: pa.Table) -> pa.Table:
    """A row for each near miss. Those that got furthest come first, then the nearest; those with a NULL come last."""
    schema, names = known.plan.schema, [leaf.name for leaf in known.plan.pattern.leaves]
    start, lost, change, reasons = _all_of(each)
    place = known.order.places(start)
    order = np.lexsort((place, lost, reasons.far, reasons.is_null, -reasons.reached))
    start, reasons = start[order], reasons.take(order)
    starts, at = pa.array(start), pa.array(reasons.at)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {ROW_NUMBER: starts}
    columns |= {name: source.column(name).take(starts) for name in schema.key}
    if schema.time is not None:
        columns["match_start"] = source.column(schema.time).take(starts)
    columns["rank"] = pa.array(_ranks(start))
    reached = pa.array(reasons.reached, mask=reasons.reached == NOT_BEGUN)
    columns["reached"] = pa.array(names, pa.string()).take(reached)
    columns["change"] = pa.array(changes, pa.string()).take(pa.array(change[order]))
    columns["reason"] = reasons.text
    if schema.time is not None:
        columns["at"] = source.column(schema.time).take(at)
    columns["off_by"] = pa.array(reasons.off_by, from_pandas=True)
    columns["lost"] = pa.array(lost[order])
    return pa.table(columns)


def _all_of(each: Sequence[_Misses]) -> _Misses:
    """The near misses of all changes, one change after the other."""
    starts, lost, changes = [np.empty(0, np.int64)], [np.empty(0, np.bool_)], [np.empty(0, np.int64)]
    for own in each:
        starts.append(own.start)
        lost.append(own.lost)
        changes.append(own.change)
    reasons = all_of([own.reasons for own in each])
    return _Misses(np.concatenate(starts), np.concatenate(lost), np.concatenate(changes), reasons)


def _ranks(start: Ints) -> Ints:
    """For each near miss its rank among those of its start, from 1."""
    order = np.argsort(start, kind="stable")
    ordered = start[order]
    begins = first_of_each(ordered)
    ranks = np.empty(len(start), np.int64)
    ranks[order] = np.arange(1, len(start) + 1) - np.repeat(begins, np.diff(begins, append=len(start)))
    return ranks
