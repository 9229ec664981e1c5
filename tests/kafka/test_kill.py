"""A query over topics of a real Kafka that is killed at any point and restarted loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kafka.topics import COUNT, OPTIONS, matches_into, messages, read, written
from tests.live.events import PAIR, at, events
from tests.searching import KILLS
from tests.stream.killing import killed
from tests.stream.test_spark_stream import random_events

from cepheid import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).with_name("killed.py")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(KILLS < 5, reason="each kill starts Spark anew, and kills over files are the sample: see make soak")
def test_kills(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    """Spark and its workers get SIGKILL at random points; then another process runs the query to the end. Each message
    of an uninterrupted run is there with the same bytes, some of them more than once, as Spark writes to Kafka at least
    once. There are no other messages.
    """
    rows = random_events(7, COUNT, 40)
    written(spark, events(*rows, (-1, "end", 300, "z")), broker)
    killed(SCRIPT, tmp_path, broker, seed=9)
    matches_into(spark, broker, tmp_path / "checkpoint").awaitTermination()
    # In one chunk: createDataFrame of PySpark 4.3 loses the rows after an empty chunk.
    uninterrupted = detect(events(*rows), PAIR, as_of=at(270), **OPTIONS).combine_chunks()
    expected = messages(spark.createDataFrame(uninterrupted)).collect()
    assert len(expected) > COUNT // 10
    found = read(spark, broker)
    assert len(found) >= len(expected)
    assert {*found} == {(row.key, row.value) for row in expected}
    assert len({*found}) == len({match_id for match_id, _ in found})
