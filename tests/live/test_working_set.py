"""The kernel's arrays describe the same events as the Arrow data, whatever was added and forgotten before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import Pattern
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.events.batch import EVENT_PREFIX, MASK, ORDINAL, TIME, VALUE_PREFIX, Batch, Schema
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.arrays import NO_TIME, Visits
from cepheid.matchers.stages.detector import Detector
from cepheid.matchers.working_set import WorkingSet
from cepheid.plan.stages.build import build_plan

COLUMNS = pa.schema({"at": pa.timestamp("us", "UTC"), "u": pa.string(), "v": pa.string(), "x": pa.int64()})
SCHEMA = Schema(COLUMNS, (), "at")
Row = tuple[str | None, str | None, int | None]
NAMES = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", "\uffff", "z"])
ROWS = st.lists(st.tuples(NAMES, NAMES, st.none() | st.integers(-9, 9)), max_size=9)


def compiled(condition: str) -> CompiledPattern:
    pattern = Pattern.begin("a").followed_by("b").where(condition)
    return compile_plan(build_plan(pattern, SCHEMA, DuckDbEngine()))


EQUAL = compiled("u = a.v AND v <> a.v AND x > a.x AND u <> 'b'")
ORDERED = compiled("u < a.v AND v <> a.v AND x > a.x AND u <> 'b'")


def test_which_patterns_need_the_order_of_strings() -> None:
    """The order is needed by patterns that compare strings with < or >, or take a minimum or maximum of strings."""
    asked = ["u >= a.v", "least(u, a.u) = 'b'", "x > a.x AND NOT (u <= a.u)", "min(a.u) = u", "u BETWEEN a.u AND a.v"]
    assert all(compiled(condition).orders_texts for condition in asked)
    others = ["u = a.v", "x < a.x", "u IN (a.u, a.v)", "max(a.x) < x AND u <=> a.u", "coalesce(a.u, u) = v"]
    assert not any(compiled(condition).orders_texts for condition in others)


def batch(pattern: CompiledPattern, rows: list[Row], first: int) -> Batch:
    """Events, one per microsecond, starting at `first`."""
    place = {str(lifted.sql): i for i, lifted in enumerate(pattern.plan.values)}
    values = {f"{VALUE_PREFIX}{place[name]}": [row[i] for row in rows] for i, name in enumerate("uvx")}
    types = {name: pattern.plan.values[int(name.removeprefix(VALUE_PREFIX))].type for name in values}
    times = pa.array(range(first, first + len(rows)), pa.int64()).cast(TIME_TYPE)
    chosen = {f"{EVENT_PREFIX}{name}": pa.nulls(len(rows), COLUMNS.field(name).type) for name in "uvx"}
    return Batch(
        pa.record_batch(
            {
                TIME: times,
                MASK: pa.array([0] * len(rows), pa.int64()),
                **{name: pa.array(values[name], types[name]) for name in sorted(values)},
                f"{EVENT_PREFIX}at": times,
                **chosen,
                ORDINAL: pa.array([0] * len(rows), pa.int32()),
            }
        )
    )


@pytest.mark.parametrize("pattern", [EQUAL, ORDERED], ids=["equal", "ordered"])
@given(steps=st.lists(st.tuples(ROWS, st.none() | st.integers(0, 255)), min_size=1, max_size=12))
def test_arrays(
    pattern: CompiledPattern,
    steps: list[tuple[list[Row], int | None]],
) -> None:
    """Batches are added, and sometimes only some events are retained: strings compare in the same way as their
    codes.
    """
    working_set = WorkingSet(pattern)
    plain: list[tuple[int, Row]] = []
    added = 0
    for rows, kept in steps:
        working_set.add(batch(pattern, rows, added))
        plain += [(added + i, row) for i, row in enumerate(rows)]
        added += len(rows)
        _check(pattern, working_set, plain)
        if kept is not None:
            places = [i for i in range(len(plain)) if kept >> i % 8 & 1]
            working_set.keep(np.array(places, np.int32))
            plain = [plain[i] for i in places]
            _check(pattern, working_set, plain)


def _check(
    pattern: CompiledPattern,
    working_set: WorkingSet,
    plain: list[tuple[int, Row]],
) -> None:
    count = len(plain)
    assert len(working_set) == count
    every_second = np.arange(0, count, 2, dtype=np.int32)
    times = [time for time, _ in plain]
    assert working_set.take(every_second).column(TIME).cast(pa.int64()).to_pylist() == times[::2]
    events = working_set.events
    assert events.time[:count].tolist() == times
    place = {str(lifted.sql): i for i, lifted in enumerate(pattern.plan.values)}
    for i, name in enumerate("uvx"):
        assert events.missing[place[name], :count].tolist() == [row[i] is None for _, row in plain]
    assert [int(n) for n, (_, row) in zip(events.values[place["x"]], plain, strict=False)] == [
        row[2] or 0 for _, row in plain
    ]
    cells = {
        (row[i], int(events.values[place[name], at]))
        for at, (_, row) in enumerate(plain)
        for i, name in enumerate("uv")
        if row[i] is not None
    }
    constants = {(text, int(pattern.tables.constants[at])) for at, text in pattern.string_constants.items()}
    for text, code in cells | constants:
        for other, other_code in cells | constants:
            assert (text == other) == (code == other_code)
            assert not pattern.orders_texts or (text < other) == (code < other_code)


def test_events_in_use_keep_their_positions() -> None:
    """Unused events are forgotten in bulk, when there are many of them, not at every step."""
    pattern = compiled("u <=> a.v AND v <=> a.u AND x > a.x")
    detector = Detector(pattern)
    lengths = []
    for first in range(0, 10_000, 100):
        visits = Visits(np.zeros(1, np.int32), np.array([100]), np.array([NO_TIME]), np.zeros(1, np.bool_))
        rows: list[Row] = [(None, None, i) for i in range(first, first + 100)]
        (found,) = detector.step(batch(pattern, rows, first), visits)
        assert found.num_rows == 100 - (first == 0)
        lengths.append(len(detector.working_set))
    assert lengths[:41] == [*range(100, 4100, 100), 1]
    assert max(lengths) < 4100
