"""Which attributes of earlier events become columns of open partial matches."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.stages.build import plan_or_problems
from cepheid.plan.stages.correlations import correlations
from cepheid.plan.stages.plan import Plan

_TYPES = {
    "t": pa.timestamp("us"),
    "x": pa.int64(),
    "small": pa.int32(),
    "s": pa.string(),
    "a b": pa.string(),
    "city": pa.string(),
}
COLUMNS = pa.schema({**_TYPES, "place": pa.struct({"city": pa.string()}), "k": pa.int64(), "l" * 62: pa.int64()})


def of(pattern: Pattern, promoted: Mapping[str, str] | None = None) -> dict[str, str]:
    schema, engine = Schema(COLUMNS, ("k",), "t"), DuckDbEngine(time_zone="UTC")
    plan = plan_or_problems(PatternRequest(pattern, None, promoted), schema, engine, PlanOptions(), sound=True)
    assert isinstance(plan, Plan), plan
    return correlations(plan)


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("x = A.x", {"a_x": "`A`.`x`"}),
        ("x = A.X AND s = A.s AND x > 3", {"a_x": "`A`.`x`", "a_s": "`A`.`s`"}),
        ("x = A.small", {"a_small": "`A`.`small`"}),
        ("s = A.place.city", {"a_place_city": "`A`.`place`.`city`"}),
        ("s = A.`a b`", {"a_a b": "`A`.`a b`"}),
        ("x = b.x", {"b_x": "`b`.`x`"}),
        ("k = A.k", {}),
        ("x > A.x", {}),
        ("x = first(A.x)", {}),
        ("x = last(A.x, 1)", {}),
        ("x = max(A.x)", {}),
        ("s = lower(A.s)", {}),
        ("x = A.x OR s = A.s", {}),
        (f"x = A.{'l' * 62}", {}),
    ],
)
def test_columns_of_a_condition(condition: str, columns: dict[str, str]) -> None:
    """An attribute of the last event of a stage that an equality demands is a column, if it is no key."""
    assert of(Pattern.begin("A").where("x > 0").followed_by("b").where(condition)) == columns


def test_conditions_of_all_stages() -> None:
    """Later stages and negations add their own; each attribute is one column."""
    pattern = Pattern.begin("a").followed_by("b").where("x = a.x").not_followed_by("n").where("x = a.x AND s = b.s")
    assert [*of(pattern.followed_by("c").where("s = b.s AND small = b.small"))] == ["a_x", "b_s", "b_small"]


def test_promoted_attributes_and_taken_names() -> None:
    """An attribute that is promoted is no further column, and none gets the name of another column."""
    pattern = Pattern.begin("a").followed_by("b").where("x = a.x AND s = a.s AND small = a.small")
    assert [*of(pattern, {"other": "a.x", "A_S": "a.small", "sum": "a.x + 1"})] == []
    one = Pattern.begin("a").followed_by("a_place").followed_by("c")
    assert of(one.where("s = a.place.city AND s = a_place.city")) == {"a_place_city": "`a`.`place`.`city`"}
