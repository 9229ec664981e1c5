"""Patterns of stages with semantic filters in streams of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.hosts.semantic_shop import buyers, log
from tests.stream.running import detected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_stream(streams: SparkSession, tmp_path: Path) -> None:
    """Micro-batches of one event each."""
    batches = [log().slice(row, 1) for row in range(len(log()))]
    options: dict[str, Any] = {"lateness": "0 seconds", "key": "user", "columns": ["id"]}
    found = detected(streams, batches, tmp_path, buyers(), time="at", **options)
    rows = [row for batch in found for row in batch]
    taken = [{"first": row["first"]["id"], "buys": [one["id"] for one in row["buys"]]} for row in rows]
    assert taken == [{"first": 0, "buys": [2, 5]}]
