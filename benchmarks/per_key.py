"""What a Spark user would write without Cepheid: `transformWithStateInPandas` per key, with a matcher in plain Python
for the one pattern of the streams benchmark.

Events wait in the key's state until the watermark is after them. Then each event advances the open partial matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST, SECOND = 0, 1
WINDOW = 30_000_000
"""In microseconds."""
_EVENT = "struct<at: bigint, id: bigint, phase: bigint, price: double>"
MATCH = "device BIGINT, first BIGINT, second BIGINT"


class PlainMatcher(StatefulProcessor):
    """Finds phase 0, followed by phase 1 at a higher price, within half a minute."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._waiting = handle.getValueState("waiting", f"events array<{_EVENT}>")
        self._open = handle.getValueState("open", f"events array<{_EVENT}>")

    def handleInputRows(  # noqa: N802 - Spark's names
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        new = [
            tuple(row) for batch in rows for row in batch[["micros", "id", "phase", "price"]].itertuples(index=False)
        ]
        yield from self._pass(key, new, timerValues.getCurrentWatermarkInMs() * 1000)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        yield from self._pass(key, [], timerValues.getCurrentWatermarkInMs() * 1000)

    def _pass(self, key: Any, new: list[tuple[Any, ...]], watermark: int) -> Iterator[pd.DataFrame]:
        waiting = sorted([*(tuple(event) for event in _kept(self._waiting)), *new])
        open_ = [tuple(event) for event in _kept(self._open)]
        found = []
        passed = [event for event in waiting if event[0] < watermark]
        for at, number, phase, price in passed:
            open_ = [event for event in open_ if at - event[0] < WINDOW]
            if phase == SECOND:
                found += [(key[0], event[1], number) for event in open_ if price > event[3]]
                open_ = [event for event in open_ if price <= event[3]]
            elif phase == FIRST:
                open_.append((at, number, phase, price))
        left = waiting[len(passed) :]
        self._waiting.update((left,))
        self._open.update(([event for event in open_ if watermark - event[0] < WINDOW],))
        if left:
            self._handle.registerTimer(left[0][0] // 1000 + 1)
        if found:
            yield pd.DataFrame(found, columns=["device", "first", "second"])


def _kept(state: Any) -> list[Any]:
    kept = state.get()
    return [] if kept is None else kept[0] or []


def detect_per_key(events: DataFrame, lateness: str) -> DataFrame:
    """The matches of the pattern, found by one PlainMatcher per key."""
    watermarked = events.withWatermark("at", lateness).selectExpr("*", "unix_micros(at) AS micros")
    return watermarked.groupBy("device").transformWithStateInPandas(
        PlainMatcher(), MATCH, outputMode="append", timeMode="eventTime"
    )
