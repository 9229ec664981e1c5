"""Every function, operator and cast of the engine in process compared with Spark: values, types and
failures, row by row.
"""

from __future__ import annotations

from datetime import date, datetime, time
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.hosts.comparison import differences, in_session, on_spark
from tests.hosts.expressions import EXPRESSIONS, ZONED
from tests.hosts.generated import NAMES, samples
from tests.hosts.values import values_table

from cepheid.hosts.duckdb.functions.table import BY_NAME
from cepheid.hosts.duckdb.lists import IN_LIST
from cepheid.hosts.duckdb.translate import RULES
from cepheid.lang.expression import Call, Expression
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.used_columns import names_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SAO_PAULO = "America/Sao_Paulo"
"""Its clock was set from 0:00 to 1:00 on 4 November 2018."""

_NUMBERS = tuple(f"CAST({name} AS INT)" for name in "xyz")
_TEXTS = tuple(f"CAST({number} AS STRING)" for number in _NUMBERS)
_DAYS = tuple(f"date_add(DATE'2024-01-01', {number})" for number in _NUMBERS)
IN_ORDER = {
    "{} = {}; {} + {}; {} / {}; {} % {}; {} div {}; {} & {}; {} BETWEEN {} AND {}; {} IN ({}, {})": _NUMBERS,
    "pow({}, {}); pmod({}, {}); nanvl({}, {}); shiftleft({}, {}); make_date({}, {}, {}); nullif({}, {})": _NUMBERS,
    "coalesce({}, {}, {}); coalesce({0}, {2}) + coalesce({1}, {2}); nvl2({}, {}, {}); greatest({}, {})": _NUMBERS,
    "try_divide({}, {}); try_mod({}, {}); array_contains(array({}), {}); array_position(array({}), {})": _NUMBERS,
    "get(array({}), {}); try_element_at(array({}), {}); timestampadd(HOUR, {}, TIMESTAMP'2024-01-01')": _NUMBERS,
    "trim(BOTH {} FROM {}); trim(LEADING {} FROM {}); trim(TRAILING {} FROM {}); startswith({}, {})": _TEXTS,
    "concat_ws({}, {}, {}); replace({}, {}, {}); translate({}, {}, {}); locate({}, {})": _TEXTS,
    "position({} IN {}); instr({}, {}); contains({}, {}); endswith({}, {})": _TEXTS,
    "locate({}, {}, {}); position({}, {}, {})": (*_TEXTS[:2], _NUMBERS[2]),
    "substring({}, {}, {}); left({}, {}); repeat({}, {}); lpad({}, {}, '0'); rpad({}, {})": (_TEXTS[0], *_NUMBERS[1:]),
    "{} - {}; datediff({}, {}); timestampdiff(DAY, {}, {})": _DAYS,
    "{} + {}; date_sub({}, {}); add_months({}, {})": (_DAYS[0], *_NUMBERS[1:]),
}
"""Forms of calls of functions with several arguments, each of which can fail or be NULL, and the arguments. Without
`concat`: where Spark interprets it, as it does to find the rows that fail, it evaluates all arguments.
"""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return values_table()


@pytest.mark.spark
@pytest.mark.slow
def test_every_entry_is_as_on_spark(spark: SparkSession, table: pa.Table) -> None:
    """Each function, operator and cast gives Spark's value and type, and fails where Spark fails."""
    assert differences(in_session(spark, "UTC"), table, EXPRESSIONS) == []


@pytest.mark.spark
def test_arguments_are_evaluated_in_the_order_of_spark(spark: SparkSession) -> None:
    """An argument that fails does so where Spark comes to it. For most functions that is not after a NULL. `locate`
    evaluates its position first, and gives 0 if that is NULL.
    """
    rows = [dict(zip("xyz", values, strict=True)) for values in product(("2", "x", None), repeat=3)]
    table = pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in "xyz"]))
    calls = [form.format(*arguments) for forms, arguments in IN_ORDER.items() for form in forms.split("; ")]
    assert differences(in_session(spark, "UTC"), table, calls) == []


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_time_zones_are_as_on_spark(spark: SparkSession, table: pa.Table, zone: str) -> None:
    """Results that depend on the session's time zone equal Spark's, also in hours that occur twice or never."""
    assert differences(in_session(spark, zone), table, ZONED, zone) == []


@pytest.mark.spark
def test_midnights_that_are_skipped(spark: SparkSession) -> None:
    """A DATE beside a TIMESTAMP is the first time of the day, and beside a TIMESTAMP_NTZ midnight."""
    days = [date(2018, 11, 3), date(2018, 11, 4), date(2018, 11, 5)]
    clocks = [datetime.combine(day, time(3, 30)) for day in days]
    columns = {"dt": days, "ts": pa.array(clocks, pa.timestamp("us", "UTC")), "ntz": clocks}
    texts = [text for text in ZONED if not {"ts2", "clock"} & {*names_in(parse_expression(text))}]
    assert differences(in_session(spark, SAO_PAULO), pa.table(columns), texts, SAO_PAULO) == []


@pytest.mark.spark
def test_the_comparison_finds_each_row_that_fails(spark: SparkSession) -> None:
    """Failures are found row by row, and expressions do not affect each other."""
    rows = pa.table({"n": pa.array([0, 2, None, 20], pa.int32())})
    texts = ["10 / n > 1", "n != 0 AND 10 / n > 1", "10 / n > 1 AND n != 0", "n != 0 AND 10 / n > 1 AND 10 / n < 5"]
    outcomes = list(on_spark(in_session(spark, "UTC"), rows, texts))
    assert [outcome.failed for outcome in outcomes] == [(0,), (), (0,), ()]
    assert outcomes[1].values.to_pylist() == [False, True, None, False]


def test_every_entry_is_compared() -> None:
    """Each function and operator in the table has an expression here, or generated calls."""
    texts = [*EXPRESSIONS, *(call for name in NAMES for call in samples(name))]
    compared = set().union(*(_functions_in(parse_expression(text)) for text in texts))
    # A long list becomes IN_LIST.
    assert (set(RULES) | set(BY_NAME)) - compared == {IN_LIST}


def _functions_in(expression: Expression) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*(_functions_in(arg) for arg in expression.args))
