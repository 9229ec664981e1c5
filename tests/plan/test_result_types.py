"""Types of operators: compared with Spark's own, over all pairs of types."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.plan.operator_engine import type_of_expression

from cepheid.errors import PatternError
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.result_types import fold_type
from cepheid.plan.conditions.script import Fold
from cepheid.plan.conditions.types import sql_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "m": (pa.bool_(), "boolean"),
    "i8": (pa.int8(), "tinyint"),
    "i16": (pa.int16(), "smallint"),
    "i32": (pa.int32(), "int"),
    "i64": (pa.int64(), "bigint"),
    "f": (pa.float32(), "float"),
    "d": (pa.float64(), "double"),
    "d42": (pa.decimal128(4, 2), "decimal(4,2)"),
    "d180": (pa.decimal128(18, 0), "decimal(18,0)"),
    "d3810": (pa.decimal128(38, 10), "decimal(38,10)"),
    "s": (pa.string(), "string"),
    "dt": (pa.date32(), "date"),
    "ts": (pa.timestamp("us", "Europe/Berlin"), "timestamp"),
    "ntz": (pa.timestamp("us"), "timestamp_ntz"),
    "iv": (pa.duration("us"), "interval day to second"),
}


def type_name(text: str) -> str:
    return sql_name(type_of_expression(parse_expression(text), lambda name: COLUMNS[name.parts[0]][0]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32 + 1", "INT"),
        ("i8 + i8", "TINYINT"),
        ("i32 / 2", "DOUBLE"),
        ("i32 * 1.1", "DECIMAL(13, 1)"),
        ("i64 * 1.1", "DECIMAL(23, 1)"),
        ("d42 * 2", "DECIMAL(6, 2)"),
        ("d42 / d42", "DECIMAL(11, 7)"),
        ("f + i32", "DOUBLE"),
        ("ts - ts", "INTERVAL DAY TO SECOND"),
        ("ts + interval 1 day", "TIMESTAMP"),
        ("ntz - interval 1 hour", "TIMESTAMP_NTZ"),
        ("dt < ts", "BOOLEAN"),
        ("case when m then i32 else d42 end", "DECIMAL(12, 2)"),
        ("coalesce(dt, ntz)", "TIMESTAMP_NTZ"),
        ("case i32 when 1 then 'a' end", "STRING"),
        ("least(i32, i64, null)", "BIGINT"),
        ("i32 in (1, 2.5)", "BOOLEAN"),
        ("cast(s as decimal(5, 1))", "DECIMAL(5, 1)"),
    ],
)
def test_type(text: str, expected: str) -> None:
    """Operators give the type that Spark 4 gives in ANSI mode."""
    assert type_name(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("i32 + m", "'+' cannot be applied to INT and BOOLEAN", (0, 7)),
        ("m and i32", "AND takes BOOLEAN, this is INT", (6, 9)),
        ("i32 = dt", "cannot compare INT with DATE", (0, 8)),
        ("case when i32 then 1 end", "WHEN takes BOOLEAN, this is INT", (10, 13)),
        ("coalesce(i32, dt, 1)", "coalesce needs values of one type, got INT, DATE", (9, 19)),
        ("- m", "'-' cannot be applied to BOOLEAN", (2, 3)),
        ("abs(dt)", "abs cannot be applied to DATE", (4, 6)),
        ("iv - s", "'-' cannot be applied to INTERVAL DAY TO SECOND and STRING", (0, 6)),
        ("nullif(i32)", "nullif takes 2 arguments, got 1", (0, 11)),
        ("abs(i32, 1)", "abs takes 1 argument, got 2", (0, 11)),
        ("-iv < 1", "cannot compare INTERVAL DAY TO SECOND with INT", (0, 7)),
    ],
)
def test_refused(text: str, message: str, span: tuple[int, int]) -> None:
    """Operands of the wrong types are reported with their types and position."""
    with pytest.raises(PatternError) as error:
        type_name(text)
    (problem,) = error.value.problems
    assert (problem.message, problem.span) == (message, span)


def test_folds() -> None:
    """Sums are BIGINT, DOUBLE or a decimal of 18 digits; averages are DOUBLE or a decimal with four more digits;
    variances are DOUBLE.
    """
    assert [fold_type(Fold.SUM, t) for t in (pa.int8(), pa.float32(), pa.decimal128(4, 2))] == [
        pa.int64(),
        pa.float64(),
        pa.decimal128(18, 2),
    ]
    assert [fold_type(Fold.AVG, t) for t in (pa.int64(), pa.decimal128(4, 2))] == [pa.float64(), pa.decimal128(8, 6)]
    assert [fold_type(Fold.SUM, pa.string()), fold_type(Fold.AVG, pa.decimal128(15, 0))] == [None, None]
    assert [fold_type(Fold.STDDEV, t) for t in (pa.decimal128(38, 2), pa.string())] == [pa.float64(), None]
    assert [fold_type(Fold.DISTINCT, t) for t in (pa.string(), pa.list_(pa.int8()))] == [pa.int64(), None]


def _binary_texts() -> Iterator[str]:
    forms = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} div {}", "{} % {}", "{} = {}", "{} < {}", "{} <=> {}")
    calls = ("coalesce({}, {})", "least({}, {})", "case when m then {} else {} end", "{} in ({})", "nullif({}, {})")
    for form, a, b in itertools.product(forms + calls, COLUMNS, COLUMNS):
        yield form.format(a, b)
    for form, a in itertools.product(
        ("{} + 1", "{} * 1.1", "{} * 10L", "{} / 2", "{} % 7", "1 - {}", "{} + -1"), COLUMNS
    ):
        yield form.format(a)
    for form, a in itertools.product(("-{}", "abs({})", "{} - interval 1 day", "{} between 1 and 2"), COLUMNS):
        yield form.format(a)


@pytest.mark.spark
@pytest.mark.slow
def test_types_are_sparks(spark: SparkSession) -> None:
    """Any type that Cepheid gives is that of Spark, for every operator and pair of types."""
    from pyspark.errors import AnalysisException

    frame = spark.createDataFrame([], ", ".join(f"{name} {sql}" for name, (_, sql) in COLUMNS.items()))
    typed = {}
    for text in _binary_texts():
        try:
            typed[text] = type_name(text).lower().replace(", ", ",")
        except PatternError:
            continue  # Cepheid may refuse what Spark accepts
    assert len(typed) > 1200
    differing = {}
    try:
        schema = frame.selectExpr(*typed).schema
        given = [field.dataType.simpleString() for field in schema]
    except AnalysisException as error:
        pytest.fail(f"Spark refuses what we accept: {error}")
    for (text, ours), sparks in zip(typed.items(), given, strict=True):
        if sparks != ours and not (sparks == "interval day" and ours.startswith("interval")):
            differing[text] = (ours, sparks)
    assert differing == {}
