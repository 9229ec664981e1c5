"""Converts batches to events of the reference step."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cepheid.errors import EventError
from cepheid.events.batch import MASK, ROW_PREFIX, TIME, Batch
from cepheid.kernel.reference_events import Event
from cepheid.kernel.scripts.python_functions import SeenEvent, Value
from cepheid.kernel.scripts.python_values import script_values

_AT_ONCE = 4096
"""How many events are converted to Python values at a time: these take far more memory than Arrow's."""


def events_of(columns: frozenset[int], batch: Batch, first: int) -> Iterator[Event]:
    """The events of a batch, the first at position `first`. Their lifted columns are those in `columns`; others are
    None.
    """
    for start in range(0, len(batch), _AT_ONCE):
        part = batch.slice(start, min(start + _AT_ONCE, len(batch)))
        times = part.column(TIME).cast(pa.int64()).to_pylist()
        masks = part.column(MASK).to_pylist()
        nothing = [None] * len(part)
        values = [script_values(column) if i in columns else nothing for i, column in enumerate(part.values)]
        if _has_rows(part):
            values.append(_seen(part))
        each = zip(*values, strict=True) if values else [()] * len(part)
        for i, rest in enumerate(zip(times, masks, each, strict=True)):
            yield Event(first + start + i, *rest)


def _has_rows(batch: Batch) -> bool:
    """Whether the batch has the columns that functions see. An event then has them as its last value."""
    return any(name.startswith(ROW_PREFIX) for name in batch.data.schema.names)


def _seen(batch: Batch) -> list[SeenEvent]:
    names = [name for name in batch.data.schema.names if name.startswith(ROW_PREFIX)]
    known = [name.removeprefix(ROW_PREFIX) for name in names]
    columns = [_seen_values(batch.column(name), shown) for name, shown in zip(names, known, strict=True)]
    return [SeenEvent(zip(known, row, strict=True)) for row in zip(*columns, strict=True)]


def _seen_values(column: pa.Array, name: str) -> list[Value]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError) as error:
        message = f"a value in column {name!r} cannot become a Python value, as functions need it: {error}"
        raise EventError(f"{message}. Is it a placeholder? Make it NULL") from error
