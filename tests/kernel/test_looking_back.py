"""Earlier events of `begin_without` in the compiled kernel."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
from tests.kernel.running import Row, Visit, run_compiled, run_reference
from tests.kernel.strategies import BOOL, COLUMNS, INT

from cepheid import detect
from cepheid.events.batch import Schema
from cepheid.lang.expression import Name
from cepheid.lang.stages.pattern import BeginWithout, Condition, Pattern
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, StageValue
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.stages.plan import Plan

START, BEFORE = 1, 2
SECOND = 1_000_000
SAME_VALUE = Operation(Operator.EQUAL, (CurrentValue(0, INT), StageValue(0, 0, INT)), BOOL)


def test_many_visits_of_a_key_in_one_run() -> None:
    """Each visit stores the earlier events of its key again, and there is room for all of them."""
    column = Name(("x",), ((0, 1),))
    plan = Plan(
        pattern=Pattern(
            stages=Pattern.begin("a").stages,
            without=BeginWithout("before", Condition("x"), timedelta(microseconds=1000)),
        ),
        schema=Schema(pa.schema([]), (), "t"),
        bits=tuple(Lifted("x", column, BOOL) for _ in range(2)),
        values=tuple(Lifted("x", column, type_) for type_ in COLUMNS),
        conditions=(PlannedCondition(0, None), PlannedCondition(1, SAME_VALUE)),
        measures=None,
        columns=(),
        outputs=("matches",),
    )
    rows: list[Row] = [(i, START | BEFORE, (i % 190, None, None, None)) for i in range(200)]
    found = run_compiled(plan, [rows], [[Visit(0, 1, time_advances=False)] * 200])
    assert found == run_reference(plan, [rows])
    assert not isinstance(found, str)
    assert len(found.matches) == 190


def test_many_keys() -> None:
    """Room is made for the events of each key, not for those of other keys again."""
    count = 60_000
    kinds = np.where(np.arange(2 * count) % 2, "b", "a")
    at = pa.array(np.arange(2 * count) * SECOND, pa.timestamp("us", "UTC"))
    events = pa.table({"k": np.arange(2 * count) // 2, "at": at, "kind": kinds, "v": np.zeros(2 * count, np.int64)})
    pattern = (
        Pattern.begin("b").where("kind = 'b'").begin_without("a", within="1 minute", where="kind = 'a' AND v >= b.v")
    )
    assert len(detect(events, pattern, key="k", time="at")) == 0
    assert len(detect(events, Pattern.begin("b").where("kind = 'b'"), key="k", time="at")) == count
