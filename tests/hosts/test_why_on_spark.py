"""`why` on Spark says what it says in process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.hosts.test_spark_batch import UP, table

from cepheid import EventError, Pattern, SchemaError, why
from cepheid.hosts.spark.batch import why as why_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "t", "as_of": "2024-03-01T04:00:00Z"}
IN_SETS = (
    Pattern.begin("a").where("n = 0").not_followed_by("no").where("n = 1").followed_by_any("b").where("s = 'a'")
).within("30 minutes")


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_what_it_says_in_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers are those of the same events in process, where partial matches are stored one by one and where they
    are in sets; one key is shown step by step; near misses are the same.
    """
    events = table(400)
    frame = spark.createDataFrame(events).repartition(3)
    for pattern in (UP, IN_SETS):
        with pytest.warns(match="agree in key and time"):
            expected, found = why(events, pattern, **OPTIONS), why(frame, pattern, **OPTIONS)
        assert found.to_dict() == expected.to_dict()
        assert found.funnel.matched
        assert len(found.funnel.stopped) >= 2
    trace = found.trace({"k": "k1"})
    assert str(trace) == str(expected.trace({"k": "k1"}))
    with pytest.raises(SchemaError, match="trace: no event has the key"):
        found.trace({"k": "z"})
    expected, found = (why(given, UP, sequence=["n DESC", "length(s)"], **OPTIONS) for given in (events, frame))
    near, named = found.near_misses.toArrow(), found.near_misses.columns
    assert found.changes.changes == expected.changes.changes
    assert shown(near) == shown(expected.near_misses.select(named))
    assert near.num_rows
    assert "row_number" not in named
    monkeypatch.setattr(why_on_spark, "MOST_COLLECTED", 399)
    with pytest.raises(SchemaError, match="near misses: there are more than 399 events, which are not collected"):
        replace(found).near_misses  # noqa: B018 - it raises


def test_what_cannot_be_explained(spark: SparkSession) -> None:
    """Without events nothing starts. A condition that fails is named; a stream is refused."""
    pattern = Pattern.begin("a").next("b").where("1 / (n - a.n) > 0")
    frame = spark.createDataFrame(table(20, keys=1))
    with pytest.raises(EventError, match=r"division by zero in the condition of stage 'b' \(1 / "):
        why(frame, pattern, key="k", time="t")
    assert why(frame.limit(0), pattern, key="k", time="t").funnel.reached == {"a": 0, "b": 0}
    with pytest.raises(SchemaError, match="why reads finite events"):
        why(spark.readStream.format("rate").load(), pattern, time="timestamp")
