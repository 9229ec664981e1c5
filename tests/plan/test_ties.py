"""Which comparisons of a condition are ties: they relate the current event to events taken before."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.explain import script_text
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import ties_of

SCHEMA = Schema(
    pa.schema({"t": pa.timestamp("us"), "x": pa.int64(), "small": pa.int32(), "p": pa.float64(), "s": pa.string()}),
    (),
    "t",
)


def plan_of(condition: str) -> Plan:
    pattern = Pattern.begin("a").where("x > 0").followed_by("b").where(condition)
    return build_plan(pattern, SCHEMA, DuckDbEngine(time_zone="UTC"))


def written(plan: Plan) -> list[str]:
    return [script_text(tie.comparison_script, plan) for tie in ties_of(plan)]


@pytest.mark.parametrize(
    ("condition", "ties"),
    [
        ("x = a.x", ["x = a.x"]),
        ("a.x = x", ["a.x = x"]),
        ("x > 1 AND x = a.x AND s = a.s", ["x = a.x", "s = a.s"]),
        ("upper(s) = lower(a.s)", ["(upper(s)) = a.(lower(s))"]),
        ("small = a.x", ["cast(small AS int64) = a.x"]),
        ("p > a.p * 3", ["a.(p * 3) < p"]),
        ("x > a.x * 3", ["(a.x * 3) < x"]),
        ("x BETWEEN a.x AND first(a.x) + 9", ["a.x <= x", "x <= (first(a.x) + 9)"]),
        ("x = b.x", ["x = b.x"]),
        ("x = max(a.x)", ["x = max(a.x)"]),
        ("x = a.x OR s = a.s", []),
        ("NOT x = a.x", []),
        ("x != a.x", []),
        ("x <=> a.x", []),
        ("x - a.x = 0", []),
        ("x + a.x = a.x", []),
        ("a.x = 3", []),
        ("x = 3", []),
    ],
)
def test_ties_of_a_condition(condition: str, ties: list[str]) -> None:
    """Ties are the AND-ed comparisons =, <, <=, > and >= of a value of the current event with one of earlier events."""
    assert written(plan_of(condition)) == ties


def test_a_part_that_can_fail_before_a_tie() -> None:
    """A tie is certain if no part of the condition that is evaluated before it can fail."""
    assert [tie.certain for tie in ties_of(plan_of("x = a.x AND x - a.x < 3 AND s = a.s"))] == [True, False]
    assert [tie.certain for tie in ties_of(plan_of("x = a.x AND s = a.s AND x - a.x < 3"))] == [True, True]


def test_columns_and_stages() -> None:
    """A tie names its lifted columns, if both sides are columns as they are, and the stages of the earlier side."""
    plan = plan_of("x = a.x AND small = a.x AND s = upper(a.s) AND p = first(a.p)")
    plain, cast, upper, first = ties_of(plan)
    names = [value.sql for value in plan.values]
    assert plain.columns == (names.index("x"), names.index("x"))
    assert cast.columns is None
    assert upper.columns == (names.index("s"), names.index("upper(s)"))
    assert first.columns is None
    assert {tie.stages for tie in (plain, cast, upper, first)} == {frozenset({0})}
    assert [tie.condition for tie in (plain, cast, upper, first)] == [1, 1, 1, 1]


def test_begin_without_has_no_ties() -> None:
    """The condition of begin_without compares an earlier event with a later one, which is not a tie."""
    pattern = Pattern.begin("a").begin_without("n", where="x = a.x", within="1 hour").followed_by("b").where("x = a.x")
    plan = build_plan(pattern, SCHEMA, DuckDbEngine(time_zone="UTC"))
    assert written(plan) == ["x = a.x"]
