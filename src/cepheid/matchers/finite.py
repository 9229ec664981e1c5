"""The matcher for finite input: events come sorted by key, so that only one key is open at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.identity import key_names
from cepheid.events.order import Ordered, Ordering
from cepheid.kernel.arrays import FOREVER, NO_TIME, Visits
from cepheid.matchers.protocols import Stepping


class OrderedMatcher:
    """Finds a detector's patterns in events in their final order, key by key.

    A key ends when the next one begins: then time advances to `until` (microseconds since 1970 UTC; None: every
    deadline expires and the input is complete).
    """

    def __init__(self, detector: Stepping, *, until: int | None = None) -> None:
        self._detector = detector
        self._until = FOREVER if until is None else until
        self._no_events: Batch | None = None
        """An empty batch with the events' columns, for the last visit of the last key; None before the first events."""

    def run(self, parts: Sequence[Ordered]) -> list[pa.Table]:
        """For each pattern, the rows that these events make certain, in the order of keys and emission.

        Raises:
            ConditionError: a condition fails on an event.
            SkipError: a match has no event to skip to, where the skip strategy has error_on_miss.
            LimitExceeded: a key has more open, or an instant completes more, than the limits allow.
        """
        rows = [[schema.empty_table() for schema in self._detector.schemas]]
        for part in parts:
            # A key ends where the next begins, so the first visit closes the key of the part before (at the very start
            # it visits nothing). The last key stays open: its events may go on in the next part.
            visits = self._visits(np.append(np.flatnonzero(part.key_start), len(part.batch)))
            visits.closes[-1], visits.until[-1] = False, NO_TIME
            rows.append(self._detector.step(part.batch, visits))
            if self._detector.reported.may_repeat:
                last = part.batch.slice(len(part.batch) - 1, len(part.batch))
                self._detector.reported.keep_only(key_names(last.keys, 1))
            self._no_events = part.batch.slice(0, 0)
        return _joined(rows)

    def advance(self, time: int) -> list[pa.Table]:
        """Advances time within the last key. Returns the rows that this makes certain."""
        if self._no_events is None:
            return [schema.empty_table() for schema in self._detector.schemas]
        none = np.zeros(1, np.int64)
        visit = Visits(none.astype(np.int32), none, np.full(1, time), np.zeros(1, np.bool_))
        return self._detector.step(self._no_events, visit)

    def end(self) -> list[pa.Table]:
        """Ends the last key. Returns its remaining rows."""
        if self._no_events is None:
            return [schema.empty_table() for schema in self._detector.schemas]
        return self._detector.step(self._no_events, self._visits(np.zeros(1, np.int64)))

    def _visits(self, ends: npt.NDArray[np.int64]) -> Visits:
        """Visits to one key after the other, up to these ends. Each closes its key unless the caller changes that. All
        keys share the number 0, because only one key is open at a time.
        """
        count = len(ends)
        return Visits(np.zeros(count, np.int32), ends, np.full(count, self._until), np.ones(count, np.bool_))


class SortedMatcher(OrderedMatcher):
    """The same for events that come key by key, and within a key in order of time and sequence. The `ordering`, see
    `ordering_of`, orders those that agree in both.
    """

    def __init__(self, detector: Stepping, *, until: int | None = None, ordering: Ordering) -> None:
        super().__init__(detector, until=until)
        self._ordering = ordering
        self._ties = 0

    def process(self, batch: Batch) -> list[pa.Table]:
        """For each pattern, the rows that these events make certain, in the order of keys and emission.

        Raises:
            EventError: the events are not in order.
            ConditionError, SkipError, LimitExceeded: as `run`.
        """
        return self._counted(self._ordering.process(batch))

    def finish(self) -> list[pa.Table]:
        """Ends the input, and so the last key. Returns its remaining rows."""
        return _joined([self._counted(self._ordering.finish()), self.end()])

    def _counted(self, parts: Iterable[Ordered]) -> list[pa.Table]:
        ordered = [*parts]
        self._ties += sum(part.ties for part in ordered)
        return self.run(ordered)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of results and drops, and "ties": the number of events with the same key, time and sequence as
        another event, so that their content orders them.
        """
        return {"ties": self._ties, **asdict(self._detector.found)}


def _joined(rows: Sequence[list[pa.Table]]) -> list[pa.Table]:
    """One table per pattern, joined from its parts."""
    return [pa.concat_tables(parts) for parts in zip(*rows, strict=True)]
