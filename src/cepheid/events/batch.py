"""Events: the columns that say what an event is (schema) and the batches that a matcher is fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

TIME_TYPE = pa.timestamp("us", "UTC")

TIME = "_time"
SEQUENCE_PREFIX = "_sequence"
MASK = "_mask"
ORDINAL = "_ordinal"
KEY_PREFIX = "_key"
VALUE_PREFIX = "_value"
EVENT_PREFIX = "_event."
ROW_PREFIX = "_row."


def mask_column(word: int) -> str:
    """The column of a word of the mask."""
    return f"{MASK}{word}" if word else MASK


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(instant: datetime) -> int:
    """Since 1970 UTC; the instant has a zone."""
    elapsed = instant - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As `to_pylist`, but a time beyond the years of Python's is text in ISO form (with a zone: in UTC), as
    are those that stand in its column.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_python_value(scalar) for scalar in column]
    return values


def row_shown(events: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
    """An event for a message: its values by column."""
    return {name: python_values(events.column(name).slice(row, 1))[0] for name in events.schema.names}


def _python_value(scalar: pa.Scalar) -> Any:
    type_ = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(type_):
        return {field.name: _python_value(scalar[i]) for i, field in enumerate(type_)}
    if pa.types.is_map(type_):
        return [tuple(_python_value(entry).values()) for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return python_values(scalar.values)
    if pa.types.is_timestamp(type_):
        return f"{np.datetime64(scalar.value, type_.unit)}{'+00:00' if type_.tz else ''}"
    return str(np.datetime64(scalar.value, "D")) if pa.types.is_date32(type_) else scalar.as_py()


@dataclass(frozen=True)
class Schema:
    """The events' columns, and which of them are the key, the time and the order of ties."""

    columns: pa.Schema
    key: tuple[str, ...]
    """Empty: all events are one sequence."""
    time: str | None
    """None: processing order; the sequence alone orders the events, and no time passes."""
    sequence: tuple[str, ...] = ()
    """Columns that order events of equal time."""

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(self.columns.field(name) for name in self.key)


@dataclass(frozen=True)
class Batch:
    """Events in the order (key, time, sequence), as a host hands them to a matcher.

    `data` has the columns _key0, _key1, …; _time (TIME_TYPE, no NULLs); _sequence0, _sequence1, …; _mask (64-bit
    integer, bit i for Plan.bits[i]); _value0, _value1, … (Plan.values); the chosen columns, each behind the
    prefix "_event."; and, where functions are asked (Plan.functions), all columns behind the prefix "_row.". A batch
    for several patterns has the bits and values of all (Plans), and as many words _mask, _mask1, … as they need.
    """

    data: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The events from `start` to `stop`, without a copy."""
        return Batch(self.data.slice(start, stop - start))

    def take(self, rows: pa.Array) -> Batch:
        return Batch(self.data.take(rows))

    def filter(self, which: pa.Array) -> Batch:
        """Those for which the array of booleans is true."""
        return Batch(self.data.filter(which))

    def column(self, name: str) -> pa.Array:
        return self.data.column(name)

    @property
    def keys(self) -> list[pa.Array]:
        return self._prefixed(KEY_PREFIX)

    @property
    def values(self) -> list[pa.Array]:
        return self._prefixed(VALUE_PREFIX)

    @property
    def chosen(self) -> list[pa.Array]:
        """The event columns that come along in the output."""
        return self._prefixed(EVENT_PREFIX)

    @property
    def order(self) -> list[pa.Array]:
        """The columns that say which events come at the same point of the order."""
        return [self.column(TIME), *self.sequence]

    @property
    def sequence(self) -> list[pa.Array]:
        return self._prefixed(SEQUENCE_PREFIX)

    def with_column(self, name: str, values: pa.Array) -> Batch:
        return Batch(self.data.append_column(name, values))

    def _prefixed(self, prefix: str) -> list[pa.Array]:
        return [self.data.column(i) for i, name in enumerate(self.data.schema.names) if name.startswith(prefix)]


def join(batches: Sequence[Batch]) -> Batch:
    """The batches one behind the other."""
    return batches[0] if len(batches) == 1 else Batch(pa.concat_batches([batch.data for batch in batches]))
