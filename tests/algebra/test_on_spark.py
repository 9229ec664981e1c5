"""On Spark a pattern of occurrences gives what it gives in process."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from algebra.shop import START, shop
from cepheid import OccurrencePattern, Report, detect

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
    """The same rows, ids included, of several keys, with ties."""
    events = log(120)
    pattern = OccurrencePattern.of(MANY).taxonomy("type").policy(policy)
    report = Report()
    arguments: dict[str, Any] = {"time": "at", "key": "user", "measures": measures, "as_of": START.replace(minute=2)}
    expected = detect(events, pattern, **arguments)
    found = rows(detect(spark.createDataFrame(events), pattern, report=report, **arguments))
    assert found == rows(expected)
    assert report.counts.matches == len(found) > 10
