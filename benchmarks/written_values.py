"""The least cost of state in Spark: each shard reads one value, and writes its input into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.hosts.shards.arrow_stream import events_of
from cepheid.hosts.spark.stream.ledger import EVENTS
from cepheid.matchers.event_queue import times_of

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


class PassedOn(WrittenValues):
    """The same; it gives out the times of the events, in microseconds."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        given = [*rows]
        [*super().handleInputRows(key, given, timerValues)]
        if (events := events_of([bytes(row[EVENTS]) for row in given])) is not None:
            yield from map(Row("sent"), times_of(events).tolist())
