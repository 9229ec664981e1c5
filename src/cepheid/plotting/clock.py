"""Columns of times or numbers as places on an axis, and values as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_LONGEST_TEXT = 200
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 a clock on the wall


@dataclass(frozen=True)
class Clock:
    """How the times of a picture are read."""

    is_time: bool
    """Whether the axis has milliseconds of the clock on the wall since 1970; otherwise it has numbers."""
    zone: str | None
    """The zone of this clock; None if no time has one. Times without one are taken as they are."""

    def places(self, column: pa.ChunkedArray) -> Floats:
        """(rows,) the places on the axis; NaN for NULL."""
        if not self.is_time:
            numbers: Floats = column.cast(pa.float64()).to_numpy().astype(np.float64)
            return numbers
        wall = self._on_the_wall(column)
        micros = pc.cast(pc.cast(wall, pa.int64()), pa.float64(), safe=False)
        places: Floats = micros.to_numpy().astype(np.float64)
        return places / 1000

    def instants(self, column: pa.ChunkedArray) -> Floats:
        """(rows,) milliseconds since 1970 UTC, or the numbers; NaN for NULL."""
        tz = column.type.tz if pa.types.is_timestamp(column.type) else None
        return Clock(self.is_time, None if tz is None else "UTC").places(column)

    def _on_the_wall(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_timestamp(column.type) and column.type.tz is not None and self.zone is not None:
            column = pc.local_timestamp(pc.cast(column, pa.timestamp(column.type.unit, self.zone)))
        return pc.cast(column, pa.timestamp("us"), safe=False)

    def word(self, value: Any) -> str:
        """A value as a person reads it."""
        match value:
            case None:
                return "NULL"
            case datetime():
                return self._time(value)
            case date():
                return value.isoformat()
            case float() if value.is_integer() and abs(value) < 1e15:
                return str(int(value))
        text = str(value)
        return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"

    def _time(self, value: datetime) -> str:
        if value.tzinfo is not None and self.zone is not None:
            value = value.astimezone(ZoneInfo(self.zone))
        value = value.replace(tzinfo=None)
        text = value.isoformat(" ", "microseconds" if value.microsecond else "seconds")
        return text.rstrip("0") if value.microsecond else text.removesuffix(":00")

    def at(self, place: float) -> str:
        """The words for a place on the axis."""
        if not self.is_time:
            return self.word(place)
        return self._time(_EPOCH + timedelta(milliseconds=round(place)))


def clock_of(types: Sequence[pa.DataType], zone: str | None) -> Clock:
    """The clock for columns of these types, of which the axis has the first. Times without a zone are those of the
    clock.
    """
    axis = types[0]
    zones = [one.tz for one in types if pa.types.is_timestamp(one) and one.tz is not None]
    return Clock(
        bool(pa.types.is_timestamp(axis) or pa.types.is_date(axis) or pa.types.is_null(axis)),
        (zone or zones[0]) if zones else None,
    )


def are_mixed(types: Sequence[pa.DataType]) -> bool:
    """Whether some of these columns have times with a zone, and others times without one."""
    return len({one.tz is None for one in types if pa.types.is_timestamp(one)}) > 1
