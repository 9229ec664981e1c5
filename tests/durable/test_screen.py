"""Simple conditions are judged without a query, exactly as DuckDB judges them; and no pattern that is concerned is left
out of a step.
"""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import Pattern
from cepheid.errors import ConditionError, EventError
from cepheid.host import open_host
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.step.screen import Screen, cells_of, comparisons_of, masks_of, only_comparisons
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.lang.stages.pattern import Pattern as StagesPattern
from cepheid.requests.request_of import request_of

SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("key", pa.string())),
        *(("n", pa.int32()), ("x", pa.float64()), ("s", pa.string()), ("flag", pa.bool_())),
    ]
)
ROWS = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from([-1.5, 0.0, -0.0, 1.0, 2.5, math.nan, math.inf]),
    st.none() | st.sampled_from(["a", "b", "A", ""]),
    st.none() | st.booleans(),
)
SIMPLE = st.sampled_from(
    [
        *("n = 1", "1 = n", "n >= 0", "0 < n", "n != 1", "N <= -1", "n IN (1, 2)", "2 >= n"),
        *("x = 0", "x > 1", "x >= 2.5", "x < 1e0", "x != 2.5", "x IN (0, 1.0, 2.5)", "1 < x"),
        *("s = 'a'", "s IN ('a', 'b')", "'b' = s"),
    ]
)
OTHERS = st.sampled_from(["flag", "s > 'a'", "n + 1 = 2", "NOT n = 1", "s IS NULL", "n = 1 OR x > 1", "n = x"])


def pattern(first: str, second: str) -> StagesPattern:
    return Pattern.begin("a", name="p").where(first).followed_by("b").where(second).within("1 hour")


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = [*zip(*rows, strict=True)] or [()] * 4
    count = len(rows)
    times = pa.array([*range(count)], pa.int64()).cast(SCHEMA.field("at").type)
    given = [pa.array(range(count), pa.int64()), times, pa.array(["k"] * count, pa.string())]
    given += [pa.array([*values], field.type) for values, field in zip(columns, [*SCHEMA][3:], strict=True)]
    return pa.table(given, schema=SCHEMA)


CONDITIONS = st.lists(SIMPLE | OTHERS, min_size=1, max_size=3).map(" AND ".join)


@given(
    st.lists(st.lists(SIMPLE, min_size=1, max_size=3).map(" AND ".join), min_size=2, max_size=2),
    st.lists(ROWS),
    st.integers(0, 3),
)
def test_simple_conditions_as_in_duckdb(conditions: list[str], rows: list[tuple[object, ...]], relevant: int) -> None:
    """The masks without a query are those of DuckDB, also for NULL, NaN and negative zero."""
    engine, events = DuckDbEngine(), table(rows)
    plan = plans_in_process(SCHEMA, request_of(pattern(*conditions), time="at", key=("key",)), engine).only
    tests = only_comparisons(plan)
    assert tests is not None
    (expected,) = engine.evaluate(events, bits=plan.bits).masks
    every, masks = masks_of(tests, None, cells_of(events))
    assert every is None
    assert masks.tolist() == expected.tolist()
    some, masks = masks_of(tests, relevant, cells_of(events))
    wanted = [(row, mask) for row, mask in enumerate(expected.tolist()) if mask & relevant]
    assert some is not None
    assert [*zip(some.tolist(), masks.tolist(), strict=True)] == wanted


@given(st.lists(st.tuples(CONDITIONS, CONDITIONS), min_size=1, max_size=4), st.lists(ROWS, min_size=1, max_size=6))
def test_no_concerned_pattern_is_left_out(conditions: list[tuple[str, str]], rows: list[tuple[object, ...]]) -> None:
    """Each pattern for which some event has a relevant bit is among the concerned ones."""
    engine, events, tests, relevant = DuckDbEngine(), table(rows), [], set()
    for number, both in enumerate(conditions):
        plan = plans_in_process(SCHEMA, request_of(pattern(*both), time="at", key=("key",)), engine).only
        tests.append(comparisons_of(plan, (3,)))
        if any((mask & 3).any() for mask in engine.evaluate(events, bits=plan.bits).masks):
            relevant.add(number)
    assert relevant <= Screen(tests).concerned(events)


def test_conditions_that_fail_are_always_evaluated(tmp_path: Path) -> None:
    """A condition that fails on an event fails the feed, although a simple part of it excludes the event."""
    with open_host(f"duckdb:///{tmp_path}/events.duckdb") as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(pattern("CAST(s AS INT) = 1 AND n = 7", "n = 8"), input="events", key="key")
        with pytest.raises(ConditionError, match="CAST"):
            host.feed(table([(1, 1.0, "a", True)]), input="events")


def test_events_without_a_key_are_refused(tmp_path: Path) -> None:
    """An event without a key is refused, also if it concerns no pattern."""
    with open_host(f"duckdb:///{tmp_path}/events.duckdb") as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(pattern("n = 7", "n = 8"), input="events", key="key")
        events = table([(1, 1.0, "a", True)])
        keyless = events.set_column(2, SCHEMA.field("key"), pa.array([None], pa.string()))
        with pytest.raises(EventError, match="NULL in the key"):
            host.feed(keyless, input="events")
