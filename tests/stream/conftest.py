"""The sessions for the streams of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def streams(spark: SparkSession) -> SparkSession:
    """The session of the run, with one partition: each has a state store, whose commits take a fifth of the processor
    time of a micro-batch.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


@pytest.fixture(scope="session")
def partitioned(spark: SparkSession) -> SparkSession:
    """The session of the run, with two partitions and, as by default, checksums of checkpoints, for tests of how a
    stream is divided and of its checkpoint.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "true")
    return session
