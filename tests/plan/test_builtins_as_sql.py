"""SWRL's built-ins as SQL hold for the events for which the definition says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.searching import share

from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.knowledge.events.literals import literals
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom, parsed
from cepheid.knowledge.terms import Literal
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.lifted import Lifted
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.lifted import Lifting
from knowledge.literal_filters import KNOWN, MAPPING, NAME, filters, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_definition(events: pa.Table, names: Sequence[str], atoms: Sequence[Atom]) -> list[bool]:
    columns = [literals(events.column(name).combine_chunks()) for name in names]
    rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return [None not in row.values() and _holds(atoms, row) for row in rows]


def _holds(atoms: Sequence[Atom], row: dict[str, Literal | None]) -> bool:
    known = {name: literal for name, literal in row.items() if literal is not None}
    return next(solutions(atoms, KNOWN.closure, known), None) is not None


def as_sql(events: pa.Table, names: Sequence[str], text: str) -> str:
    atoms = parsed(" ∧ ".join([*(f"{name}(?e, ?{name})" for name in names), text]), {"": NAME})
    lifting = Lifting(KNOWN, MAPPING, events.schema)
    sql = lifting.condition(atoms, {"e": ""})
    if lifting.questions:
        raise NotLifted("asked once for each value")
    return sql


def evaluated(events: pa.Table, sql: str, zone: str = "UTC") -> list[bool]:
    lifted = Lifted(sql, parse_expression(sql), pa.bool_())
    (mask,) = DuckDbEngine(time_zone=zone).evaluate(events, bits=[lifted]).masks
    return [bool(one) for one in mask]


@share(400)
@given(tables(), filters(), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_sql_equals_definition(events: pa.Table, filter_: tuple[list[str], str], zone: str) -> None:
    """SQL is true exactly where the built-ins hold, and never fails; in any zone."""
    names, text = filter_
    try:
        sql = as_sql(events, names, text)
    except NotLifted as reason:
        note(f"not lifted: {reason}"[:40])
        return
    note("constant" if sql in ("TRUE", "FALSE") else "lifted")
    expected = by_definition(events, names, parsed(text, {"": NAME}))
    assert evaluated(events, sql, zone) == expected, sql


@pytest.mark.spark
@settings(max_examples=3)
@given(tables(), st.lists(filters(), min_size=60, max_size=60))
def test_on_spark(spark: SparkSession, events: pa.Table, filters_: list[tuple[list[str], str]]) -> None:
    """Spark's results are those of the definition, too."""
    lifted, expected = list[str](), list[list[bool]]()
    for names, text in filters_:
        try:
            lifted.append(as_sql(events, names, text))
        except NotLifted:
            continue
        expected.append(by_definition(events, names, parsed(text, {"": NAME})))
    texts = [f"coalesce({sql}, FALSE) AS c{number}" for number, sql in enumerate(lifted)]
    local = "CAST(local AS TIMESTAMP_NTZ) AS local"  # Spark reads times without a zone as TIMESTAMP
    frame = spark.createDataFrame(events).selectExpr("* EXCEPT (local)", local)
    rows = frame.orderBy("number").selectExpr(*texts).collect()
    found = [[row[number] for row in rows] for number in range(len(lifted))]
    wrong = [(sql, *pair) for sql, *pair in zip(lifted, found, expected, strict=True) if pair[0] != pair[1]]
    assert not wrong
