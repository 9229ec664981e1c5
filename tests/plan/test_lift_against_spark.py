"""A condition split into lifted columns and a script gives what Spark gives for the whole condition."""

# ruff: noqa: E501 -- a table of conditions

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid.errors import Problem
from cepheid.events.batch import Schema
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.expression import Expression
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = "id int, n int, b bigint, x double, f float, p decimal(6,2), s string, d date, t timestamp, u timestamp_ntz, m boolean"
_T = datetime(2024, 3, 1, 12, tzinfo=UTC)
_U = _T.replace(tzinfo=None)
ROWS = [
    (0, 1, 2**53 + 1, 0.5, 0.1, Decimal("1.50"), "a", date(2024, 1, 1), _T, _U, True),
    (1, 0, 2**53, float("nan"), 2.5, Decimal("-3.25"), "B", date(2023, 5, 6), _T + timedelta(hours=3), _U, False),
    (2, -7, -5, -0.0, float("nan"), Decimal("0.00"), "é", None, None, _U + timedelta(days=1), None),
    (3, None, None, None, None, None, None, date(2024, 1, 1), _T, None, True),
    (
        5,
        2,
        9,
        1.5,
        0.25,
        Decimal("2.00"),
        "7",
        date(2024, 3, 9),
        datetime(2024, 3, 9, 17, tzinfo=UTC),
        datetime(2024, 3, 9, 12),  # noqa: DTZ001
        True,
    ),
    (
        6,
        5,
        4,
        2.5,
        4.5,
        Decimal("3.00"),
        "8",
        date(2024, 3, 10),
        datetime(2024, 3, 10, 16, 30, tzinfo=UTC),
        datetime(2024, 3, 10, 12),  # noqa: DTZ001
        False,
    ),
    (
        7,
        4,
        4,
        2.5,
        4.5,
        Decimal("3.00"),
        "true",
        date(2018, 11, 4),
        datetime(2018, 11, 4, 5, tzinfo=UTC),
        datetime(2018, 11, 4, 3),  # noqa: DTZ001
        True,
    ),
    (4, 3, 7, 0.0, -1.5, Decimal("9999.99"), "10", None, _T - timedelta(microseconds=1), _U, False),
]
CONDITIONS = [
    *(
        "n > one.n",
        "n <> one.n and m",
        "b = one.b",
        "x = one.x",
        "x < one.x or m",
        "f > one.f",
        "p * 1.1 > one.p",
        "s = one.s",
    ),
    *(
        "s < one.s",
        "d >= one.d",
        "t - one.t < interval 2 hours",
        "u > one.u - interval '1' day",
        "n <=> one.n",
        "not (m = one.m)",
    ),
    *("n between one.n and 3", "n in (one.n, 3, null)", "n not in (one.n, 3)", "case when m then n else one.n end > 0"),
    *("case n when one.n then 1 when 3 then 2 end is null", "coalesce(n, one.n) = 1", "nullif(n, one.n) is null"),
    *(
        "abs(n) > one.n * 2",
        "least(n, one.n, 1) = greatest(n, one.n)",
        "n is null and one.n is not null",
        "p + one.p > n",
    ),
    *(
        "n + one.n * 2 > 3",
        "p > one.n",
        "x > one.p",
        "p - one.p < 1.555",
        "upper(s) = upper(one.s)",
        "-n < -one.n",
        "one.m or n > 1",
    ),
    *(
        "n <> 0 and one.n / n > 0",
        "n <> 0 and one.n div n > 0",
        "n <> 0 and one.n % n = 0",
        "s = '10' and cast(s as int) > one.n",
    ),
    *(
        "one.s = '10' and cast(one.s as int) > n",
        "not (n > 0 and one.n > 0)",
        "cast(n as double) > one.x",
        "p % 2 = one.p % 2",
    ),
    *(
        "if(m, n, one.n) = 1",
        "cast(n - one.n as bigint) > b",
        "n = 1 or one.n = 0 and m",
        "p * p > one.p",
        "p / 3 > one.p",
    ),
    *(
        "concat(s, one.s) = 'aB'",
        "s || '-' || one.n = 'a--7'",
        "upper(concat(s, one.s)) like '%B_'",
        "concat(s, '%') like one.s || '_'",
        "length(concat(s, one.s)) between 2 and 3",
        "substring(concat(s, one.s), -1, 1) = s",
        "substr(s || one.s, 2) = left(one.s || s, 1)",
        "right(concat(one.s, s, 'x'), n) = 'x'",
        "startswith(concat(s, 'z'), one.s)",
        "endswith(one.s, s) or contains(one.s, s)",
        "instr(s || one.s, '0') > n",
        "locate(s, one.s) = position(one.s in s)",
        "replace(concat(s, one.s), one.s, '') = s",
        "lower(reverse(s || one.s)) = trim(concat(' ', one.s, lower(s), ' '))",
        "case when n > one.n then s else one.s end ilike 'b'",
        "'2024-03-05' - one.d > interval 1 day",
        "id > one.id + 100 and one.s + interval 1 day > s",
        "id > one.id + 100 and d - one.s > interval 1 day and one.s + 1 > n",
        "id = 7 and m and s and one.m",
        "id = 7 and not trim(s) or one.m",  # not `s`, which Spark would cast once for both conditions, and for all rows
        "id = 5 and sqrt(coalesce(s, one.s)) > 2 and round(greatest(s, '3')) > one.id",
        "id > one.id and nvl2(n, one.n, n) > 1",
        "id = 4 and datediff(one.d, '2024-01-05') > n",
        "hour(coalesce(t, one.t)) = 12",
        "hour(greatest(t, one.t)) = 15",
        "year(least(d, one.d)) = 2023",
        "date_trunc('day', greatest(one.u, u)) > '2024-03-01'",
        "sin(greatest(x, one.x)) = sin(x)",
        "cos(least(x, one.x)) = 1",
        "ascii(greatest(s, one.s)) > 96",
        "year(case when m then d else one.d end) = 2024",
        "date_format(if(one.m, t, one.t), 'HH') > '11'",
        "nvl(one.t, t) is null or month(nvl(one.u, u)) = 3",
        "md5(case n when one.n then s when 3 then one.s end) is null",
    ),
    *(
        "t < one.d + interval 1 day",
        "t < add_months(one.d, 2)",
        "u < one.d + interval 2 months",
        "greatest(d, one.d) + interval 1 month > d",
        "t > least(d, one.d) + interval 1 day",
        "u < greatest(t, one.t) + interval 1 month",
        "t < greatest(u, one.u) - interval 1 month or n > one.n",
        "least(t, one.t) + interval 1 day > greatest(d, one.d) + interval 26 hours",
        "case when m then d else one.d end + interval 2 months >= d",
        "coalesce(d, one.d) + 3 > coalesce(t, one.t) - interval 1 day",
        "t - one.u < interval 1 day",
        "d - one.t < one.u - d",
    ),
    *(
        "t - one.d > interval 2 hours",
        "one.d - t < interval '-2' hour",
        "t - coalesce(one.d, d) > one.t - d",
        "u - one.d > interval 3 hours or d - one.u > interval 3 hours",
        "timestampdiff(hour, one.d, t) > 1",
        "timestampdiff(minute, one.u, t) < timestampdiff(minute, u, one.t)",
        "timestampdiff(hour, coalesce(one.d, d), greatest(t, one.t)) >= 2",
        "datediff(greatest(t, one.t), one.d) > 0",
    ),
    *(
        "one.m = cast(m as string)",
        "m in (one.m, 'f') or cast(one.m as string) < m",
        "coalesce(one.m, cast(m as string)) and n > one.n",
        "nullif(one.m, 'true') is null and n > one.n",
        "abs(cast(one.n as string)) > n",
        "-cast(n as string) < one.n",
        "one.t < cast(d as string) + interval 1 day",
        "d <= cast(one.d as string) + interval 30 hours",
        "n > one.n and t > '2024-03-01' - interval 1 hour",
    ),
    *(
        "month(cast(one.t as string)) > n",
        "hour(cast(one.u as string)) > n or minute(cast(one.t as string)) = n",
        "last_day(cast(one.d as string)) >= d and dayofmonth(cast(one.d as string)) > n",
        "weekofyear(cast(one.t as string)) + dayofyear(cast(one.d as string)) + dayofweek(cast(t as string)) > n",
        "quarter(cast(one.t as string)) + weekday(cast(one.u as string)) + second(cast(one.t as string)) > n",
        "one.s = '7' and year(concat('202', one.s)) > 2026 and n > one.n",
        "case when one.n > 4 then month(concat('202', one.s, '-05-01')) = n else n > one.n end",
        "one.n + '1' > n",
        "n > '0' or one.n <= '3'",
        "n between one.n and '3'",
        "n in (one.n, '3')",
        "x > '0.25' and one.x >= '-1d'",
        "one.x = ' NaN' or one.p > '1.5'",
        "p = one.p or one.p = '1.50'",
        "f > '0.1' and one.f < '+INF'",
        "coalesce(n, one.n, '7') > 2",
        "if(m, one.n, '5') = 5",
        "case one.n when '1' then n else '2' end = 2",
        "nullif(greatest(n, one.n), '1') is null",
        "cast(n as string) + one.n > 3",
        "one.n * 1.5 > cast(n as string)",
        "cast(u as string) < one.t",
        "t - '2024-03-01' > one.t - t",
        "one.t > '2024-03-01 10' and n > one.n",
        "one.d = '2024-01-01 17:00' or n > one.n",
        "one.d > '2023-05-06Tx' and n > one.n",
        "one.u > '2024-03-01 11:00:00Z' and n > one.n",
        "one.t > '2024-03-01 05:00:00. -07:00' and n > one.n",
    ),
    *(
        "floor(x - one.x) = 0",
        "ceil(p - one.p) > 1",
        "floor(p + one.p) = floor(p)",
        "round(p - one.p, 1) = p - one.p",
        "round(x / 3 + one.p) > 1",
        "round(n * 0.675 + one.n * 2, 2) <> one.n",
        "sign(n - one.n) < 0",
        "signum(x - one.x) = sign(p - one.p)",
        "ceiling(n / (one.n + 0.5D)) > 1",
        "floor(b - one.b) = 0",
        "round(n - one.n, 2) = 2",
    ),
    *(
        "one.t > '2024-03-01 10:00:00'",
        "one.t >= '2024-03' or n > one.n",
        "one.d = '2024-01-01' or t < one.t",
        "one.u between '2024-03-01 12:00:00' and u",
        "greatest(t, one.t) >= '2024-03-01T15:00:00Z'",
        "least(d, one.d) in ('2023-05-06', '2024-01-01')",
        "coalesce(one.t, t, '2024-01-01') < t",
        "case one.d when '2024-01-01' then d else one.d end > '2023-12-31'",
        "nullif(greatest(d, one.d), '2024-01-01') is null",
        "s = '10' and greatest(n, one.n) > s",
        "d > one.t or one.d <= t or u > one.d",
        "d >= one.d + interval 1 day",
        "t > one.d + interval 5 hours",
        "one.d - interval '2' day < d",
        "one.d + 100 > d",
        "d - one.d > interval 10 days",
        "t - one.d > one.t - d",
        "t < one.t + interval 1 month",
        "one.u - interval '1-2' year to month < u",
        "one.t + null is null and n > one.n",
    ),
]
OF_UTC = ["d + (one.t - t) < one.t", "greatest(d, one.d) + (one.t - t) < t", "t - greatest(one.t, u) < interval 1 day"]
"""Conditions that are refused where the session's clock changes."""


class SparkTypes:
    name = "Spark"

    def __init__(self, frame: DataFrame, zone: str) -> None:
        self._frame = frame
        self.time_zone = zone

    def types_of(
        self, questions: Sequence[tuple[Expression, str]], columns: pa.Schema
    ) -> Sequence[pa.DataType | Problem]:
        assert columns.names == self._frame.columns
        return list(_arrow_schema(self._frame.selectExpr(*(sql for _, sql in questions))).types)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from cepheid.hosts.spark.engine import arrow_schema

    return arrow_schema(frame.schema)


def _encoded(value: Any, type_: pa.DataType) -> Any:
    """The value as scripts represent it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return int(value.scaleb(type_.scale))
    return pa.scalar(value, type_).cast(pa.int32() if type_ == pa.date32() else pa.int64()).as_py()


def _values(frame: DataFrame, sqls: Sequence[str]) -> list[list[Any]]:
    """The expressions' values for every event, ordered by id."""
    table = frame.orderBy("id").selectExpr(*(f"{sql} as c{i}" for i, sql in enumerate(sqls))).toArrow()
    columns = [[_encoded(v, c.type) for v in c.to_pylist()] for c in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


class _Event:
    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)


def _split(plan: Plan, events: Sequence[dict[str, Any]]) -> list[bool]:
    """Whether the second stage's condition is true, for every pair of events; `events` have a value
    for each lifted text.
    """
    condition = plan.conditions[1]
    result = []
    for one in events:
        taken = [(0, _Event([one[value.sql] for value in plan.values]))]
        for current in events:
            true = condition.bit is None or current[plan.bits[condition.bit].sql] is True
            if true and condition.script is not None:
                true = evaluate(condition.script, taken, [current[value.sql] for value in plan.values]) is True
            result.append(true)
    return result


@pytest.fixture(params=["UTC", "America/New_York", "America/Sao_Paulo"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """A zone of the session, whose clock changes between some of the times."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_split_equals_whole(spark: SparkSession, zone: str) -> None:
    """For every pair of events, a split condition is true exactly where Spark says that the whole one is."""
    frame = spark.createDataFrame(ROWS, COLUMNS)
    schema, engine = Schema(_arrow_schema(frame), (), "t"), SparkTypes(frame, zone)
    conditions = CONDITIONS + OF_UTC * (zone == "UTC")
    plans = [build_plan(Pattern.begin("one").next("two").where(c), schema, engine) for c in conditions]
    lifted = list(dict.fromkeys(c.sql for plan in plans for c in (*plan.values, *plan.bits)))
    events = [dict(zip(lifted, values, strict=True)) for values in _values(frame, [f"({sql})" for sql in lifted])]
    pairs = frame.selectExpr("id as one_id", "struct(*) as one").crossJoin(frame)
    whole = pairs.orderBy("one_id", "id").selectExpr(*(f"({c}) as c{i}" for i, c in enumerate(conditions))).toArrow()
    differing = {}
    for condition, plan, column in zip(conditions, plans, whole.columns, strict=True):
        expected = [value is True for value in column.to_pylist()]
        if (got := _split(plan, events)) != expected:
            differing[condition] = [(i // len(ROWS), i % len(ROWS)) for i, g in enumerate(got) if g != expected[i]]
    assert differing == {}
