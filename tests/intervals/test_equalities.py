"""Joins by equal values find what the definition finds, whatever the values, the arrivals and the order of joins."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.intervals.running import ENGINE, as_intervals, batch_of, log_of
from tests.intervals.strategies import SECOND

from cepheid.compile.intervals.compiled import compile_intervals, reordered
from cepheid.events.batch import Schema
from cepheid.intervals import interval_pattern
from cepheid.kernel.intervals.reference import matches
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.intervals import rates
from cepheid.matchers.intervals.rates import Rates
from cepheid.plan.intervals.build import build_interval_plan
from cepheid.plan.intervals.plan import IntervalPlan

EQUALITIES = (
    "a.n = b.n AND b.n = c.n",
    "a.x = b.x AND c.u = a.u",
    "a.u = c.u AND b.n = c.n AND a.x = b.x",
    "a.n = b.x AND a.n = c.n",
    "a.u = b.u AND b.u < c.u",
)
NEGATIONS = ("", "(!D d WHERE d.u = a.u), ", "(!D d gap WHERE d.x = b.x AND d.n = a.n), ")
TYPES = pa.timestamp("us", "UTC")


@pytest.fixture(autouse=True, scope="module")
def looks_are_frequent() -> Iterator[None]:
    """The order of joins is chosen anew after every few events."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "_FIRST", 2)
        patch.setattr(rates, "_MOST", 5)
        yield


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(4, 24))
    rows = st.tuples(
        st.sampled_from("ABCD"),
        st.integers(0, 15),
        st.integers(0, 4),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0.0, -0.0, 1.0, math.nan, -math.nan, None]),
        st.sampled_from(["", "é", "z", None]),
        st.sampled_from(["k", "l"]),
    )
    kinds, starts, lengths, numbers, doubles, texts, keys = zip(
        *draw(st.lists(rows, min_size=count, max_size=count)), strict=True
    )
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    return pa.table(
        {
            "id": [f"e{i}" for i in range(count)],
            "type": pa.array(kinds),
            "start": pa.array([start * SECOND for start in starts], TYPES),
            "end": pa.array([end * SECOND for end in ends], TYPES),
            "n": pa.array(numbers, pa.int64()),
            "x": pa.array(doubles, pa.float64()),
            "u": pa.array(texts, pa.string()),
            "k": pa.array(keys, pa.string()),
        }
    )


def planned(text: str, events: pa.Table, key: tuple[str, ...] = ()) -> IntervalPlan:
    pattern = interval_pattern(text).taxonomy("type")
    return build_interval_plan(pattern, Schema(events.schema, key, "start", end="end"), ENGINE)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    equality=st.sampled_from(EQUALITIES),
    negation=st.sampled_from(NEGATIONS),
    events=tables(),
    cuts=st.lists(st.integers(1, 23), max_size=3),
    restoring=st.booleans(),
    consistency=st.sampled_from(Consistency),
)
def test_equal_values_are_those_of_the_definition(  # noqa: PLR0917 - drawn by Hypothesis
    equality: str,
    negation: str,
    events: pa.Table,
    cuts: list[int],
    restoring: bool,  # noqa: FBT001
    consistency: Consistency,
) -> None:
    """NULL equals nothing, NaN equals NaN, and there is one zero; also when events are forgotten or restored."""
    plan = planned(f"EVENT PAL(A a, B b, {negation}C c) RELATE a before b WHERE {equality} WITHIN 30 seconds", events)
    log = log_of(
        compile_intervals(plan, delay=40 * SECOND, lateness=End.START),
        batch_of(plan, events),
        consistency=consistency,
        cuts=cuts,
        restoring=restoring,
    )
    net = {one.match for one in log if one.sign == "+"} - {one.match for one in log if one.sign == "-"}
    known = as_intervals(plan, events)
    assert net == {*matches(plan, known)}


def test_values_of_one_key_are_not_those_of_another() -> None:
    """Events of different keys are not joined, though their values are equal."""
    rows = [("A", 0, "k"), ("A", 1, "l"), ("B", 3, "k"), ("C", 5, "k"), ("C", 6, "l")]
    kinds, starts, keys = zip(*rows, strict=True)
    times = pa.array([start * SECOND for start in starts], TYPES)
    columns = {"id": [f"e{i}" for i in range(len(rows))], "type": kinds, "start": times, "end": times}
    events = pa.table({**columns, "n": [1] * len(rows), "k": pa.array(keys)})
    plan = planned("EVENT PAL(A a before C c) WHERE a.n = c.n", events, key=("k",))
    compiled = compile_intervals(plan, delay=None, lateness=End.START)
    log = log_of(compiled, batch_of(plan, events), consistency=Consistency.EARLIEST)
    assert {one.match for one in log} == {(0, 3), (1, 4)}


def test_rare_events_are_looked_up_first() -> None:
    """The order of joins follows the events that came, and later ones change it."""
    events = pa.table({"id": ["e"], "type": ["A"], "start": pa.array([0], TYPES), "end": pa.array([0], TYPES)})
    plan = planned("EVENT PAL((A a before B b) before C c) WITHIN 100 seconds", events)
    compiled = compile_intervals(plan, delay=0, lateness=End.START)
    seen = Rates(compiled)
    a, b = (1 << plan.variable_bits[i] for i in (0, 1))
    for rare, common, expected in ((b, a, [2, 1, 0]), (a, b, [2, 0, 1])):
        for mask in (common, common, common, rare) * 8:
            seen.add(pa.array([mask]).to_numpy())
            if (found := seen.looked_at()) is not None:
                compiled = reordered(compiled, found)
        assert compiled.tables.order[2].tolist() == expected


def test_rates_that_stay_the_same_are_not_returned_again() -> None:
    """To look for another order would only take time."""
    events = pa.table({"id": ["e"], "type": ["A"], "start": pa.array([0], TYPES), "end": pa.array([0], TYPES)})
    plan = planned("EVENT PAL(A a before B b) WITHIN 100 seconds", events)
    seen = Rates(compile_intervals(plan, delay=0, lateness=End.START))
    a, b = (np.full(1 << 16, 1 << bit) for bit in plan.variable_bits)
    looks = []
    for masks in (a, a, a, a, b):
        seen.add(masks)
        looks.append(seen.looked_at() is not None)
    assert looks == [True, True, True, False, True]
