"""Slices of one width, as Spark makes them, have together the rows and counts of one sequence."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.test_time_slices import FIRST, OUTPUTS, PATTERNS, SKIPS, WITHIN, tables
from tests.searching import share

from cepheid.events.batch import SUB_KEY_PREFIX, Batch, join
from cepheid.events.time import microseconds
from cepheid.families.family import Family
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import ordered_batches, plans_in_process
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import in_order_of_arrival, timed, usable
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.plan.division import TimeSlices
from cepheid.plan.plan_set import relevant_to_any
from cepheid.requests.request_of import request_of


@share(2)
@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data(), events=tables(), within=WITHIN, outputs=OUTPUTS, skip=st.sampled_from(["", "next"]))
def test_equal_to_one_sequence(  # noqa: PLR0917
    name: str, data: st.DataObject, events: pa.Table, within: str, outputs: tuple[str, ...] | None, skip: str
) -> None:
    """Whatever the width and the batches, with ties, with as_of, and with the outputs of what ended without a match."""
    seconds, width = data.draw(st.none() | st.integers(0, 9)), data.draw(st.integers(1, 12)) * 500_000
    until = None if seconds is None else microseconds(FIRST + timedelta(seconds=seconds))
    pattern = PATTERNS[name].within(within).skip(SKIPS[skip])
    events, request = in_order_of_arrival(events, request_of(pattern, time="at", outputs=outputs or "matches"))
    engine = DuckDbEngine()
    plans = plans_in_process(events.schema, request, engine)
    family: Family = request.family
    compiled = family.compile(plans)
    slices = family.time_slices(plans)
    assert isinstance(slices, TimeSlices)
    kept, _ = usable(timed(events, request), plans.schema, request.nulls, until)
    batches = [*ordered_batches(kept, plans, relevant_to_any(compiled.relevant_to), engine, HeldBits())]
    if not batches:
        return
    whole, sliced = join(batches), in_slices(join(batches), slices, width)
    size = data.draw(st.integers(1, 20))
    pieces = [sliced.slice(at, min(len(sliced), at + size)) for at in range(0, len(sliced), size)]
    expected = found(family.finite(compiled, until), [whole])
    assert found(family.sliced(compiled, width, until), pieces) == expected


def in_slices(events: Batch, slices: TimeSlices, width: int) -> Batch:
    """The events of each slice, slice by slice."""
    times = times_of(events)
    before = slices.before + (slices.window if slices.waits else 0)
    first, last = (times - slices.window) // width, (times + before) // width
    counts = last - first + 1
    rows = np.repeat(np.arange(len(events)), counts)
    numbers = np.repeat(first, counts) + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    order = np.lexsort((rows, numbers))
    return events.take(pa.array(rows[order])).with_column(f"{SUB_KEY_PREFIX}0", pa.array(numbers[order]))


def found(matcher: FiniteMatcher, batches: list[Batch]) -> tuple[list[str], dict[str, int]]:
    """The rows in any order, and the counts."""
    tables = [table for batch in batches for table in matcher.process(batch)] + matcher.finish()
    return sorted(repr(row) for table in tables for row in table.to_pylist()), dict(matcher.counts)
