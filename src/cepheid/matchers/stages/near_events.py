"""The events of near misses: ordered once, then the part of them that each changed pattern reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import EVENT_PREFIX, MASK, NUMBER, ROW_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.events.order import Ordered, ordering_of
from cepheid.matchers.pattern_events import PatternEvents
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.plan.stages.plans import Plans

SOURCE_NUMBER = f"{EVENT_PREFIX}{ROW_NUMBER}"
"""The column with the number of the event among those given. Messages show it as the event."""
_KEY_NUMBER = "_number_of_key"
_LIFTED = (MASK, VALUE_PREFIX)
_ASIDE = "_aside"
_NEEDED = (TIME, SOURCE_NUMBER, _KEY_NUMBER, ROW_PREFIX, *_LIFTED)


class SharedEvents:
    """Orders the events of all patterns as those of the first pattern alone would be ordered."""

    def __init__(self, plans: Plans) -> None:
        self._first = PatternEvents(plans.places[0], None, with_rows=False)
        self._ordering = ordering_of(plans.schema)
        self._keys = 0
        self._numbers = [np.empty(0, np.int64)]
        self.size = 0
        """One more than the largest number of an event so far."""

    def process(self, batch: Batch) -> Iterator[Batch]:
        """The events whose order is certain now; raises as an Ordering."""
        return map(self._finished, self._ordering.process(self._as_first(batch)))

    def finish(self) -> Iterator[Batch]:
        """The events that are still held back."""
        return map(self._finished, self._ordering.finish())

    @cached_property
    def places(self) -> Ints:
        """For each number of an event its place in the order, after all events; -1 for numbers without an event."""
        numbers = np.concatenate(self._numbers)
        places = np.full(self.size, -1, np.int64)
        places[numbers] = np.arange(len(numbers))
        return places

    def _as_first(self, batch: Batch) -> Batch:
        """The events with what the first pattern has lifted. What all patterns have is put aside."""
        own = self._first.of(batch).data
        for field, column in zip(batch.data.schema, batch.data.columns, strict=True):
            if field.name.startswith((*_LIFTED, ROW_PREFIX)):
                own = own.append_column(f"{_ASIDE}{field.name}", column)
        return batch.with_data(own)

    def _finished(self, part: Ordered) -> Batch:
        """The columns that matchers need, with the lifted ones of all patterns, and the numbers of the keys."""
        data = part.batch.data
        columns = {
            name.removeprefix(_ASIDE): column
            for name, column in zip(data.schema.names, data.columns, strict=True)
            if not name.startswith(_LIFTED)
        }
        self._numbers.append(numbers := columns[NUMBER].to_numpy())
        self.size = max(self.size, int(numbers.max(initial=-1)) + 1)
        keys = np.cumsum(part.key_start, dtype=np.int64) + self._keys
        self._keys = int(keys[-1])
        columns |= {SOURCE_NUMBER: columns[NUMBER], _KEY_NUMBER: pa.array(keys)}
        needed = {name: column for name, column in columns.items() if name.startswith(_NEEDED)}
        return Batch(pa.RecordBatch.from_pydict(needed))


class OwnEvents:
    """The events of one pattern among those of SharedEvents. Patterns that differ in neither conditions nor relevance,
    as one with a longer window, can share it.
    """

    def __init__(self, of: PatternEvents) -> None:
        self._of = of
        self._last_key = 0
        self._shared: Batch | None = None
        self._found: Ordered | None = None

    def of(self, shared: Batch) -> Ordered:
        """The pattern's events; those of the same batch are found once."""
        if self._found is None or self._shared is not shared:
            self._shared, self._found = shared, self._own(shared)
        return self._found

    def _own(self, shared: Batch) -> Ordered:
        own = self._of.of(shared)
        keys: Ints = own.column(_KEY_NUMBER).to_numpy()
        key_start = np.diff(keys, prepend=self._last_key) > 0
        self._last_key = int(keys[-1]) if len(keys) else self._last_key
        return Ordered(own, key_start)
