"""Patterns of stages and intervals with semantic filters on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.hosts.semantic_shop import BUYERS, REQUESTS, SUPPLIERS, buyers, log, numbers, requests, suppliers

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
