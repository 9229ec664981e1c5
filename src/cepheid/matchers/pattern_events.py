"""Events of several patterns, and which of them are one pattern's.

A host lifts the columns of all patterns at once. To each pattern's matcher it looks then as if its pattern were the
only one: it is given its own mask and values, and no event that cannot matter to it. So the order of ties, ordinals and
ids do not depend on the other patterns.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import MASK, ROW_PREFIX, VALUE_PREFIX, Batch
from cepheid.matchers.working_set import Mask, mask_of, matters
from cepheid.plan.stages.plan import WORD


class OwnEvents:
    """One pattern's events out of those of all."""

    def __init__(self, patterns: CompiledPlans, number: int, *, only_relevant: bool = True) -> None:
        """`only_relevant`: without the events that cannot matter to the pattern."""
        pattern, place = patterns.each[number], patterns.plans.places[number]
        relevant = patterns.relevant_to[number] if only_relevant else None
        self._words = sorted({0, *(bit // WORD for bit in place.bits)})
        self._bits = [(self._words.index(bit // WORD), bit % WORD) for bit in place.bits]
        self._relevant = None if relevant is None else [relevant[word] for word in self._words]
        self._values = {f"{VALUE_PREFIX}{i}": f"{VALUE_PREFIX}{value}" for i, value in enumerate(place.values)}
        self._not_taken = (MASK, VALUE_PREFIX) if pattern.plan.functions else (MASK, VALUE_PREFIX, ROW_PREFIX)

    def of(self, batch: Batch) -> Batch:
        """The pattern's, with the columns that its plan alone would give them."""
        masks = [mask_of(batch, word) for word in self._words]
        names = [name for name in batch.data.schema.names if not name.startswith(self._not_taken)]
        data = batch.data.select([*names, *self._values.values()])
        if self._relevant is not None:
            rows = matters(masks, self._relevant)
            if len(rows) < len(batch):
                data, masks = data.take(pa.array(rows)), [mask[rows] for mask in masks]
        own = pa.RecordBatch.from_arrays(data.columns, names=[*names, *self._values])
        return Batch(own.append_column(MASK, pa.array(self._mask(masks))))

    def _mask(self, masks: list[Mask]) -> Mask:
        own = np.zeros(len(masks[0]), np.int64)
        for place, (word, bit) in enumerate(self._bits):
            own |= (masks[word] >> bit & 1) << place
        return own
