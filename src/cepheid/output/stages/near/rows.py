"""The table of near misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from cepheid.output.near_misses import NearMisses, TriedChange
from cepheid.output.stages.near.found import NearMatches
from cepheid.output.stages.near.reasons import Reason, Reasons
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.plan.stages.plan import Plan


class _Miss(NamedTuple):
    """A start, and a change with which it matches."""

    start: int
    """The number of the start."""
    change: str
    reason: Reason
    lost: bool
    place: int
    """The place of the start in the order of the events."""

    @property
    def order(self) -> tuple[int, bool, float, bool, int]:
        """The sort key: those that reach most first, then those that are nearest; NULLs after others."""
        return -self.reason.reached, self.reason.is_null, self.reason.far, self.lost, self.place


def near_misses_of(
    plan: Plan, found: Sequence[NearMatches], reasons: Reasons, failed: Mapping[str, str], source: pa.Table
) -> NearMisses:
    """The near misses of the pattern; `source` has all events, in the order of their numbers."""
    misses, changes = list[_Miss](), list[TriedChange]()
    for near in found:
        own = [*_misses(near, reasons)]
        misses += own
        lost = sum(miss.lost for miss in own)
        changes.append(TriedChange(near.change.text, len(own), lost, near.dropped))
    misses.sort(key=lambda miss: miss.order)
    table = _table(plan, misses, source)
    return NearMisses(table, len({miss.start for miss in misses}), tuple(changes), failed)


def _misses(near: NearMatches, reasons: Reasons) -> Iterator[_Miss]:
    for match in near.taken.each:
        reason = reasons.of(near.change, match)
        if reason is not None:
            start = match[0][1]
            yield _Miss(start, near.change.text, reason, start in near.lost, reasons.place(start))


def _table(plan: Plan, misses: Sequence[_Miss], source: pa.Table) -> pa.Table:
    schema, names = plan.schema, [leaf.name for leaf in plan.pattern.leaves]
    starts, at = (pa.array(numbers, pa.int64()) for numbers in _numbers(misses))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {ROW_NUMBER: starts}
    columns |= {name: source.column(name).take(starts) for name in schema.key}
    if schema.time is not None:
        columns["match_start"] = source.column(schema.time).take(starts)
    columns["rank"] = pa.array(_ranks(misses), pa.int64())
    columns["reached"] = pa.array([names[miss.reason.reached] for miss in misses], pa.string())
    columns["change"] = pa.array([miss.change for miss in misses], pa.string())
    columns["reason"] = pa.array([miss.reason.text for miss in misses], pa.string())
    if schema.time is not None:
        columns["at"] = source.column(schema.time).take(at)
    columns["off_by"] = pa.array([miss.reason.off_by for miss in misses], pa.float64())
    columns["lost"] = pa.array([miss.lost for miss in misses], pa.bool_())
    return pa.table(columns)


def _numbers(misses: Sequence[_Miss]) -> tuple[list[int], list[int]]:
    return [miss.start for miss in misses], [miss.reason.at for miss in misses]


def _ranks(misses: Sequence[_Miss]) -> list[int]:
    """For each near miss its rank among those of its start, from 1."""
    ranks, so_far = [], dict[int, int]()
    for miss in misses:
        so_far[miss.start] = so_far.get(miss.start, 0) + 1
        ranks.append(so_far[miss.start])
    return ranks
