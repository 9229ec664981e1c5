"""The events of one step, read once for all patterns that read them in the same way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.events.batch import MASK, Batch
from cepheid.hosts.duckdb.engine import Evaluated
from cepheid.hosts.durable.step.alike import Alike, alike
from cepheid.hosts.durable.step.screen import Cells, Comparisons, cells_of, masks_of
from cepheid.hosts.in_process.prepare import TimedEvents, as_batch, usable
from cepheid.plan.plan_set import PatternPlan, Words
from cepheid.plan.used_columns import used_columns
from cepheid.requests.request import Nulls


class Reading:
    """How a pattern reads events."""

    def __init__(self, plan: PatternPlan, zone: str, nulls: Nulls) -> None:
        self.plan = plan
        self.zone = zone
        self.nulls = nulls
        self.used = used_columns(plan)
        """The columns of the events that it reads."""
        value = plan.schema, plan.columns, (*self.used,), bool(plan.functions), zone, nulls
        self.alike: Alike = alike(value)

    def usable(self, events: TimedEvents) -> TimedEvents:
        """The events that can be ordered.

        Raises:
            EventError: there are others, and NULLs are an error.
        """
        given, _ = usable(TimedEvents(events.events.select(self.used), events.times), self.plan.schema, self.nulls)
        return given


class _Read(NamedTuple):
    batch: Batch
    """The events with an empty mask."""
    cells: Cells


class StepEvents:
    """The events of one step."""

    def __init__(self, events: TimedEvents) -> None:
        self.events = events
        self._read: dict[Alike, _Read] = {}

    def __len__(self) -> int:
        return len(self.events)

    def meeting(self, reading: Reading, conditions: tuple[Comparisons, ...], relevant: Words | None) -> Batch:
        """The events with the mask of these conditions that have at least one of the relevant bits; None: all."""
        if reading.alike not in self._read:
            self._read[reading.alike] = _read(reading, reading.usable(self.events))
        batch, cells = self._read[reading.alike]
        rows, mask = masks_of(conditions, None if relevant is None else relevant[0], cells)
        if rows is not None and len(rows) < len(batch):
            batch = batch.take(pa.array(rows))
        place = batch.data.schema.get_field_index(MASK)
        return Batch(batch.data.set_column(place, MASK, pa.array(mask)))


def _read(reading: Reading, given: TimedEvents) -> _Read:
    nothing = Evaluated((np.zeros(len(given), np.uint64),), ())
    return _Read(as_batch(given, nothing, reading.plan, reading.zone), cells_of(given.events))
