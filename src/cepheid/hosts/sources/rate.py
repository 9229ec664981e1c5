"""Generated events for trials: so many a second, each with its time (`timestamp`) and a number (`value`).

The position is a time, in microseconds since 1970: that of the next event. So the events after a position are always
the same, and a host that was down for a while catches up.
"""

from __future__ import annotations

import time

import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.hosts.durable.state import Position
from cepheid.hosts.sources.source import Feed
from cepheid.plan.conditions.types import sql_name

_COLUMNS = ("timestamp", "value")
_SECOND = 1_000_000
_AT_ONCE = 10_000


class RateSource:
    """A `Source` of events at this rate, at most a million a second. Times begin with the current time."""

    def __init__(self, per_second: int, columns: pa.Schema) -> None:
        """
        Raises:
            SchemaError: the input has other columns.
        """
        types = [columns.field(name).type if name in columns.names else None for name in _COLUMNS]
        if {*columns.names} != {*_COLUMNS} or not pa.types.is_timestamp(types[0]) or types[1] != pa.int64():
            given = ", ".join(f"{field.name} {sql_name(field.type)}" for field in columns)
            raise SchemaError(f"rate:// makes events with timestamp TIMESTAMP, value BIGINT; the input has {given}")
        self._step = max(1, _SECOND // per_second)
        self._columns = columns
        self._began = _now()

    def after(self, position: Position | None) -> Feed | None:
        first = self._first_after(position)
        count = min(_AT_ONCE, (_now() - first) // self._step + 1)
        if count <= 0:
            return None
        times = [first + self._step * i for i in range(count)]
        at = pa.array(times, pa.int64()).cast(self._columns.field("timestamp").type)
        values = pa.array([each // self._step for each in times], pa.int64())
        events = pa.table({"timestamp": at, "value": values}).select(self._columns.names).cast(self._columns)
        return Feed(events, times[-1] + 1, "rate")

    def lag(self, position: Position | None) -> float:
        return max(0.0, (_now() - self._first_after(position)) / _SECOND)

    def close(self) -> None:
        pass

    def _first_after(self, position: Position | None) -> int:
        """The time of the next event: a multiple of the step."""
        given = self._began if position is None else position
        assert isinstance(given, int)
        return -(-given // self._step) * self._step


def _now() -> int:
    return time.time_ns() // 1000
