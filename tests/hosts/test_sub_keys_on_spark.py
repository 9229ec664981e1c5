"""Spark extends a key by the values that all events of a match have, and finds what the whole key has."""

from __future__ import annotations

import re
import warnings
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.hosts.tiered_patterns import tied_events

from cepheid import CepheidWarning, Pattern, detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVENTS = tied_events(5, 240)
LOOP = (
    Pattern.begin("a")
    .where("kind <> 'C'")
    .followed_by("b")
    .where("x = a.x AND s = a.s")
    .one_or_more()
    .until("x = a.x AND s = a.s AND n = 4")
    .followed_by_any("c")
    .where("x = a.x AND n > a.n AND a.s = s")
    .within("40 seconds")
)
NEGATED = Pattern.begin("a").where("kind = 'A'").not_followed_by("no").where("y = a.y AND n < 3").within("30 seconds")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """The events in several partitions."""
    return spark.createDataFrame(EVENTS).repartition(3)


def rows(matches: Any) -> list[str]:
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(map(repr, arrow.to_pylist()))


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        (LOOP, {"key": "kind"}),
        (LOOP, {}),
        (NEGATED, {"key": "n", "outputs": ["matches", "timeouts"], "sequence": "id"}),
        ({"first": LOOP, "second": NEGATED.where("x = a.x AND s = a.s")}, {"key": "n"}),
    ],
)
def test_the_matches_are_those_of_the_whole_key(events: DataFrame, pattern: Any, options: dict[str, Any]) -> None:
    """All rows are equal, ids included; partial matches of events without a value are among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)  # of ties
        expected = rows(detect(EVENTS, pattern, time="at", **options))
    assert len(expected) > 5
    assert rows(detect(events, pattern, time="at", **options)) == expected


def test_the_events_of_a_key_are_in_several_partitions(events: DataFrame) -> None:
    """The shuffle is by the key and the value."""
    shown = StringIO()
    with redirect_stdout(shown):
        detect(events, LOOP, key="n", time="at").explain(extended=True)
    divided_by = re.search(r"hash\(([^)]*)\)", shown.getvalue())
    assert divided_by is not None
    assert divided_by[1].count("#") == 3
