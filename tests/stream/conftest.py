"""One session for the streams of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def streams(spark: SparkSession) -> SparkSession:
    """The run's session with settings of its own: each partition has a store, and its commit costs."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session
