"""Filters that have no SQL are asked once for each value in workers of Spark: in a batch and in a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.hosts.asked_shop import OTHERS, STAGES, intervals, occurrences, stages, taken
from tests.hosts.semantic_shop import log
from tests.stream.running import detected

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OPTIONS: dict[str, Any] = {"key": "user", "columns": ["id"]}


def test_batch(spark: SparkSession) -> None:
    """The same matches as in process."""
    frame = spark.createDataFrame(log())
    assert taken(detect(frame, stages(), time="at", **OPTIONS).toArrow()) == STAGES
    assert taken(detect(frame, occurrences(), time="at", **OPTIONS).toArrow()) == OTHERS
    assert taken(detect(frame, intervals(), time=("at", "until"), **OPTIONS).toArrow()) == OTHERS


def test_stream(streams: SparkSession, tmp_path: Path) -> None:
    """Values that come later are asked, too."""
    batches = [log().slice(0, 3), log().slice(3)]
    found = detected(streams, batches, tmp_path, stages(), time="at", lateness="0 seconds", **OPTIONS)
    assert sorted(row["buy"]["id"] for batch in found for row in batch) == STAGES
