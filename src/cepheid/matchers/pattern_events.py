"""Projections: the events of one pattern, from the shared events of several patterns.

A host lifts the columns of all patterns at once. Each pattern's matcher then gets only its own mask and values, and no
event that cannot matter to it, as if its pattern were the only one. So the order of ties, the ordinals and the ids do
not depend on the other patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cepheid.events.batch import MASK, ROW_PREFIX, VALUE_PREFIX, Batch, mask_column
from cepheid.matchers.working_set import Mask, mask_of, rows_with_any
from cepheid.plan.condition_bits import WORD
from cepheid.plan.plan_set import ColumnMap, PlanSet, Words


class OwnEvents(Protocol):
    """Selects one pattern's events from the shared ones."""

    def of(self, batch: Batch) -> Batch: ...


class AllEvents:
    """The events of the only pattern: all of them."""

    def of(self, batch: Batch) -> Batch:
        return batch


class PatternEvents:
    """The events of one of several patterns."""

    def __init__(self, place: ColumnMap, relevant: Words | None, *, with_rows: bool) -> None:
        """`relevant` has bits of the shared mask: an event with none of them cannot matter to the pattern. None: every
        event may matter. `with_rows` says whether the pattern has functions, which see all columns.
        """
        self._words = sorted({0, *(bit // WORD for bit in place.bits)})
        self._bits = [(self._words.index(bit // WORD), bit % WORD) for bit in place.bits]
        self._relevant = None if relevant is None else [relevant[word] for word in self._words]
        self._values = {f"{VALUE_PREFIX}{i}": f"{VALUE_PREFIX}{value}" for i, value in enumerate(place.values)}
        self._not_taken = (MASK, VALUE_PREFIX) if with_rows else (MASK, VALUE_PREFIX, ROW_PREFIX)

    def of(self, batch: Batch) -> Batch:
        """The pattern's events, with the columns that they would have if its plan were the only one."""
        masks = [mask_of(batch, word) for word in self._words]
        names = [name for name in batch.data.schema.names if not name.startswith(self._not_taken)]
        data = batch.data.select([*names, *self._values.values()])
        if self._relevant is not None:
            rows = rows_with_any(masks, self._relevant)
            if len(rows) < len(batch):
                data, masks = data.take(pa.array(rows)), [mask[rows] for mask in masks]
        own = pa.RecordBatch.from_arrays(data.columns, names=[*names, *self._values])
        return batch.with_data(own.append_column(MASK, pa.array(self._mask(masks))))

    def shared(self, batch: Batch, columns: pa.Schema) -> Batch:
        """The pattern's events in the form of shared ones, with these columns. They have no bits and values of other
        patterns.
        """
        masks = {mask_column(word): np.zeros(len(batch), np.int64) for word in self._words}
        for place, (word, bit) in enumerate(self._bits):
            masks[mask_column(self._words[word])] |= (mask_of(batch) >> place & 1) << bit
        own = {shared: name for name, shared in self._values.items()}
        found = []
        for field in columns:
            if field.name.startswith(MASK):
                column = pa.array(masks.get(field.name, np.zeros(len(batch), np.int64)))
            elif field.name.startswith(VALUE_PREFIX):
                column = batch.column(own[field.name]) if field.name in own else pa.nulls(len(batch), field.type)
            else:
                column = batch.column(field.name)
            found.append(column.cast(field.type))
        return Batch(pa.RecordBatch.from_arrays(found, schema=columns))

    def _mask(self, masks: list[Mask]) -> Mask:
        own = np.zeros(len(masks[0]), np.int64)
        for place, (word, bit) in enumerate(self._bits):
            own |= (masks[word] >> bit & 1) << place
        return own


def events_of_each(plans: PlanSet[Any], relevant_to: Sequence[Words | None]) -> Sequence[OwnEvents]:
    """One selection of events for each pattern. A single pattern gets all events, unchanged."""
    return [AllEvents()] if len(plans.each) == 1 else projections(plans, relevant_to)


def projections(plans: PlanSet[Any], relevant_to: Sequence[Words | None]) -> list[PatternEvents]:
    """The projection for each pattern, also if there is only one."""
    return [
        PatternEvents(place, relevant, with_rows=bool(plan.functions))
        for plan, place, relevant in zip(plans.each, plans.places, relevant_to, strict=True)
    ]
