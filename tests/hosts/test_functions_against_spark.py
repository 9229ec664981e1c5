"""Every function, operator and cast of the engine in process against Spark: values, types and failures, row by row."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.hosts.values import EXPRESSIONS, ZONED, values_table

from cepheid.errors import ConditionError, PatternError
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.duckdb_sql import RULES
from cepheid.hosts.fragment import same_kind
from cepheid.hosts.functions import BY_NAME
from cepheid.lang.expression import Call, Expression
from cepheid.lang.sql import parse_expression
from cepheid.plan.plan import Lifted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILED = "failed"
EXPRESSIONS_A_JOB = 60
FAILURES_CHECKED = 1
"""Rows for each expression on which Spark is asked whether it fails too: each costs a query."""


def in_session(spark: SparkSession, zone: str) -> SparkSession:
    """A session of its own: the shared one keeps its settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    # With it Spark evaluates `10 / n` ahead of `n != 0 AND 10 / n > 1` when another column of the query has it as well.
    session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    return session


def lifted(engine: DuckDbEngine, text: str, schema: pa.Schema) -> Lifted:
    expression = parse_expression(text)
    return Lifted(text, expression, engine.type_of(expression, schema))


def in_process(engine: DuckDbEngine, table: pa.Table, column: Lifted) -> list[Any]:
    """The values of an expression; FAILED for rows on which it fails."""
    try:
        (values,) = engine.evaluate(table, values=[column]).values
    except ConditionError:
        if table.num_rows == 1:
            return [FAILED]
        half = table.num_rows // 2
        return in_process(engine, table.slice(0, half), column) + in_process(engine, table.slice(half), column)
    assert values.type == column.type
    return plain(values)


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Times as numbers: Python's own end with the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type == pa.date32() else pa.int64())
    return column.to_pylist()


def on_spark(
    session: SparkSession, table: pa.Table, texts: Sequence[str], failed: Sequence[list[int]]
) -> Iterator[pa.ChunkedArray]:
    """The values of each expression, evaluated only on the rows that did not fail in process."""
    events = as_frame(session, table.append_column("row", pa.array(range(table.num_rows)))).repartition(1)
    for start in range(0, len(texts), EXPRESSIONS_A_JOB):
        part = range(start, min(start + EXPRESSIONS_A_JOB, len(texts)))
        columns = [_where_it_worked(texts[i], failed[i], f"v{i}") for i in part]
        result = events.selectExpr("row", *columns).orderBy("row").toArrow()
        for i in part:
            yield result.column(f"v{i}")


def as_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """The table with naive timestamps as TIMESTAMP_NTZ, which Spark else reads in the session's zone."""
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    frame = session.createDataFrame(table)
    session.conf.unset("spark.sql.timestampType")
    return frame


def _where_it_worked(text: str, failed: list[int], name: str) -> str:
    if not failed:
        return f"{text} AS {name}"
    rows = ", ".join(map(str, failed))
    return f"CASE WHEN row NOT IN ({rows}) THEN {text} END AS {name}"


def fails_on_spark(session: SparkSession, row: pa.Table, text: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        as_frame(session, row).selectExpr(f"{text} AS v").collect()
    except PySparkException:
        return True
    return False


def same(ours: Any, theirs: Any) -> bool:
    """Equal to the bit: NaN is itself, -0.0 is not 0.0."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return (math.isnan(ours) and math.isnan(theirs)) or struct.pack("d", ours) == struct.pack("d", theirs)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


def differences(session: SparkSession, table: pa.Table, texts: Sequence[str], zone: str = "UTC") -> list[str]:
    """What differs between the two, each said in a line."""
    engine = DuckDbEngine(time_zone=zone)
    columns = [lifted(engine, text, table.schema) for text in texts]
    ours = [in_process(engine, table, column) for column in columns]
    failed = [[i for i, value in enumerate(values) if value is FAILED] for values in ours]
    found = []
    for column, mine, bad, theirs in zip(columns, ours, failed, on_spark(session, table, texts, failed), strict=True):
        if same_kind(column.type) != same_kind(theirs.type) and theirs.type != pa.null():
            found.append(f"{column.sql}: type {column.type}, on Spark {theirs.type}")
        spark_values = plain(theirs)
        wrong = [i for i in range(len(mine)) if i not in bad and not same(mine[i], spark_values[i])]
        found += [
            f"{column.sql}: {mine[i]!r}, on Spark {spark_values[i]!r}; {_inputs(column, table, i)}" for i in wrong
        ]
        for i in bad[:FAILURES_CHECKED]:
            if not fails_on_spark(session, table.slice(i, 1), column.sql):
                found.append(f"{column.sql}: fails, not on Spark; {_inputs(column, table, i)}")
    return found


def _inputs(column: Lifted, table: pa.Table, row: int) -> dict[str, Any]:
    names = [name for name in table.schema.names if name in column.sql]
    return {name: table.column(name)[row].as_py() for name in names}


def functions_in(expression: Expression) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*(functions_in(arg) for arg in expression.args))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return values_table()


def test_every_entry_is_as_on_spark(spark: SparkSession, table: pa.Table) -> None:
    """Each function, operator and cast gives Spark's value and type, and fails where Spark fails."""
    assert differences(in_session(spark, "UTC"), table, EXPRESSIONS) == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_time_zones_are_as_on_spark(spark: SparkSession, table: pa.Table, zone: str) -> None:
    """What depends on the session's time zone is Spark's, in hours that occur twice or never as well."""
    assert differences(in_session(spark, zone), table, ZONED, zone) == []


def test_every_entry_is_compared() -> None:
    """No function or operator is in the table without an expression here."""
    compared = set().union(*(functions_in(parse_expression(text)) for text in EXPRESSIONS))
    assert (set(RULES) | set(BY_NAME)) - compared == set()


def test_nested_expressions_are_as_on_spark(spark: SparkSession, table: pa.Table) -> None:
    """Expressions within expressions keep Spark's order of evaluation: what it does not reach does not fail."""
    texts = list(dict.fromkeys(nested_expressions(random.Random(20), 150, table.schema)))
    assert differences(in_session(spark, "UTC"), table, texts) == []


_NESTED: dict[str, list[str]] = {
    "number": [
        "i32",
        "i64",
        "f64",
        "d9",
        "n",
        "2",
        "0",
        "1.5",
        "({number} + {number})",
        "({number} - {number})",
        "({number} * {number})",
        "({number} / {number})",
        "({number} % {number})",
        "abs({number})",
        "-({number})",
        "coalesce({number}, {number})",
        "if({truth}, {number}, {number})",
        "nullif({number}, {number})",
        "CASE WHEN {truth} THEN {number} WHEN {truth} THEN {number} END",
        "greatest({number}, {number})",
        "cast({number} as int)",
        "length({text})",
        "year({day})",
        "datediff({day}, {day})",
    ],
    "truth": [
        "b",
        "({number} > {number})",
        "({number} = {number})",
        "({number} <=> {number})",
        "({truth} AND {truth})",
        "({truth} OR {truth})",
        "(NOT {truth})",
        "({number} IS NULL)",
        "({number} BETWEEN {number} AND {number})",
        "({text} LIKE 'a%')",
        "({text} = {text})",
        "({day} < {day})",
        "(n IN (1, 2, NULL))",
    ],
    "text": ["s", "s2", "'abc'", "substring({text}, n, 2)", "concat({text}, {text})", "if({truth}, {text}, {text})"],
    "day": ["dt", "dt2", "date_add({day}, n)", "cast(ts as date)"],
}


def nested_expressions(source: random.Random, count: int, schema: pa.Schema) -> Iterator[str]:
    """Random expressions that are available in process."""
    engine = DuckDbEngine()
    while count:
        text = _nested("truth" if count % 2 else "number", 4, source)
        try:
            engine.type_of(parse_expression(text), schema)
        except PatternError:
            continue
        count -= 1
        yield text


def _nested(kind: str, depth: int, source: random.Random) -> str:
    text = source.choice([form for form in _NESTED[kind] if depth or "{" not in form])
    while "{" in text:
        start, end = text.index("{"), text.index("}")
        text = text[:start] + _nested(text[start + 1 : end], max(depth - 1, 0), source) + text[end + 1 :]
    return text
