"""The events that the matchers of several patterns hold, each stored once.

A matcher has the numbers of its events, and what its kernel reads of them as arrays. The order of its events is its
own: events of equal times are in the order of their content, which is only what the pattern reads. So a pattern finds
the same as alone. It also forgets as alone; an event is dropped here once no matcher has its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import HELD, MASK, Batch
from cepheid.kernel.arrays import Events, Int32s
from cepheid.matchers.pattern_events import PatternEvents
from cepheid.matchers.snapshot import with_columns
from cepheid.matchers.working_set import Compiled, EventArrays, EventParts

LEAST_HELD = 1 << 15
"""Up to this many held events, no search is made for those that are not needed."""


class SharedEvents:
    """The events, in the form that all patterns share."""

    def __init__(self, columns: pa.Schema) -> None:
        """`columns` are those of the events."""
        self._columns = columns
        self._events = EventParts()
        self._sets: dict[int, SharedWorkingSet] = {}
        self._most = LEAST_HELD

    def __len__(self) -> int:
        return len(self._events)

    def add(self, batch: Batch) -> Batch:
        """Adds the events. Returns them with their numbers."""
        first = len(self)
        self._events.add(batch)
        return _numbered(batch, np.arange(first, len(self), dtype=np.int32))

    def take(self, numbers: Int32s) -> Batch:
        """The events with these numbers."""
        if (np.diff(numbers) > 0).all():
            return self._events.take(numbers)
        order = np.argsort(numbers)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return self._events.take(numbers[order]).take(pa.array(place))

    def register(self, number: int, new: SharedWorkingSet) -> None:
        """The pattern with this number holds events in `new` from now on."""
        self._sets[number] = new

    def forget(self) -> None:
        """Drops the events that no pattern needs."""
        is_held = np.zeros(len(self), np.bool_)
        for one in self._sets.values():
            one.forget_in_matcher()
            is_held[one.numbers] = True
        place = np.cumsum(is_held, dtype=np.int32) - 1
        self._events.keep(np.flatnonzero(is_held).astype(np.int32))
        for one in self._sets.values():
            one.numbers = place[one.numbers]
        self._most = max(LEAST_HELD, 2 * len(self))

    def forget_if_many(self) -> None:
        """As `forget`, if many events were added since."""
        if len(self) > self._most:
            self.forget()

    @property
    def stored(self) -> pa.RecordBatch:
        """The events, for a snapshot."""
        held = self._events.all
        return pa.RecordBatch.from_pylist([], self._columns) if held is None else held.data

    def restore(self, events: pa.RecordBatch) -> None:
        """Continues with the events of a snapshot."""
        self._events.add(Batch(with_columns(events, self._columns, "the snapshot's events")))

    def adopt(self, own: PatternEvents, batch: Batch) -> Batch:
        """Adds events that only one pattern holds, in its form. Returns them with their numbers. An event that several
        patterns held in an older snapshot is stored for each of them until it is forgotten.
        """
        first = len(self)
        self._events.add(own.shared(batch, self._columns))
        return _numbered(batch, np.arange(first, len(self), dtype=np.int32))


class SharedWorkingSet:
    """The events of one matcher, as a WorkingSet has them."""

    def __init__(self, pattern: Compiled, share: Share, forget: Callable[[], None]) -> None:
        """`forget` makes the matcher forget what it does not need; it then calls `keep`."""
        self.forget_in_matcher = forget
        self.numbers = np.zeros(0, np.int32)
        """The number of the event at each position."""
        self._share = share
        self._arrays = EventArrays(pattern)
        share.events.register(share.number, self)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, batch: Batch) -> None:
        self.numbers = np.concatenate([self.numbers, batch.column(HELD).to_numpy()])
        self._arrays.add(batch)

    def take(self, positions: Int32s) -> Batch:
        return self._share.own.of(self._share.events.take(self.numbers[positions]))

    def keep(self, positions: Int32s) -> None:
        self.numbers = self.numbers[positions]
        self._arrays.keep(positions)

    def shown(self, position: int) -> dict[str, Any]:
        return self.take(np.array([position], np.int32)).shown(0)

    @property
    def events(self) -> Events:
        return self._arrays.events

    def restored(
        self, own: pa.RecordBatch | None, columns: pa.Schema, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Batch | None:
        """The events of a snapshot, to be added, with these columns; None if it has none. One that was written before
        events were shared has the matcher's `own`.
        """
        if own is not None:
            held = with_columns(_with_mask_as_in(own, columns), columns, "the snapshot's events")
            return self._share.events.adopt(self._share.own, Batch(held))
        numbers = arrays.get("held", np.zeros(0, np.int32))
        is_plain = numbers.dtype.kind == "i" and numbers.ndim == 1
        if not is_plain or ((numbers < 0) | (numbers >= len(self._share.events))).any():
            raise SnapshotError("the snapshot's patterns hold events that it does not contain")
        if not len(numbers):
            return None
        held = numbers.astype(np.int32)
        return _numbered(self._share.own.of(self._share.events.take(held)), held)


class Share(NamedTuple):
    """The part of a pattern in shared events."""

    events: SharedEvents
    own: PatternEvents
    number: int
    """The pattern's number."""


def _with_mask_as_in(events: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The events with a mask of the type in these columns. Patterns that lifted theirs alone had another one."""
    place, mask = events.schema.get_field_index(MASK), columns.field(MASK)
    return events if place < 0 else events.set_column(place, mask, events.column(place).cast(mask.type, safe=False))


def _numbered(batch: Batch, numbers: Int32s) -> Batch:
    return batch.with_column(HELD, pa.array(numbers))
