"""Which texts are times: those that Spark reads, and each as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from cepheid.lang.literals import read_date, read_timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATES = ("2024", "2024-3", "2024-03", "2024-03-1", "2024-03-01", " 2024-03-01", "2024-02-30", "20240301", "2024/03/01")
TIMES = ("", " 12", " 12:00", "T12:00", "T1:2", " 12:00:00", " 12:00:00.5", " 12:00:00.", " 24:00:00", " 1:2:3.1234567")
ZONES = ("", "Z", " Z", "UTC", " UTC", "+01:00", " +01:00", "+1", "+0100", " Europe/Paris", "GMT+1")


def read(reader: Callable[[str], Any], text: str) -> Any:
    """None if the text is refused."""
    try:
        return reader(text)
    except ValueError:
        return None


@pytest.mark.spark
def test_texts_are_times_as_on_spark(spark: SparkSession) -> None:
    """What is read is read so by Spark. Spark reads further forms, as texts of times without days."""
    texts = [(f"{day}{time}{zone}",) for day, time, zone in product(DATES, TIMES, ZONES)]
    casts = (
        "try_cast(t AS DATE) AS d",
        "try_cast(t AS TIMESTAMP_NTZ) AS n",
        "unix_micros(try_cast(t AS TIMESTAMP)) AS z",
    )
    rows = spark.createDataFrame(texts, "t string").selectExpr("t", *casts).toArrow().to_pylist()
    times = {row["t"]: read(read_timestamp, row["t"]) for row in rows}
    assert sum(time is not None for time in times.values()) > 100
    for row in rows:
        day, time = read(read_date, row["t"]), times[row["t"]]
        assert day in (None, row["d"]), row
        if time is not None and time.tzinfo is None:
            assert time == row["n"], row
        elif time is not None:
            assert int(time.timestamp() * 1_000_000) == row["z"], row
