"""The least cost of state in Spark: queries that read and write one value a shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.hosts.spark.stream.ledger import EVENTS

WRITTEN = "written BIGINT"


class WrittenValues(StatefulProcessor):
    """Each shard writes its input into its value. Spark's workers import the class by name."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("value", "events BINARY")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        self._value.get()
        value = b"".join(bytes(row[EVENTS]) for row in rows)
        self._value.update((value,))
        yield Row("written")(len(value))


class PassedOn(StatefulProcessor):
    """Each shard writes a number, and gives out the column `sent` of its rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("value", "rows BIGINT")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        before, sent = self._value.get(), [row["sent"] for row in rows]
        self._value.update(((0 if before is None else before[0]) + len(sent),))
        yield from map(Row("sent"), sent)
