"""A pattern without key has the same matches in tiers, with the same ids, as in one sequence of all events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.tiered_patterns import tied_events, tied_pattern

from cepheid import Pattern
from cepheid.events.batch import SUB_KEY_PREFIX, TIME, VALUE_PREFIX, Batch, Schema
from cepheid.events.direction import SEQUENCE_PREFIX
from cepheid.families.stages import Stages
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import batches_as_they_come
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.matchers.shipped_events import EVENT, TAKEN_PREFIX, ShippedEvents
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import relevant_to_any
from cepheid.plan.stages.plans import Plans
from cepheid.plan.tiers import Side, Tier

FAMILY = Stages()


def plans_of(pattern: Pattern, events: pa.Table, sequence: tuple[str, ...], options: PlanOptions, **of: Any) -> Plans:
    schema = Schema(events.schema, (), "at", sequence)
    return FAMILY.build([PatternRequest(pattern, **of)], schema, DuckDbEngine(), options)


def batch_of(plans: Plans, events: pa.Table) -> pa.RecordBatch:
    """The events as a host ships them, without those that are not relevant."""
    timed = TimedEvents(events, (events.column("at"),))
    relevant = relevant_to_any(FAMILY.compile(plans).relevant_to)
    (batch,) = batches_as_they_come(timed, plans, relevant, DuckDbEngine(), HeldBits())
    return batch.data


def found(matcher: FiniteMatcher, batch: pa.RecordBatch, size: int) -> pa.Table:
    """The rows of a matcher for a batch in pieces of this size."""
    pieces = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
    tables = [table for piece in pieces for table in matcher.process(Batch(piece))]
    return pa.concat_tables([*tables, *matcher.finish()])


def in_one_sequence(plans: Plans, batch: pa.RecordBatch) -> pa.Table:
    return found(
        FAMILY.finite(FAMILY.compile(plans), None), batch.take(pa.array(_order([], _ranks(batch)), pa.int64())), 7
    )


def in_tiers(plans: Plans, tiers: Sequence[Tier], batch: pa.RecordBatch, size: int) -> pa.Table:
    """The rows of the last tier, with the tiers' rows moved as hosts do it, but all in one partition."""
    shipped = ShippedEvents({name: name for name in batch.schema.names}, batch.schema)
    values = [_value(batch, link.value) for link in tiers[0].links]
    rows = pa.table({**_columns(batch), **_sub_keys(values)})
    order = _order(values, _ranks(batch))
    if len(tiers) == 1:
        known = [row for row in order if all(value[row].is_valid for value in values)]
        divided = rows.take(pa.array(known, pa.int64())).combine_chunks()
        return found(FAMILY.finite(FAMILY.compile(plans), None), _one_batch(divided), size)
    for number, tier in enumerate(tiers):
        if number:
            rows, order = _divided_again(rows, tier)
        sorted_rows = rows.take(pa.array(order, pa.int64()))
        rows = found(FAMILY.tier_matcher(plans, number, shipped, None), _one_batch(sorted_rows), size)
    return rows


def _divided_again(rows: pa.Table, tier: Tier) -> tuple[pa.Table, list[int]]:
    events = _one_batch(rows).column(EVENT)
    taken = [_one_batch(rows).column(f"{TAKEN_PREFIX}{stage}") for stage in range(tier.first)]

    def parts(structs: pa.Array) -> pa.RecordBatch:
        return pa.record_batch(structs.flatten(), names=[field.name for field in structs.type])

    event = parts(events)
    keys = [
        pc.if_else(events.is_valid(), _value(event, link.value), _value(parts(taken[link.stage]), link.earlier))
        for link in tier.links
    ]
    last = parts(taken[-1])
    ranks = [a if e.is_valid else b for e, a, b in zip(events, _ranks(event), _ranks(last), strict=True)]
    return pa.table({**_columns(rows), **_sub_keys(keys)}), _order(keys, ranks)


def _value(batch: pa.RecordBatch, side: Side) -> pa.Array:
    """The side's value of each event, without -0.0."""
    values = batch.column(f"{VALUE_PREFIX}{side.column}").cast(side.type)
    return pc.add(values, 0.0) if side.type == pa.float64() else values


def _order(values: Sequence[pa.Array], ranks: list[tuple[Any, ...]]) -> list[int]:
    columns = [[_sortable(value) for value in column.to_pylist()] for column in values]
    keys = [*zip(*columns, ranks, strict=True)]
    return sorted(range(len(ranks)), key=lambda row: keys[row])


def _sortable(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def _ranks(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    names = [TIME, *(name for name in batch.schema.names if name.startswith(SEQUENCE_PREFIX))]
    return [*zip(*(map(_sortable, batch.column(name).to_pylist()) for name in names), strict=True)]


def _columns(rows: pa.RecordBatch | pa.Table) -> dict[str, Any]:
    return dict(zip(rows.schema.names, rows.columns, strict=True))


def _sub_keys(values: Sequence[pa.Array]) -> dict[str, pa.Array]:
    return {f"{SUB_KEY_PREFIX}{number}": value for number, value in enumerate(values)}


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    return rows.combine_chunks().to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], rows.schema)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


CHOSEN = ["x", "small", "y", "f", "d", "s"]
SHAPES: list[tuple[tuple[str, ...], PlanOptions, dict[str, str] | None]] = [
    ((), PlanOptions(), None),
    (("id",), PlanOptions(), None),
    ((), PlanOptions(columns=CHOSEN), None),  # several events are equal in these, but not in what conditions read
    ((), PlanOptions(columns=["kind", "y"]), None),
    ((), PlanOptions(), {"n": "sum(s0.n)", "c": "count(s1)", "s": "s1.s"}),
    (("id",), PlanOptions(outputs=("matches",)), None),
]
"""Sequences, columns and outputs, and measures."""

seeds = st.integers(0, 1 << 32)


@given(seeds, seeds, st.integers(1, 40), st.sampled_from([1, 3, 1000]), st.sampled_from(SHAPES))
def test_tiers_find_the_matches_of_one_sequence(
    seed: int, other: int, count: int, size: int, shape: tuple[tuple[str, ...], PlanOptions, dict[str, str] | None]
) -> None:
    """Random patterns and events: the rows of the last tier are those of one sequence, ids included."""
    pattern, events = tied_pattern(seed, same=seed % 3 == 0), tied_events(other, count)
    sequence, options, measures = shape
    plans = plans_of(pattern, events, sequence, options, measures=measures)
    tiers, batch = FAMILY.tiers(plans), batch_of(plans, events)
    assert tiers
    assert rows(in_tiers(plans, tiers, batch, size)) == rows(in_one_sequence(plans, batch))
