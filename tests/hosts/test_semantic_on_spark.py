"""Patterns of stages and intervals with semantic filters on Spark, in batch and in streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.hosts.semantic_shop import BUYERS, REQUESTS, SUPPLIERS, buyers, log, numbers, requests, suppliers
from tests.stream.running import detected

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

OPTIONS: dict[str, Any] = {"key": "user", "columns": ["id"]}


def test_batch(spark: SparkSession) -> None:
    """The same matches as in process."""
    frame = spark.createDataFrame(log())
    assert numbers(detect(frame, buyers(), time="at", **OPTIONS).toArrow()) == BUYERS
    assert numbers(detect(frame, suppliers(), time="at", **OPTIONS).toArrow()) == SUPPLIERS
    assert numbers(detect(frame, requests(), time=("at", "until"), **OPTIONS).toArrow()) == REQUESTS


def test_stream(streams: SparkSession, tmp_path: Path) -> None:
    """Micro-batches of one event each."""
    batches = [log().slice(row, 1) for row in range(len(log()))]
    options: dict[str, Any] = {"lateness": "0 seconds", "outputs": ("matches",), **OPTIONS}
    found = detected(streams, batches, tmp_path, buyers(), time="at", **options)
    rows = [row for batch in found for row in batch]
    taken = [{"first": row["first"]["id"], "buys": [one["id"] for one in row["buys"]]} for row in rows]
    assert taken == [{"first": 0, "buys": [2, 5]}]
