"""The flights, read once for all tests of the demo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from cepheid.demo.flights import read_flights, unpack_flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """All rows, cached in memory; `departures(flights)` are the events."""
    cached = read_flights(spark, unpack_flights(tmp_path_factory.mktemp("flights"))).cache()
    yield cached
    cached.unpersist()
