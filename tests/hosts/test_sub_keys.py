"""A key that values extend has the matches, timeouts and other rows of the whole key, with the same ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.hosts.sub_key_patterns import sub_key_pattern
from tests.hosts.test_tiers import CHOSEN, FAMILY, _columns, _one_batch, _order, _ranks, _sub_keys, _value, found, rows
from tests.hosts.tiered_patterns import tied_events
from tests.searching import share

from cepheid import Pattern, PatternError
from cepheid.events.batch import Schema
from cepheid.families.family import Family
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import batches_as_they_come
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import PlanSet, relevant_to_any
from cepheid.plan.stages.division.sub_keys import sub_keys_of_all
from cepheid.plan.stages.plans import Plans
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided

OPTIONS = [
    PlanOptions(columns=CHOSEN),
    PlanOptions(),
    PlanOptions(outputs=("matches", "timeouts", "no_match")),
    PlanOptions(columns=CHOSEN, outputs=("timeouts",)),
]
CALLS = [(sequence, options) for options in OPTIONS for sequence in ((), ("id",))]
"""Sequences, columns and outputs."""
SEEDS = st.integers(0, 1 << 32)


def plans_of(pattern: Pattern, events: pa.Table, sequence: tuple[str, ...], options: PlanOptions) -> Plans:
    schema = Schema(events.schema, ("n",), "at", sequence)
    return FAMILY.build([PatternRequest(pattern)], schema, DuckDbEngine(), options)


def shipped(plans: PlanSet[Any], events: pa.Table, family: Family = FAMILY) -> pa.RecordBatch:
    """The events as a host ships them, without those that are not relevant."""
    timed = TimedEvents(events, (events.column("at"),))
    relevant = relevant_to_any(family.compile(plans).relevant_to)
    (batch,) = batches_as_they_come(timed, plans, relevant, DuckDbEngine(), HeldBits())
    return batch.data


def divided(plans: Plans, sides: Sequence[Side], batch: pa.RecordBatch, size: int) -> pa.Table:
    """The rows of a matcher that takes each key's events by these values."""
    values = [_value(batch, side) for side in sides]
    whole = pa.table({**_columns(batch), **_sub_keys(values)})
    order = _order([batch.column("_key0"), *values], _ranks(batch))
    in_order = _one_batch(whole.take(pa.array(order, pa.int64())))
    return found(FAMILY.finite(FAMILY.compile(plans), None), in_order, size)


@share(50)
@given(SEEDS, SEEDS, st.integers(1, 40), st.sampled_from([1, 7, 1000]), st.sampled_from(CALLS))
def test_sub_keys_change_no_row(
    seed: int, other: int, count: int, size: int, call: tuple[tuple[str, ...], PlanOptions]
) -> None:
    """Random patterns and events: the rows are those of the whole key, ids included."""
    sequence, options = call
    events = tied_events(other, count)
    half = pc.bit_wise_and(events.column("n"), 1)
    events = events.set_column(events.schema.names.index("n"), "n", half)
    pattern = sub_key_pattern(seed, branching="timeouts" not in (options.outputs or ()))
    try:
        plans = plans_of(pattern, events, sequence, options)
    except PatternError:
        assume(False)  # noqa: FBT003 - a clause that the pattern's other clauses forbid
    sides = sub_keys_of_all(plans)
    assert not isinstance(sides, Undivided), sides
    batch = shipped(plans, events)
    assert rows(divided(plans, sides, batch, size)) == rows(divided(plans, [], batch, size))
