"""Random nested expressions, in process and on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.hosts.comparison import differences, in_session
from tests.hosts.values import values_table

from cepheid.errors import PatternError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.sql.parser import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = values_table()
ENGINE = DuckDbEngine()
DEPTH = 3
FORMS: dict[str, tuple[str, ...]] = {
    "number": (
        *("i32", "i64", "f64", "d9", "n", "2", "0", "1.5"),
        *("({number} + {number})", "({number} - {number})", "({number} * {number})"),
        *("({number} / {number})", "({number} % {number})", "abs({number})", "-({number})"),
        *("coalesce({number}, {number})", "if({truth}, {number}, {number})", "nullif({number}, {number})"),
        *("CASE WHEN {truth} THEN {number} WHEN {truth} THEN {number} END", "greatest({number}, {number})"),
        *("cast({number} as int)", "length({text})", "year({day})", "datediff({day}, {day})"),
    ),
    "truth": (
        *("b", "({number} > {number})", "({number} = {number})", "({number} <=> {number})"),
        *("({truth} AND {truth})", "({truth} OR {truth})", "(NOT {truth})", "({number} IS NULL)"),
        *("({number} BETWEEN {number} AND {number})", "({text} LIKE 'a%')", "({text} = {text})"),
        *("({day} < {day})", "(n IN (1, 2, NULL))"),
    ),
    "text": ("s", "s2", "'abc'", "substring({text}, n, 2)", "concat({text}, {text})", "if({truth}, {text}, {text})"),
    "day": ("dt", "dt2", "date_add({day}, n)", "cast(ts as date)"),
}
"""For each type, ways to write an expression; {…} stands for one of that type."""


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = DEPTH) -> str:
    forms = FORMS[kind] if depth else [form for form in FORMS[kind] if "{" not in form]
    before, *holes = draw(st.sampled_from(forms)).split("{")
    parts = [hole.split("}") for hole in holes]
    return before + "".join(draw(expressions(inner, depth - 1)) + after for inner, after in parts)


def is_available(text: str) -> bool:
    try:
        ENGINE.type_of(parse_expression(text), TABLE.schema)
    except PatternError:
        return False
    return True


AVAILABLE = st.one_of(expressions("truth"), expressions("number")).filter(is_available)


# Not shrunk: the message shows the one expression that differs, and each shrinking step would be a query.
@pytest.mark.spark
@pytest.mark.slow
@settings(max_examples=6, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(texts=st.lists(AVAILABLE, min_size=30, max_size=30, unique=True))
def test_nested_expressions_are_as_on_spark(spark: SparkSession, texts: list[str]) -> None:
    """Nested expressions have Spark's order of evaluation: a part that Spark does not evaluate does not fail."""
    assert differences(in_session(spark, "UTC"), TABLE, texts) == []
