"""Generated calls in process and on Spark: values, types and failures. `make functions` compares all of them, in three
time zones; otherwise a part is compared.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.hosts.comparison import differences, in_session, refused_on_spark
from tests.hosts.generated import NAMES, all_calls, samples, some_calls
from tests.hosts.values import values_table

from cepheid.errors import PatternError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.duckdb.functions.on_spark import ON_SPARK
from cepheid.lang.expression import Call
from cepheid.lang.sql.parser import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = "CEPHEID_ALL_CALLS" in os.environ
ZONES = ("UTC", "America/New_York", "Europe/Berlin") if ALL else ("America/New_York",)
TABLE = values_table(rows=300 if ALL else 60)
BETWEEN_ARGUMENTS = {"position_from", "substr_from", "substring_from", "trim_from", "timestampadd", "timestampdiff"}
"""Functions that are in Spark's grammar alone."""


def available(calls: list[str], zone: str) -> list[str]:
    """The calls that are available in process and give a value that Spark can hash, which a map is not."""
    engine = DuckDbEngine(time_zone=zone)
    found = []
    for call in calls:
        try:
            type_ = str(engine.type_of(parse_expression(call), TABLE.schema))
        except PatternError:
            continue
        found += [] if "map" in type_ or "month" in type_ else [call]
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.timeout(7200 if ALL else 600)
def test_generated_calls_are_as_on_spark(spark: SparkSession, zone: str) -> None:
    """Whatever is available in process is available on Spark, with the same value and type, and fails on the same
    rows.
    """
    session = in_session(spark, zone)
    calls = available(all_calls() if ALL else some_calls(), zone)
    assert refused_on_spark(session, TABLE, calls) == []
    assert differences(session, TABLE, calls, zone) == []


@pytest.mark.spark
def test_the_list_of_spark_functions_is_that_of_spark(spark: SparkSession) -> None:
    """Each function that a message says is on Spark is there, and so is each one that is available in process."""
    on_spark = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    functions = {
        expression.function
        for name in NAMES
        if isinstance(expression := parse_expression(samples(name)[0]), Call) and name.isidentifier()
    }
    assert sorted(ON_SPARK - on_spark) == []
    assert functions & ON_SPARK


@pytest.mark.parametrize("name", NAMES)
def test_each_function_has_calls_that_are_compared(name: str) -> None:
    """The sample calls of each function are available."""
    engine = DuckDbEngine()
    for call in samples(name):
        engine.type_of(parse_expression(call), TABLE.schema)
