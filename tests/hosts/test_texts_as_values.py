"""Texts next to numbers, times and truth values: in process they are cast as on Spark, and fail where Spark fails."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import ConditionError, Pattern, PatternError, detect
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.literals import DependsOnDay, OnlyOnSpark
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.lifted import Lifted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "i int, b bigint, y tinyint, x double, f float, p decimal(6,2), s string, w string, m boolean, d date, t timestamp"
)
ROW = (
    3,
    5,
    7,
    1.5,
    0.1,
    Decimal("1.50"),
    "5",
    "2024-03-09",
    True,
    date(2024, 3, 9),
    datetime(2024, 3, 9, 17, tzinfo=UTC),
)
EVENTS = pa.table(
    {
        "i": pa.array([3], pa.int32()),
        "b": pa.array([5], pa.int64()),
        "y": pa.array([7], pa.int8()),
        "x": [1.5],
        "f": pa.array([0.1], pa.float32()),
        "p": pa.array([Decimal("1.50")], pa.decimal128(6, 2)),
        "s": ["5"],
        "w": ["2024-03-09"],
        "m": [True],
        "d": [ROW[9]],
        "t": pa.array([ROW[10]], pa.timestamp("us", "UTC")),
    }
)
OPERATIONS = [
    *(f"{column} {operator} '5'" for column, operator in product("ibyxfp", ("=", ">", "<=>", "<>"))),
    *(f"{column} < {text}" for column, text in product("ibyxfp", ("s", "concat(s, '0')"))),
    *(f"{column} IN {texts}" for column, texts in product("ixps", ("('1', '5')", "('3', 5)", "(1.5, '7')"))),
    *(f"{function}({column}, '5')" for function, column in product(("coalesce", "nvl", "nullif", "ifnull"), "ixp")),
    *(f"{left} {operator} {right}" for left, operator, right in product("is", "+-*/%", ("x", "p", "i"))),
    *("i BETWEEN '1' AND '3'", "i BETWEEN '0' AND 2.5", "CASE i WHEN '3' THEN 'x' END", "if(m, i, '7')", "s div 2"),
    *("i + '5'", "p * '5'", "x / '5'", "y % '5'"),
    *("f > '0.1'", "i = ' 3 '", "y > '300'", "i < '3000000000'", "x = 'NaN'", "x < 'inf'", "p = '15e-1'", "x = '1.5d'"),
    *("d = w", "t > w", "t - w > INTERVAL 1 HOUR", "d - '2024-03-01' = INTERVAL 8 DAYS", "coalesce(d, w) = w"),
    *("m = 'true'", "m IN ('no', 'T')", "coalesce(s, 7)", "nullif(s, 5)", "'5' = i", "greatest(s, '7')"),
    *("NOT (i = '4')", "m AND 'true'", "'no' OR m", "sqrt(s)", "power(s, 2)", "round(s)", "floor(s)", "sign(s)"),
    *(
        "month(w)",
        "hour(w)",
        "extract(YEAR FROM w)",
        "extract(HOUR FROM w)",
        "date_format(w, 'yyyy')",
        "trunc(w, 'MM')",
    ),
    *("date_trunc('MONTH', w)", "add_months(w, 1)", "datediff(d, w)", "timestampdiff(HOUR, w, t)", "next_day(w, 'mo')"),
    *("nvl2(m, w, d)", "trim('0' FROM '00' || s)"),
    *("t > '2024-03-09 05'", "d = '2024-03-09 noon'", "t > '2024-03-09 12:00:00 -05:00'"),
]
REFUSED = [
    *("greatest(t, '2026-02-20')", "least(d, w)", "greatest(i, '2')", "greatest(NULL, s, i)", "'1' + '2' = 3"),
    *("s AND w", "w OR s OR m", "timestamp_micros(s)", "unix_date(w)"),
    *("t + '1 day' > t", "INTERVAL 1 DAY > '1 day'"),
]
"""By both."""
UNREAD = [
    "i > 'x'",
    "i > '1.5'",
    "b = ''",
    "x = '1,5'",
    "p > '1_0'",
    "i IN (1, 'x')",
    "t > 'abc'",
    "d = '9 March'",
    "i + 'x' > 1",
]
"""Spark reports these while it runs."""
OF_TODAY = [*("t > 'now'", "d = 'today'", "t < '12:00'", "t > CAST('now' AS TIMESTAMP)", "d = to_date('yesterday')")]
TEXTS = [
    *(
        "5",
        "+5",
        "-5",
        " 5\t",
        "\x7f5",
        "5.0",
        ".5",
        "5.",
        "1e3",
        "1E-400",
        "1e400",
        "0x1p3",
        "\u0665",
        "",
        " ",
        "--5",
        "5 5",
    ),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "128",
        "1d",
        "1F",
        "NaN",
        "+NaN",
        "-nan",
        "nan ",
        "Inf",
        "-INFINITY",
    ),
    *("true", "T", " yes", "1", "0", "n", "False", "on", "tru", "00000000000000000000000000000000000000000000007"),
]
TYPES = {"BIGINT": pa.int64(), "TINYINT": pa.int8(), "INT": pa.int32(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}


def value_in_process(text: str) -> Any:
    expression, engine = parse_expression(text), DuckDbEngine(time_zone="UTC")
    type_ = engine.type_of(expression, EVENTS.schema)
    return engine.evaluate(EVENTS, values=[Lifted(text, expression, type_)]).values[0].to_pylist()[0]


@pytest.mark.spark
def test_values_beside_texts(spark: SparkSession) -> None:
    """Each operation has Spark's value, also in its type."""
    frame = spark.createDataFrame([ROW], COLUMNS)
    (row,) = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(OPERATIONS))).toArrow().to_pylist()
    values = {text: value_in_process(text) for text in OPERATIONS}
    assert {text: (type(value), value) for text, value in values.items()} == {
        text: (type(value), value) for text, value in zip(OPERATIONS, row.values(), strict=True)
    }


@pytest.mark.spark
@pytest.mark.parametrize("text", [*REFUSED, *UNREAD, *OF_TODAY])
def test_what_is_refused_in_process_and_on_spark(text: str, spark: SparkSession) -> None:
    """Before anything runs, also on Spark."""
    pattern = Pattern.begin("a").where(text)
    problems = []
    for events in (EVENTS, spark.createDataFrame([ROW], COLUMNS)):
        with pytest.raises(PatternError) as caught:
            detect(events, pattern, time="t")
        problems.append(caught.value.problems[0].message)
    if text not in REFUSED:
        assert problems[0] == problems[1]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("i > a.i AND a.i > 'x' OR i < greatest(i, a.i) + 'x'", "the text 'x' is not read as BIGINT. Write a number"),
        ("greatest(t, a.t) > 'abc'", "not a timestamp: 'abc'. Write it as '2024-12-31 23:59:59'"),
        ("greatest(t, a.t) > 'now'", "'now' depends on the day on which it is read"),
    ],
)
def test_unread_texts_across_events(condition: str, message: str) -> None:
    """They are named before anything runs."""
    with pytest.raises(PatternError) as caught:
        detect(EVENTS, Pattern.begin("a").next("later").where(condition), time="t")
    assert caught.value.problems[0].message.startswith(message)


def test_each_text_is_named_once() -> None:
    """Where it is written, although what it is in is refused for the same reason."""
    with pytest.raises(PatternError) as caught:
        detect(EVENTS, Pattern.begin("a").where("i > '1.5' AND i > 'x'"), time="t")
    assert [problem.span for problem in caught.value.problems] == [(4, 9), (18, 21)]


def test_a_text_with_a_format() -> None:
    """A format says how the text is read, the same on every day."""
    condition = "to_timestamp('12:1999', 'MM:yyyy') < t"
    assert detect(EVENTS, Pattern.begin("a").where(condition), time="t").num_rows == EVENTS.num_rows


def test_a_text_of_the_data_that_is_no_number() -> None:
    """It fails on the event, as on Spark."""
    with pytest.raises(ConditionError, match=r"the text is not a number in 'i > w' .*, at the event with"):
        detect(EVENTS, Pattern.begin("a").where("i > w"), time="t")


@pytest.mark.spark
def test_constant_texts_are_cast_as_on_spark(spark: SparkSession) -> None:
    """Numbers and truth values."""
    casts = [f"try_cast(t AS {name}) AS {name}" for name in TYPES]
    rows = spark.createDataFrame([(text,) for text in TEXTS], "t string").selectExpr("t", *casts).collect()
    for row, (name, type_) in product(rows, TYPES.items()):
        try:
            value = value_of_text(row["t"], type_)
        except (OnlyOnSpark, DependsOnDay):
            assert row["t"] == "0x1p3"
            continue
        except ValueError:
            value = None
        assert repr(value) == repr(row[name]), (row["t"], name)


@pytest.mark.spark
@pytest.mark.parametrize(
    "condition",
    [
        "s = true",
        "coalesce(s, true)",
        "nvl(s, false)",
        "coalesce(w, 5) > 0",
        "if(b > 0, w, 5) > 0",
        "CASE WHEN b > 0 THEN s ELSE i = 7 END",
        "nvl2(b, w, 5) > 0",
        "NOT s",
        "sqrt(w) > 0",
        "month(w) > 0",
        "datediff(t, w) > 0",
    ],
)
def test_a_cast_text_fails_where_the_condition_is_unknown(condition: str, spark: SparkSession) -> None:
    """Spark evaluates the right side of AND if the left one is NULL, and fails; so it does in process."""
    from pyspark.errors import PySparkException

    columns = "i int, b bigint, s string, w string, t timestamp"
    rows = [(1, 1, "true", "1", ROW[10]), (None, 1, "maybe", "x", ROW[10])]
    text = f"i = 1 AND {condition}"
    events = spark.createDataFrame(rows, columns)
    with pytest.raises(PySparkException):
        events.selectExpr(text).collect()
    with pytest.raises(ConditionError, match="at the event with b = 1"):
        detect(events.toArrow(), Pattern.begin("a").where(text), time="t", key="b")
