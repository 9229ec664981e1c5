"""Evaluates expressions in process and by Spark on the same rows: values, types, and the rows on which each fails."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import ConditionError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.duckdb.fragment import same_kind
from cepheid.hosts.duckdb.functions.table import BY_NAME
from cepheid.lang.expression import Call, Expression
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.lifted import Lifted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPRESSIONS_A_JOB = 100
MOST_ULPS = 2
FAILURES_CHECKED = 6
"""Rows for each expression that fail on Spark and are evaluated alone in process: each costs a query."""


@dataclass(frozen=True)
class Outcome:
    """What Spark gives for an expression, row by row."""

    values: pa.ChunkedArray
    """NULL where it fails."""
    failed: tuple[int, ...]
    """The rows on which it fails."""


def in_session(spark: SparkSession, zone: str) -> SparkSession:
    """A separate session with this time zone, so that the shared one keeps its settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    # Otherwise Spark computes `pairs[0].t` below the shuffle, also for rows that a CASE leaves out, and fails on them.
    session.conf.set("spark.sql.optimizer.nestedSchemaPruning.enabled", "false")
    session.conf.set("spark.sql.optimizer.expression.nestedPruning.enabled", "false")
    return session


def differences(session: SparkSession, table: pa.Table, texts: Sequence[str], zone: str = "UTC") -> list[str]:
    """The differences between the two, one line each."""
    engine = DuckDbEngine(time_zone=zone)
    columns = [_lifted(engine, text, table.schema) for text in texts]
    outcomes = on_spark(session, table, texts)
    pairs = zip(columns, outcomes, strict=True)
    return [difference for column, outcome in pairs for difference in _differences(engine, table, column, outcome)]


def _lifted(engine: DuckDbEngine, text: str, schema: pa.Schema) -> Lifted:
    expression = parse_expression(text)
    return Lifted(text, expression, engine.type_of(expression, schema))


def refused_on_spark(session: SparkSession, table: pa.Table, texts: Sequence[str]) -> list[str]:
    """The expressions that Spark does not analyze. Nothing runs."""
    return _refused(_as_frame(session, table.slice(0, 1)), texts)


def _refused(frame: DataFrame, texts: Sequence[str]) -> list[str]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        frame.selectExpr(*(f"{text} AS v{i}" for i, text in enumerate(texts))).schema  # noqa: B018 - it analyzes
    except (PySparkException, Py4JError):  # Spark fails with internal errors, too
        middle = len(texts) // 2
        return _refused(frame, texts[:middle]) + _refused(frame, texts[middle:]) if middle else list(texts)
    return []


def on_spark(session: SparkSession, table: pa.Table, texts: Sequence[str]) -> Iterator[Outcome]:
    """Spark's outcome of each expression, in two queries for many: first which rows fail, then the
    values on the others.
    """
    events = _as_frame(session, table.append_column("row", pa.array(range(table.num_rows))))
    for start in range(0, len(texts), EXPRESSIONS_A_JOB):
        part = texts[start : start + EXPRESSIONS_A_JOB]
        failed = _failed_rows(events, part)
        # Repartitioned once, so that Spark compiles the expressions, as it does for events; it interprets constants.
        yield from _outcomes(events.repartition(1), part, failed)


def _failed_rows(events: DataFrame, texts: Sequence[str]) -> list[tuple[int, ...]]:
    columns = [_alone(_whether_it_works(text), i) for i, text in enumerate(texts)]
    result = events.selectExpr("row", *columns).orderBy("row").toArrow()
    works = [result.column(f"v{i}").to_pylist() for i in range(len(texts))]
    return [tuple(row for row, worked in enumerate(rows) if not worked) for rows in works]


def _whether_it_works(text: str) -> str:
    """try_add of intervals is NULL where anything within it fails; the hash is never NULL."""
    seconds = f"cast(hash({text}\n) AS decimal(18, 6))"
    return f"try_add(make_dt_interval(0, 0, 0, 0), make_dt_interval(0, 0, 0, {seconds})) IS NOT NULL"


def _outcomes(events: DataFrame, texts: Sequence[str], failed: Sequence[tuple[int, ...]]) -> Iterator[Outcome]:
    columns = [_alone(text, i, rows) for i, (text, rows) in enumerate(zip(texts, failed, strict=True))]
    result = events.selectExpr("row", *columns).orderBy("row").toArrow()
    for i, rows in enumerate(failed):
        yield Outcome(result.column(f"v{i}"), rows)


def _alone(text: str, i: int, without: Sequence[int] = ()) -> str:
    """A column of the expression, computed as if it were the only one of the query.

    Spark computes common parts of several columns first, even where AND or OR would not evaluate them: `10 / n` before
    `n != 0 AND 10 / n > 1`. It does not do so inside a CASE without ELSE. All conditions differ, since CASEs that are
    equal except for the order of AND would also be computed once.
    """
    rows = ", ".join(map(str, (*without, -i - 1)))
    return f"CASE WHEN row NOT IN ({rows}) THEN {text}\n END AS v{i}"


def _as_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """The table with naive timestamps as TIMESTAMP_NTZ, which Spark would otherwise read in the session's zone."""
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    frame = session.createDataFrame(table)
    session.conf.unset("spark.sql.timestampType")
    return frame


def _differences(engine: DuckDbEngine, table: pa.Table, column: Lifted, spark: Outcome) -> Iterator[str]:
    if same_kind(column.type) != same_kind(spark.values.type) and spark.values.type != pa.null():
        yield f"{column.sql}: type {column.type}, on Spark {spark.values.type}"
    rows = [row for row in range(table.num_rows) if row not in spark.failed]
    ulps = 0 if is_exact(column.expression) else MOST_ULPS
    theirs = _plain(spark.values)
    for row, mine in zip(rows, _in_process(engine, table, rows, column), strict=True):
        far = isinstance(mine, ConditionError) and _is_far(theirs[row], spark.values.type)
        if not (_same(mine, theirs[row], ulps) or _is_refused(mine) or far):
            yield f"{column.sql}: {mine!r}, on Spark {theirs[row]!r}; {_inputs(column, table, row)}"
    step = max(1, len(spark.failed) // FAILURES_CHECKED)
    for row in spark.failed[::step]:
        (mine,) = _in_process(engine, table, [row], column)
        if not isinstance(mine, ConditionError):
            yield f"{column.sql}: {mine!r}, fails on Spark; {_inputs(column, table, row)}"


def _in_process(engine: DuckDbEngine, table: pa.Table, rows: Sequence[int], column: Lifted) -> list[Any]:
    """The values of an expression, with its error for the rows on which it fails."""
    try:
        (values,) = engine.evaluate(table.take(pa.array(rows, pa.int64())), values=[column]).values
    except ConditionError as error:
        if len(rows) < 2:
            return [error] * len(rows)
        half = len(rows) // 2
        return [v for part in (rows[:half], rows[half:]) for v in _in_process(engine, table, part, column)]
    assert values.type == column.type
    return _plain(values)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Times as numbers, since Python's own end with the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type == pa.date32() else pa.int64())
    return list(column.to_pylist())


def _is_refused(value: Any) -> bool:
    """Whether a value is one that only Spark computes, which an error says."""
    return isinstance(value, ConditionError) and "available on Spark" in str(value)


def _is_far(value: Any, type_: pa.DataType) -> bool:
    """Whether a time is outside the years 1 to 9999, in which times lie in process."""
    unit = 1 if type_ == pa.date32() else 86_400_000_000
    first, last = -719_162 * unit, 2_932_897 * unit
    return pa.types.is_temporal(type_) and value is not None and not first <= value < last


def is_exact(expression: Expression) -> bool:
    """Whether the expression has only functions that give Spark's result to the last bit."""
    if not isinstance(expression, Call):
        return True
    ways = BY_NAME.get(expression.function, ())
    return all(way.is_exact for way in ways) and all(map(is_exact, expression.args))


def _same(ours: Any, theirs: Any, ulps: int) -> bool:
    """Whether both are equal to the bit, or up to some units in the last place: NaN equals itself, -0.0 differs from
    0.0.
    """
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs) or math.isinf(ours) or math.isinf(theirs):
            return struct.pack("d", ours) == struct.pack("d", theirs) or (math.isnan(ours) and math.isnan(theirs))
        return abs(ours - theirs) <= ulps * math.ulp(theirs) and math.copysign(1, ours) == math.copysign(1, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_same(a, b, ulps) for a, b in zip(ours, theirs, strict=True))
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


def _inputs(column: Lifted, table: pa.Table, row: int) -> dict[str, Any]:
    names = [name for name in table.schema.names if name in column.sql]
    return {name: table.column(name)[row].as_py() for name in names}
