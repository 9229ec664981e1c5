"""Ids on Spark are those of every other host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stream.running import detected
from tests.test_ids import GOLDEN, LATER, OPEN, PAID, PAY, STREAM, table

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_golden_ids(streams: SparkSession, tmp_path: Path) -> None:
    """A batch and a stream, whose match goes over two micro-batches, give the match the id that it always has."""
    frame = streams.createDataFrame(table(OPEN, PAY))
    (batch,) = detect(frame, PAID, **STREAM).toArrow().column("match_id").to_pylist()
    batches = [table(event) for event in (OPEN, PAY, LATER)]
    micro_batches = detected(streams, batches, tmp_path, PAID, **STREAM, lateness="0 seconds")
    (stream,) = [row["match_id"] for rows in micro_batches for row in rows]
    assert [batch] == [stream] == GOLDEN["paid match"][1]
