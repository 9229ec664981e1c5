"""The matcher for finite input of patterns that are found once all events are there, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa

from cepheid.errors import in_pattern
from cepheid.events.batch import END, TIME, Batch, join
from cepheid.events.order import check_times
from cepheid.matchers.counts import MATCHER_COUNTS
from cepheid.matchers.parts import GatheredPart, GatheredRows
from cepheid.matchers.sliced import owned


class GatheredMatcher:
    """A FiniteMatcher that stores the events of all keys, and finds the patterns when the input ends."""

    def __init__(self, parts: Sequence[GatheredPart], *, width: int | None = None, until: int | None = None) -> None:
        """`width`: keys are divided into time slices of this width in microseconds, as in a SlicedMatcher. `until`: the
        time, in microseconds, at which the input ends; None: it is complete.
        """
        self._parts, self._width, self._until = parts, width, until
        self._batches: list[Batch] = []
        self._counts = Counter(dict.fromkeys(MATCHER_COUNTS, 0))

    def process(self, batch: Batch) -> list[pa.Table]:
        """Stores the events. Rows come only from `finish`.

        Raises:
            EventError: a time is out of range.
        """
        check_times(batch, TIME, END)
        self._batches.append(batch)
        return []

    def finish(self) -> list[pa.Table]:
        """The matches of each pattern, in the order of its part.

        Raises:
            ConditionError, LimitExceeded: with the pattern's name in the message.
        """
        if not self._batches:
            return []
        events, rows = join(self._batches), []
        for part in self._parts:
            with in_pattern(part.pattern or "", named=part.pattern is not None):
                found = self._found_by(part, part.own.of(events))
            rows.append(found.rows)
            self._counts.update(asdict(found.found))
        return rows

    def _found_by(self, part: GatheredPart, events: Batch) -> GatheredRows:
        if self._width is None:
            return part.in_all(events, self._until)
        return part.in_slice(events, owned(events, self._width), self._until)

    @property
    def counts(self) -> dict[str, int]:
        """A value for each of MATCHER_COUNTS."""
        return dict(self._counts)
