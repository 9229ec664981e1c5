"""Conditions in Python on Spark: they are sent to the workers, and receive there what they receive in process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException, SparkRuntimeException

from cepheid import Pattern, PatternError, SchemaError, detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = datetime(2026, 1, 1, tzinfo=UTC)
COUNT = 400
EVENTS = pa.table(
    {
        "k": [f"k{i * 7 % 5}" for i in range(COUNT)],
        "i": range(COUNT),
        "at": pa.array([T + timedelta(minutes=i) for i in range(COUNT)], pa.timestamp("us", "UTC")),
        "n": pa.array([None if i % 13 == 0 else i * i % 11 for i in range(COUNT)], pa.int32()),
        "price": pa.array([Decimal(i * 31 % 400).scaleb(-2) for i in range(COUNT)], pa.decimal128(6, 2)),
        "tags": [["x"] * (i % 3) for i in range(COUNT)],
        "where": [{"since": T + timedelta(hours=i)} for i in range(COUNT)],
    }
)
HOW: dict[str, Any] = {"key": "k", "time": "at", "sequence": "i", "columns": ["i"]}


def dearer(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
    return bool(event["price"] > matched["a"][-1]["price"] * Decimal("1.1"))


def rows(matches: Any) -> list[str]:
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(repr(row) for row in arrow.to_pylist())


def test_the_same_as_in_process(spark: SparkSession) -> None:
    """Functions of a module and nested functions with their closures, in all calls, with SQL beside them."""
    least, seen = 7, {"x", "y"}

    def tagged(event: Mapping[str, Any]) -> bool:
        return bool(seen & set(event["tags"]))

    pattern = (
        Pattern.begin("a")
        .where("n > 2")
        .followed_by("b")
        .where(dearer)
        .where(tagged)
        .or_where(lambda event: event["n"] is None, name="no n")
        .one_or_more()
        .until(lambda event, matched: len(matched["b"]) > 1 and (event["n"] or 0) > least, name="enough")
        .within("2 hours")
    )
    for outputs in (None, ("matches", "timeouts")):
        expected = rows(detect(EVENTS, pattern, outputs=outputs, **HOW))
        assert len(expected) > 100
        assert rows(detect(spark.createDataFrame(EVENTS), pattern, outputs=outputs, **HOW)) == expected


def test_times_are_the_session_s(spark: SparkSession) -> None:
    """A function receives instants in the zone in which SQL reads them: on Spark the session's, in
    process `time_zone`.
    """
    zoned = spark.newSession()
    zoned.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")

    def early(event: Mapping[str, Any]) -> bool:
        at, since = event["at"], event["where"]["since"]
        return bool(at.hour == 9 and str(at.tzinfo) == str(since.tzinfo) and since.hour < 20)

    by_function = Pattern.begin("a").where(early)
    by_sql = Pattern.begin("a").where("hour(at) = 9 AND hour(where.since) < 20")
    expected = rows(detect(EVENTS, by_sql, time_zone="Asia/Tokyo", **HOW))
    assert len(expected) > 5
    assert rows(detect(EVENTS, by_function, time_zone="Asia/Tokyo", **HOW)) == expected
    frame = zoned.createDataFrame(EVENTS.to_pandas())
    assert [row.split("'a'")[1] for row in rows(detect(frame, by_function, **HOW))] == [
        row.split("'a'")[1] for row in expected
    ]


def test_a_function_that_cannot_be_sent_is_refused(spark: SparkSession) -> None:
    """A function that cannot be pickled is refused at once, with its name and stage."""
    lock = threading.Lock()

    def locked(event: Mapping[str, Any]) -> bool:
        with lock:
            return bool(event["n"])

    with pytest.raises(PatternError) as caught:
        detect(spark.createDataFrame(EVENTS), Pattern.begin("a").where(dearer).next("b").where(locked), **HOW)
    assert str(caught.value) == (
        "function locked cannot be sent to Spark's workers: TypeError: cannot pickle '_thread.lock' object "
        "(stage 'b')\n"
        "Let it use nothing that belongs to this process alone, such as connections, locks and Spark itself."
    )


def test_errors_in_a_worker_are_reported(spark: SparkSession) -> None:
    """The error names the pattern, stage, function and event, as in process."""
    pattern = Pattern.begin("a", name="p").where(lambda event: 1 / event["i"] > 0, name="inverse")
    with pytest.raises((SparkRuntimeException, PythonException)) as caught:
        detect(spark.createDataFrame(EVENTS), pattern, **HOW).collect()
    assert (
        "pattern 'p': function inverse raised ZeroDivisionError: division by zero in the condition of stage 'a' "
        f"(inverse), at the event with k = 'k0', at = {T:%Y-%m-%d %H:%M:%S} UTC, i = 0"
    ) in str(caught.value)


def test_a_column_that_cannot_be_sent_is_reported(spark: SparkSession) -> None:
    """Functions receive all columns, also those that are not in the output, so such a column is an error."""
    frame = spark.createDataFrame(EVENTS).selectExpr("*", "make_ym_interval(i, 0) AS months")
    assert detect(frame, Pattern.begin("a").where("n > 2"), **HOW).columns
    with pytest.raises(SchemaError) as caught:
        detect(frame, Pattern.begin("a").where(dearer), **HOW)
    assert str(caught.value) == (
        "functions see all columns: 'months' is of type INTERVAL YEAR TO MONTH, which cannot be sent to a worker. "
        "Drop it from the events, or cast it"
    )
