"""The schema of events, and the batches in which hosts pass them to matchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.direction import BY_NAME, SEQUENCE_PREFIX, Direction

TIME = "_time"
END = "_end"
"""The column of ends, for events with a start and an end; `_time` is then the column of starts."""
MASK = "_mask"
LIFTED_BITS = (1 << 62) - 1
"""All bits of a mask but the last, in which a host may mark events (`CompiledPattern.may_start`)."""
ORDINAL = "_ordinal"
EVENT_ID = "_id"
"""What identifies an event, where a column does (`Schema.event_id`)."""
DEFERRED = "_deferred"
"""The row of each event in the columns that are not with the others (`Batch.deferred`)."""
NUMBER = "_number"
"""The number of the event among those given, from 0. Batches of finite tables in process have it if the output needs
it.
"""
HELD = "_held"
"""The place of the event among those that the matchers of several patterns share (`SharedEvents`)."""
FINER = "_finer"
"""The nanoseconds that were cut off the event time, from 0 to 999, where times are cut to microseconds."""
AFTER = "_after"
"""Whether a row stands directly after the event whose place it has; see `TierOrdering`."""
KEY_PREFIX = "_key"
SUB_KEY_PREFIX = "_subkey"
VALUE_PREFIX = "_value"
EVENT_PREFIX = "_event."
ROW_PREFIX = "_row."
COMPUTED = "_order."
"""What the names of columns begin with that hosts compute from the events only to order them."""


def mask_column(word: int) -> str:
    """The name of the column that holds this word of the mask."""
    return f"{MASK}{word}" if word else MASK


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as `to_pylist` returns them. If a time is outside Python's range of years, all times of the column are
    returned as ISO text, in UTC if they have a zone.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_python_value(scalar) for scalar in column]
    return values


def row_shown(events: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
    """One event as error messages show it: its values by column name."""
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
    """The columns of the events, and which of them are the key, the times and the sequence."""

    columns: pa.Schema
    key: tuple[str, ...]
    """If empty, all events are one sequence."""
    time: str | None
    """None means processing order: the sequence alone orders the events, and time does not pass."""
    sequence: tuple[str, ...] = ()
    """Columns that order events of equal time."""
    end: str | None = None
    """The column with the end of each event, whose start is in `time`. None means that events are instants."""
    in_row_order: bool = False
    """Whether events of equal time are in the order in which they come; there is no `sequence` then."""
    directions: tuple[Direction, ...] = ()
    """One for each column of the sequence; if empty, all are ascending with NULL last."""
    event_id: str | None = None
    """The column that identifies an event, for events with a start and an end. Then one row may open an event, and
    another one close it. None: key, times and content identify an event.
    """

    @property
    def times(self) -> tuple[str, ...]:
        """The columns of event times: none in processing order, otherwise `time`, and `end` if there is one."""
        return tuple(name for name in (self.time, self.end) if name is not None)

    @property
    def ranking(self) -> tuple[tuple[str, str], ...]:
        """The columns of the sequence, each with its name in a batch and its name among the events' columns."""
        directions = self.directions or (BY_NAME,) * len(self.sequence)
        return tuple(
            (direction.column(i), name)
            for i, (direction, name) in enumerate(zip(directions, self.sequence, strict=True))
        )

    @property
    def order_by(self) -> tuple[str, ...]:
        """The columns of the sequence as texts: names, with the direction if it is not ascending with NULL last."""
        texts = []
        for column, name in self.ranking:
            shown, direction = name.removeprefix(COMPUTED), Direction.of(column)
            texts.append(name if name == shown and direction == BY_NAME else f"{shown} {direction.sql}")
        return tuple(texts)

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(self.columns.field(name) for name in self.key)


@dataclass(frozen=True)
class DeferredColumns:
    """The chosen columns of all events of a host, in the host's order."""

    columns: pa.RecordBatch
    types: pa.Schema
    """The columns as batches have them: their names, with the prefix "_event.", and types to which casts cannot fail.
    """
    known: Mapping[str, str] = field(default_factory=dict)
    """Columns of `types` whose values a batch has in any case, as those of a key: their names, and those in its data.
    """

    @property
    def width(self) -> int:
        """The bytes of an event, on average."""
        return int(self.columns.nbytes // max(1, self.columns.num_rows))

    def taken(self, data: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns of the events of a batch with this data, by name."""
        rows = data.column(DEFERRED)
        columns = zip(self.types.names, self.columns.columns, strict=True)
        found = {
            name: data.column(self.known[name]) if name in self.known else pc.take(column, rows, boundscheck=False)
            for name, column in columns
        }
        return {name: column.cast(self.types.field(name).type) for name, column in found.items()}


@dataclass(frozen=True)
class Batch:
    """Events as a host passes them to a matcher. A SortedMatcher needs them in order of (key, time, sequence); live
    matchers accept any order.

    `data` has these columns:

    - _key0, _key1, …: the key.
    - _subkey0, _subkey1, …: values by which the events of a key are divided further (`plan.tiers`), without being part
      of it. Usually there are none.
    - _time: event time (TIME_TYPE, no NULLs).
    - _finer: what was cut off the event time; there is usually none.
    - _sequence0, _sequence1, …: the sequence; the names have the directions (`Direction`).
    - _mask: lifted conditions as a 64-bit integer, bit i for Plan.bits[i].
    - _value0, _value1, …: lifted columns (Plan.values).
    - the chosen columns, with the prefix "_event.".
    - all columns, with the prefix "_row.", if there are conditions in Python (Plan.functions).

    A batch for several patterns has the bits and values of all of them (PlanSet), in as many words _mask, _mask1, … as
    needed.

    With `deferred`, `data` has _deferred in place of the chosen columns: the row of each event there. So a host can put
    events in order without moving columns that only the rows of matches need.
    """

    data: pa.RecordBatch
    deferred: DeferredColumns | None = None

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The events from `start` to `stop`, without a copy."""
        return self.with_data(self.data.slice(start, stop - start))

    def take(self, rows: pa.Array) -> Batch:
        return self.with_data(self.data.take(rows))

    def filter(self, which: pa.Array) -> Batch:
        """The events for which the array of booleans is true."""
        return self.with_data(self.data.filter(which))

    def with_data(self, data: pa.RecordBatch) -> Batch:
        """Events with other data, and the same deferred columns."""
        return Batch(data, self.deferred)

    @property
    def whole(self) -> Batch:
        """The same events with all columns in `data`."""
        # A cached property that returns `self` would make a cycle, and events are many: they would stay in memory until
        # Python's collector of cycles runs.
        return self if self.deferred is None else self._with_deferred

    @cached_property
    def _with_deferred(self) -> Batch:
        assert self.deferred is not None
        columns = dict(zip(self.data.schema.names, self.data.columns, strict=True))
        del columns[DEFERRED]
        return Batch(pa.RecordBatch.from_pydict(columns | self.deferred.taken(self.data)))

    def column(self, name: str) -> pa.Array:
        return (self.whole if name.startswith(EVENT_PREFIX) else self).data.column(name)

    @property
    def bytes(self) -> int:
        """About the number of bytes of the events."""
        return int(self.data.nbytes + (0 if self.deferred is None else len(self) * self.deferred.width))

    @property
    def keys(self) -> list[pa.Array]:
        return _prefixed(self.data, KEY_PREFIX)

    @property
    def sub_keys(self) -> list[pa.Array]:
        return _prefixed(self.data, SUB_KEY_PREFIX)

    @property
    def values(self) -> list[pa.Array]:
        return _prefixed(self.data, VALUE_PREFIX)

    @property
    def chosen(self) -> list[pa.Array]:
        """The event columns that appear in the output."""
        return _prefixed(self.whole.data, EVENT_PREFIX)

    @property
    def order(self) -> list[pa.Array]:
        """The columns that rank the events of a key. Events that agree in all of them have the same rank."""
        return [self.column(TIME), *self.finer, *self.sequence]

    @property
    def directions(self) -> list[Direction]:
        """The direction of each column of `order`."""
        sequence = [name for name in self.data.schema.names if name.startswith(SEQUENCE_PREFIX)]
        return [BY_NAME] * (1 + len(self.finer)) + [Direction.of(name) for name in sequence]

    @property
    def finer(self) -> list[pa.Array]:
        """The column of what was cut off the times, if times are cut."""
        return _prefixed(self.data, FINER)

    @property
    def sequence(self) -> list[pa.Array]:
        return _prefixed(self.data, SEQUENCE_PREFIX)

    def shown(self, row: int) -> dict[str, Any]:
        """The chosen columns of an event, for a message."""
        return {
            name.removeprefix(EVENT_PREFIX): value
            for name, value in row_shown(self.whole.data, row).items()
            if name.startswith(EVENT_PREFIX)
        }

    def with_column(self, name: str, values: pa.Array) -> Batch:
        return self.with_data(self.data.append_column(name, values))


def _prefixed(data: pa.RecordBatch, prefix: str) -> list[pa.Array]:
    return [data.column(i) for i, name in enumerate(data.schema.names) if name.startswith(prefix)]


def join(batches: Sequence[Batch]) -> Batch:
    """The batches, concatenated."""
    first, *others = batches
    return first.with_data(pa.concat_batches([batch.data for batch in batches])) if others else first
