"""One session for the streams of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def streams(spark: SparkSession) -> SparkSession:
    """The session of the run, with fewer partitions: each partition has a state store, whose commits take time."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session
