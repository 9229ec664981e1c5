"""Events: the columns that say what an event is (schema) and the batches that a matcher is fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

TIME = "_time"
END = "_end"
"""Only for events with a start and an end: `_time` is then their start."""
SEQUENCE_PREFIX = "_sequence"
MASK = "_mask"
ORDINAL = "_ordinal"
KEY_PREFIX = "_key"
VALUE_PREFIX = "_value"
EVENT_PREFIX = "_event."
ROW_PREFIX = "_row."


def mask_column(word: int) -> str:
    """The name of the column that holds this word of the mask."""
    return f"{MASK}{word}" if word else MASK


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As `to_pylist`, but if a time is outside Python's range of years, all times of its column become text in ISO form
    (in UTC where they have a zone).
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_python_value(scalar) for scalar in column]
    return values


def row_shown(events: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
    """An event as messages show it: its values by column."""
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
    """The events' columns, and which of them are the key, the times and the order of ties."""

    columns: pa.Schema
    key: tuple[str, ...]
    """Empty: all events are one sequence."""
    time: str | None
    """None: processing order; the sequence alone orders the events, and no time passes."""
    sequence: tuple[str, ...] = ()
    """Columns that order events of equal time."""
    end: str | None = None
    """The column with the end of each event, which starts at `time`; None: events are instants."""

    @property
    def times(self) -> tuple[str, ...]:
        """The columns of event times: none in processing order, otherwise one, or start and end."""
        return tuple(name for name in (self.time, self.end) if name is not None)

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(self.columns.field(name) for name in self.key)


@dataclass(frozen=True)
class Batch:
    """Events as a host hands them to a matcher. A SortedMatcher needs the order (key, time, sequence); live matchers
    take any.

    `data` has the columns _key0, _key1, …; _time (TIME_TYPE, no NULLs); _sequence0, _sequence1, …; _mask (64-bit
    integer, bit i for Plan.bits[i]); _value0, _value1, … (Plan.values); the chosen columns, with the prefix "_event.";
    and, if there are conditions in Python (Plan.functions), all columns with the prefix "_row.". A batch for several
    patterns has the bits and values of all (PlanSet), and as many words _mask, _mask1, … as they need.
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
        """The events for which the array of booleans is true."""
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
        """The event columns that appear in the output."""
        return self._prefixed(EVENT_PREFIX)

    @property
    def order(self) -> list[pa.Array]:
        """The columns that rank the events of a key: events that agree in all of them have the same rank."""
        return [self.column(TIME), *self.sequence]

    @property
    def sequence(self) -> list[pa.Array]:
        return self._prefixed(SEQUENCE_PREFIX)

    def with_column(self, name: str, values: pa.Array) -> Batch:
        return Batch(self.data.append_column(name, values))

    def _prefixed(self, prefix: str) -> list[pa.Array]:
        return [self.data.column(i) for i, name in enumerate(self.data.schema.names) if name.startswith(prefix)]


def join(batches: Sequence[Batch]) -> Batch:
    """The batches, concatenated."""
    return batches[0] if len(batches) == 1 else Batch(pa.concat_batches([batch.data for batch in batches]))
