"""The matcher of occurrences for finite inputs: events come sorted by key, so that one key is open at a time."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa

from cepheid.compile.occurrences.compiled import compile_occurrences
from cepheid.events.batch import Batch
from cepheid.events.order import Ordered, Ordering
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Visits
from cepheid.matchers.occurrences.detector import OccurrenceDetector
from cepheid.plan.occurrences.plans import OccurrencePlans


class OccurrenceMatcher:
    """Finds patterns in events that come key by key, each key's in order of time and sequence.

    A key is over when the next one begins: then time passes to `until` (microseconds since 1970 UTC; None: for ever).
    """

    def __init__(self, plans: OccurrencePlans, *, until: int | None = None) -> None:
        self._detector = OccurrenceDetector(compile_occurrences(plans))
        self._until = FOREVER if until is None else until
        self._ordering = Ordering()
        self._last: Batch | None = None

    def process(self, batch: Batch) -> list[pa.Table]:
        """For each plan the rows that these events make certain, in the order of keys and emission.

        Raises:
            EventError: the events are not in order.
            ConditionError: a condition fails on an event.
            LimitExceeded: a key has more open, or an instant completes more, than the plan's limits allow.
        """
        return self._run([*self._ordering.process(batch)])

    def finish(self) -> list[pa.Table]:
        """No more events come: the last key is over too."""
        rows = [self._run([*self._ordering.finish()])]
        if self._last is not None:
            rows.append(self._detector.steps(self._last, self._visits(np.zeros(1, np.int64))))
        return _behind_each_other(rows)

    @property
    def counts(self) -> dict[str, int]:
        """What was found; and "ties": events that agree with another in key, time and sequence."""
        return {"ties": self._ordering.ties, **asdict(self._detector.found)}

    def _run(self, parts: list[Ordered]) -> list[pa.Table]:
        rows = [[schema.empty_table() for schema in self._detector.schemas]]
        for part in parts:
            visits = self._visits(np.append(np.flatnonzero(part.key_start), len(part.batch)))
            visits.closes[-1], visits.until[-1] = False, NO_TIME
            rows.append(self._detector.steps(part.batch, visits))
            self._last = part.batch.slice(0, 0)
        return _behind_each_other(rows)

    def _visits(self, ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Visits:
        """Visits to one key after the other, each of which is over then; one is open at a time, so all have one
        number.
        """
        count = len(ends)
        return Visits(np.zeros(count, np.int32), ends, np.full(count, self._until), np.ones(count, np.bool_))


def _behind_each_other(rows: list[list[pa.Table]]) -> list[pa.Table]:
    return [pa.concat_tables(parts) for parts in zip(*rows, strict=True)]
