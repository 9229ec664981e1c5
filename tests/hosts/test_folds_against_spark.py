"""Variances, numbers of different values and functions of numbers across events are those of Spark."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import Pattern, Skip, detect
from cepheid.kernel.scripts.reference import evaluate
from cepheid.plan.conditions.script import ConstantValue, Operation, Operator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LENGTHS = (1, 2, 3, 10, 70, 300)
"""The events of each key. More than `FEW` of them are folded in another way."""
MEASURES = {
    "stddev": "stddev(s.x)",
    "stddev_pop": "stddev_pop(s.n)",
    "variance": "var_samp(s.n)",
    "var_pop": "var_pop(s.p)",
    "of_odd": "stddev(CASE WHEN s.n % 2 = 1 THEN s.x END)",
    "numbers": "count(DISTINCT s.x)",
    "texts": "count(DISTINCT s.t)",
    "dearest": "max_by(s.t, s.n)",
    "cheapest": "min_by(s.n, s.p)",
    "all": "array_agg(s.t)",
    "listed": "collect_list(s.n)",
}


def events() -> pa.Table:
    source = random.Random(7)
    rows: list[dict[str, Any]] = [
        {
            "k": key,
            "at": datetime(2026, 3, 2, tzinfo=UTC) + timedelta(seconds=second),
            "x": source.choice([source.gauss(1e6, 1), -0.0, 0.0, 1e300 if key == 4 else 1.5, None]),
            "n": source.choice([*range(5), None]),
            "p": source.choice([Decimal("1.10"), Decimal("9999999999999999.99"), Decimal("0.01"), None]),
            "t": source.choice(["a", "b", "é", "", None]),
        }
        for key, length in enumerate(LENGTHS)
        for second in range(length)
    ]
    rows[5]["x"] = float("nan")
    types = {"p": pa.decimal128(18, 2), "n": pa.int32()}
    table = pa.Table.from_pylist(rows)
    return table.cast(pa.schema([pa.field(f.name, types.get(f.name, f.type)) for f in table.schema]))


def of_groups(spark: SparkSession, table: pa.Table) -> list[dict[str, Any]]:
    """Spark's aggregates of each key, over its events in order."""
    spark.createDataFrame(table).coalesce(1).sortWithinPartitions("k", "at").createOrReplaceTempView("folded")
    found: list[dict[str, Any]] = [{} for _ in LENGTHS]
    for distinct in (False, True):  # apart, as DISTINCT changes the order in which Spark reads the rows
        names = [name for name, text in MEASURES.items() if ("DISTINCT" in text) is distinct]
        columns = [f"{MEASURES[name].replace('s.', '')} AS {name}" for name in names]
        rows = spark.sql(f"SELECT {', '.join(columns)} FROM folded GROUP BY k ORDER BY k").toArrow().to_pylist()
        found = [before | row for before, row in zip(found, rows, strict=True)]
    return [{name: row[name] for name in MEASURES} for row in found]


def test_measures_are_those_of_spark(spark: SparkSession) -> None:
    """To the last digit, in short and long matches, of numbers of all types; running measures end with them."""
    table = events()
    longest = Pattern.begin("s").one_or_more().consecutive().longest().skip(Skip.past_last_event())
    expected = list(map(repr, of_groups(spark, table)))
    found = detect(table, longest, key="k", time="at", measures=MEASURES).sort_by("k")
    assert [repr({name: row[name] for name in MEASURES}) for row in found.to_pylist()] == expected
    each = detect(table, longest, key="k", time="at", rows_per="event", measures=MEASURES).to_pylist()
    last = {row["k"]: repr({name: row[name] for name in MEASURES}) for row in sorted(each, key=lambda row: row["at"])}
    assert [last[key] for key in range(len(LENGTHS))] == expected


def test_conditions_compare_what_measures_show() -> None:
    """In a condition a fold has the value that it has in a measure, to the last digit."""
    table = events()
    longest = Pattern.begin("s").one_or_more().consecutive().longest().skip(Skip.past_last_event())
    folded = detect(table, longest, key="k", time="at", measures=MEASURES).sort_by("k").to_pylist()
    for key, name in product(range(1, len(LENGTHS)), [*MEASURES][:7]):
        mine = table.filter(pa.array([row == key for row in table["k"].to_pylist()]))
        count, expected = len(mine), folded[key][name]
        last = mine.slice(count - 1).set_column(1, "at", pa.array([datetime(2026, 3, 3, tzinfo=UTC)]))
        folds = pa.array([None] * count + [expected], pa.float64())
        marked = pa.concat_tables([mine, last]).append_column("fold", folds)
        pattern = (
            Pattern.begin("s").times(count).consecutive().next("z").where(f"fold <=> CAST({MEASURES[name]} AS DOUBLE)")
        )
        assert len(detect(marked, pattern, key="k", time="at")) == 1, name


def test_functions_of_numbers_are_those_of_spark(spark: SparkSession) -> None:
    """Roots are exact; exponentials, logarithms and powers may differ by two units in the last place."""
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, 10.0, 1e-300, 1e300, 709.9, -0.1, 1e16 + 2, 7.3, 0.999]
    numbers += [math.inf, -math.inf, math.nan]
    pairs = [*product(numbers, numbers)]
    left, right = zip(*pairs, strict=True)
    frame = spark.createDataFrame(pa.table({"i": [*range(len(pairs))], "a": left, "b": right}))
    unary = {"sqrt": Operator.SQRT, "exp": Operator.EXP, "ln": Operator.LN, "log10": Operator.LOG10}
    texts = [f"{name}(a) AS {name}" for name in unary]
    rows = frame.selectExpr("i", *texts, "power(a, b) AS power").orderBy("i").toArrow().to_pylist()
    for (a, b), row in zip(pairs, rows, strict=True):
        for name, operator in unary.items():
            assert is_near(value_of(operator, a), row[name], 0 if name == "sqrt" else 2), (name, a)
        assert is_near(value_of(Operator.POWER, a, b), row["power"], 2), (a, b)


def value_of(operator: Operator, *operands: float) -> float | None:
    script = Operation(operator, tuple(ConstantValue(value, pa.float64()) for value in operands), pa.float64())
    value: float | None = evaluate(script, (), ())
    return value


def is_near(value: float | None, other: float | None, units: int) -> bool:
    """Whether two values differ by so many units in the last place at most."""
    if value is None or other is None or not math.isfinite(other):
        return repr(value) == repr(other)
    return abs(value - other) <= units * math.ulp(other)
