"""The shards of a stream as Spark calls them: their state is in Spark's store, their deadlines are Spark's timers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from cepheid.errors import ConditionError, LimitExceeded, SkipError, SnapshotError
from cepheid.hosts.request import ERROR, STREAM_COUNTS
from cepheid.hosts.stream_packing import EVENTS, LEDGER

ROWS = "_rows"
SHARD_ROWS = StructType(
    [
        StructField(ERROR, StringType()),
        StructField(ROWS, BinaryType()),
        *(StructField(name, LongType()) for name in STREAM_COUNTS),
    ]
)
"""What a call of a shard gives: why it cannot go on, its rows as one value, and what it counted."""

_STATE = StructType([StructField("snapshot", BinaryType())])


class ShardProcessor(StatefulProcessor):
    """Calls `step` with what Spark keeps."""

    def __init__(self, matching: tuple[object, ...]) -> None:
        self._matching = matching

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("matcher", _STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        values = [bytes(row[EVENTS]) for row in rows]
        yield from self._told(key[0], values, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Spark calls it by these names."""
        yield from self._told(
            key[0], [], timerValues.getCurrentWatermarkInMs(), fired=expiredTimerInfo.getExpiryTimeInMs()
        )

    def _told(self, shard: int, values: Sequence[bytes], watermark: int, fired: int | None = None) -> Iterator[Row]:
        """Failures are rows, as the host's own: an exception would reach the user below the worker's stack."""
        try:
            yield from self._step(shard, values, watermark, fired)
        except (ConditionError, LimitExceeded, SkipError, SnapshotError) as error:
            yield Row(*SHARD_ROWS.names)(str(error), *[None] * (len(SHARD_ROWS) - 1))

    def _step(self, shard: int, values: Sequence[bytes], watermark: int, fired: int | None) -> Iterator[Row]:
        from cepheid.hosts.stream_shard import LIVE, Matching, check_ledger, step

        matching = Matching(*self._matching)  # type: ignore[arg-type]
        kept = self._state.get()
        state = None if kept is None else bytes(kept[0])
        if shard == LEDGER:
            if (known := check_ledger(matching.made_for, state)) != state:
                self._state.update((known,))
            return
        stepped = step(matching, state, values, watermark, LIVE)
        if stepped.state is not None:
            self._state.update((stepped.state,))
        elif state is not None:
            self._state.clear()
        if stepped.timer != stepped.former_timer:
            if stepped.former_timer not in (None, fired):  # Spark deletes the one that fired itself
                self._handle.deleteTimer(stepped.former_timer)
            if stepped.timer is not None:
                self._handle.registerTimer(stepped.timer)
        if stepped.rows is not None or any(stepped.counts.values()):
            yield Row(*SHARD_ROWS.names)(None, stepped.rows, *stepped.counts.values())
