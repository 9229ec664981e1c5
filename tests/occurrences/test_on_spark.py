"""On Spark an occurrence pattern gives what it gives in process."""

from __future__ import annotations

import random
import re
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import OccurrencePattern, Report, detect
from occurrences.shop import START, shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

MANY = """
    Dear = ?p:Buy[p.price > 4]
    ((?l:Login; (?w:(Dear & Logout))) -[f.price = l.price] ?f:Fail) | ((Login + 20s; Logout)_30s - Buy)
"""


def log(count: int) -> pa.Table:
    random_ = random.Random(3)
    types = ["Login", "Buy", "Logout", "Fail"]
    rows = [
        (random_.randrange(count), random_.choice(types), random_.choice("abcde"), random_.randrange(9))
        for _ in range(count)
    ]
    return shop([(second, type_, user, price) for second, type_, user, price in rows])


def rows(matches: Any) -> list[str]:
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(map(repr, arrow.to_pylist()))


@pytest.mark.parametrize(
    ("policy", "measures"),
    [("unrestricted", None), ("recent", {"m": "l.price + 1", "since": "start(w)", "n": "l.user"})],
)
@pytest.mark.filterwarnings("ignore:policy")
def test_equal_in_process(spark: SparkSession, policy: str, measures: dict[str, str] | None) -> None:
    """Several keys with ties give the same rows, ids included."""
    events = log(120)
    pattern = OccurrencePattern.of(MANY).taxonomy("type").policy(policy)
    report = Report()
    arguments: dict[str, Any] = {"time": "at", "key": "user", "measures": measures, "as_of": START.replace(minute=2)}
    expected = detect(events, pattern, **arguments)
    found = rows(detect(spark.createDataFrame(events), pattern, report=report, **arguments))
    assert found == rows(expected)
    assert report.counts.matches == len(found) > 10


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": ["user"]},
        {"measures": {"many": {"m": "l.price + 1", "n": "l.user"}, "dear": {"n": "d.user"}}, "outputs": "matches"},
    ],
)
def test_several_are_equal_in_process(spark: SparkSession, arguments: dict[str, Any]) -> None:
    """Several patterns with different policies give the same rows, in the same order of columns."""
    patterns = {
        "many": OccurrencePattern.of(MANY).taxonomy("type"),
        "dear": OccurrencePattern.of("Dear = ?p:Buy[p.price > 4] (Login; ?d:Dear)").taxonomy("type").policy("recent"),
        "used up": OccurrencePattern.of("Fail; Logout").taxonomy("type").policy("chronicle"),
    }
    events = log(60)
    arguments = {"time": "at", "key": "user", "sequence": ["price", "type"], **arguments}
    expected = detect(events, patterns, **arguments)
    found = detect(spark.createDataFrame(events), patterns, **arguments).toArrow()
    assert found.schema.names == expected.schema.names
    assert rows(found) == rows(expected)
    assert {*found["pattern"].to_pylist()} == {*patterns}


@pytest.mark.parametrize("key", [None, "price"])
@pytest.mark.filterwarnings("ignore:no key", "ignore:.*agree in key and time")
def test_values_divide_a_key(spark: SparkSession, key: str | None) -> None:
    """The events of one value are together, in one of several partitions, and the rows are those of the whole key."""
    text = "(?l:Login; ?b:Buy)[l.user = b.user]_2min -[f.user = b.user] ?f:Fail"
    events, pattern = log(120), OccurrencePattern.of(text).taxonomy("type")
    arguments: dict[str, Any] = {"time": "at", "key": key}
    expected = detect(events, pattern, **arguments)
    divided = detect(spark.createDataFrame(events), pattern, **arguments)
    assert rows(divided) == rows(expected)
    assert len(expected) > 5
    shown = StringIO()
    with redirect_stdout(shown):
        divided.explain(extended=True)
    divided_by = re.search(r"hash\(([^)]*)\)", shown.getvalue())
    assert divided_by is not None
    assert divided_by[1].count("#") == 1 + (key is not None)
