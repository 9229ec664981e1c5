"""The least cost of state in Spark: each shard reads one value, and writes its input into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.hosts.spark.stream.ledger import EVENTS

WRITTEN = "written BIGINT"


class WrittenValues(StatefulProcessor):
    """The processor of that query. Spark's workers import it by name."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("value", "events BINARY")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        self._value.get()
        value = b"".join(bytes(row[EVENTS]) for row in rows)
        self._value.update((value,))
        yield Row("written")(len(value))
