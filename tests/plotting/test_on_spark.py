"""Pictures of Spark's DataFrames: the same as in process, and bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest
from tests.plotting.marks import marks

from cepheid import Pattern, detect, plot
from cepheid.errors import SchemaError
from cepheid.plotting import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SHOWN = ("row", "x", "x2", "y", "stage")


def test_spark_and_process_draw_the_same(
    spark: SparkSession, events: pd.DataFrame, rising: Pattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of a DataFrame has the same marks as in process. More rows than the bound are refused with what to do."""
    aware = events.assign(at=events["at"].dt.tz_localize("UTC"))
    on_spark = spark.createDataFrame(aware)
    drawn = [
        plot(
            table,
            detect(table, rising, key="symbol", time="at"),
            key="symbol",
            time="at",
            y="price",
            only={"symbol": "a"},
            time_zone="America/New_York",
        )
        for table in (aware, on_spark)
    ]
    for what in ("events", "taken", "windows"):
        own, other = ([[row.get(name) for name in SHOWN] for row in marks(one, what)] for one in drawn)
        assert sorted(own, key=str) == sorted(other, key=str)
    monkeypatch.setattr(tables, "MOST_ROWS", 9)
    with pytest.raises(SchemaError, match=r"events: these are more than 9 rows, .* with only=\{…\} or with where"):
        plot(on_spark, time="at", y="price")


def test_streams_are_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SchemaError, match="events: a stream is not drawn; draw the table that it is written to"):
        plot(stream, time="timestamp", y="value")
