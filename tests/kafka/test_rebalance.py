"""A query over topics of a real Kafka goes on into the same topic with other numbers of shards and partitions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kafka.topics import OPTIONS, matches_into, messages, read, written
from tests.live.events import PAIR, at, events
from tests.stream.test_spark_stream import random_events

from cepheid import detect
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = "events.rebalanced", "matches.rebalanced"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_other_numbers(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    """It takes the events up from the offsets where it was stopped. Each message of an uninterrupted run is there once,
    with the same bytes, and there are no others: partial matches from before go on, and no row is written again.
    """
    rows, checkpoint = random_events(5, 400, 12), tmp_path / "checkpoint"
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    written(session, events(*rows[:200]), broker, TOPICS[0])
    before = matches_into(session, broker, checkpoint, TOPICS)
    before.awaitTermination()
    rebalanced = rebalance(checkpoint, shards=6, partitions=3)
    (pattern,) = rebalanced.patterns
    assert (rebalanced.query, rebalanced.partitions, pattern.after) == (before.id, 3, 6)
    assert pattern.open
    assert read(session, broker, TOPICS[1])
    written(session, events(*rows[200:], (-1, "end", 300, "z")), broker, TOPICS[0])
    matches_into(session, broker, checkpoint, TOPICS, shards=6).awaitTermination()
    # In one chunk: createDataFrame of PySpark 4.3 loses the rows after an empty chunk.
    uninterrupted = detect(events(*rows), PAIR, as_of=at(270), **OPTIONS).combine_chunks()
    expected = messages(session.createDataFrame(uninterrupted)).collect()
    assert Counter(read(session, broker, TOPICS[1])) == Counter((row.key, row.value) for row in expected)
