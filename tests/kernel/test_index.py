"""How many partial matches an event visits with an index, and when an index is made."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.kernel.running import Row, Visit, run_compiled, run_reference
from tests.kernel.strategies import BOOL, COLUMNS, DOUBLE, INT

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Schema
from cepheid.kernel.stages.layout import PLACE, START_ROW
from cepheid.kernel.stages.lookup.heap import add_up_to, push, take_out
from cepheid.lang.expression import Name
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, Script, StageValue
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.stages.plan import Plan

A, B, UNTIL = 1, 2, 4
X = Operation(Operator.EQUAL, (CurrentValue(0, INT), StageValue(0, 0, INT)), BOOL)
HIGHER = Operation(Operator.LESS, (StageValue(0, 1, DOUBLE), CurrentValue(1, DOUBLE)), BOOL)


def plan_of(pattern: Pattern, script: Script) -> Plan:
    """The first stage takes events with bit A, the second those with bit B for which the script is true."""
    column = Name(("x",), ((0, 1),))
    conditions = (PlannedCondition(0, None), PlannedCondition(1, script), PlannedCondition(2, None))
    return Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "t"),
        bits=tuple(Lifted("x", column, BOOL) for _ in range(3)),
        values=tuple(Lifted("x", column, type_) for type_ in COLUMNS),
        conditions=conditions[: len(pattern.leaves) + len(pattern.loops_until)],
        measures=None,
        columns=(),
        outputs=("matches", "timeouts"),
    )


def rows_of(kinds: list[int], values: list[int]) -> list[Row]:
    return [(i, kind, (v, v / 2, None, None)) for i, (kind, v) in enumerate(zip(kinds, values, strict=True))]


PAIR = Pattern.begin("a").followed_by("b")
ANY = Pattern.begin("a").followed_by_any("b")
TIES = rows_of([A] * 200 + [B] * 200, [*range(200), *range(200)])


def visited(plan: Plan, rows: list[Row], batches: tuple[list[Visit], ...] = (), *, indexed: bool | None = None) -> int:
    counts: list[tuple[int, int, int]] = []
    assert run_compiled(plan, [rows], batches, indexed=indexed, counts=counts) == run_reference(plan, [rows])
    return counts[0][0]


@pytest.mark.parametrize("pattern", [PAIR, ANY])
def test_an_event_visits_candidates(pattern: Pattern) -> None:
    """An event visits only partial matches whose values are equal to its own, once an index pays: after two events
    that visited all.
    """
    plan = plan_of(pattern, X)
    assert visited(plan, TIES, indexed=True) == 200
    assert visited(plan, TIES) == (200 + 199 + 198 if pattern is PAIR else 3 * 200) + 197
    assert visited(plan, TIES, indexed=False) == (sum(range(1, 201)) if pattern is PAIR else 200 * 200)


def test_an_order_visits_one_side() -> None:
    """With an order comparison an event visits only partial matches on one side of its value."""
    rows = rows_of([A] * 200 + [B] * 200, [*range(200), *([3] * 200)])
    assert visited(plan_of(ANY, HIGHER), rows, indexed=True) == 3 * 200
    assert visited(plan_of(ANY, HIGHER), rows, indexed=False) == 200 * 200


def test_deadlines_between_events() -> None:
    """Partial matches in the middle of the order leave the index when the time since their last event is over."""
    pattern = Pattern.begin("a").followed_by("b").within_previous(timedelta(microseconds=50))
    rows = rows_of([A, B] * 200, [i % 7 for i in range(400)])
    assert visited(plan_of(pattern, X), rows, indexed=True) < 300
    assert visited(plan_of(pattern, X), rows, indexed=False) > 600


def test_few_partial_matches() -> None:
    """No index is made for few partial matches, nor for two events in a visit."""
    few = rows_of([A] * 60 + [B] * 20, [*range(60), *range(20)])
    assert visited(plan_of(ANY, X), few) == 60 * 20
    batches = ([Visit(0, 200)], *([Visit(0, 2)] for _ in range(100)))
    assert visited(plan_of(ANY, X), TIES, batches) == 200 * 200


def test_an_event_that_may_end_a_loop_visits_all() -> None:
    """An event that meets an `until` without the tie visits all partial matches in the loop."""
    pattern = Pattern.begin("a").followed_by("b").one_or_more().until("x = 1")
    rows = rows_of([A] * 100 + [B, UNTIL], [*range(100), 3, 0])
    assert visited(plan_of(pattern, X), rows, indexed=True) == 1 + 100


def test_heap() -> None:
    """The heap yields the rows up to a value, whatever was put in and taken out before."""
    random = np.random.default_rng(3)
    places, roots, found = np.zeros(301, PLACE), np.zeros(2, np.int64), np.zeros(301, np.int64)
    keys: dict[int, int] = {}
    for _ in range(3000):
        row = int(random.integers(1, 301))
        if row in keys:
            take_out(places, roots, row)
            del keys[row]
        else:
            keys[row] = int(random.integers(-20, 20))
            push(places, roots, 1, row, keys[row])
        most = int(random.integers(-21, 21))
        assert sorted(_up_to(places, roots, most, found)) == sorted(r for r, key in keys.items() if key <= most)
        assert (roots[1] == START_ROW) == (not keys)


def _up_to(places: np.ndarray, roots: Ints, most: int, found: Ints) -> list[int]:
    return found[: add_up_to(places, roots[1], most, found, 0)].tolist()
