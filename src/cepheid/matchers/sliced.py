"""The matcher for finite input whose keys are divided into time slices of one width.

Slice n has the starts at times from n to before n + 1 widths. Its events are sorted as those of a key of its own: the
slice is the last sub-key. They include the events of its neighbours that its matches may need. Where matches wait for
earlier partial matches, those of the window before the slice are started, too; their results are left to their slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import in_pattern
from cepheid.events.batch import Batch
from cepheid.events.order import Ordered, Ordering
from cepheid.kernel.arrays import Flags
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.parts import OrderedPart


class SlicedMatcher:
    """A FiniteMatcher of patterns that can be divided into time slices, which settle."""

    def __init__(self, parts: Sequence[OrderedPart], *, width: int, until: int | None) -> None:
        """`width` is that of the slices, in microseconds."""
        self._parts = [_SlicedPart(part, width, until) for part in parts]

    def process(self, batch: Batch) -> list[pa.Table]:
        return [table for part in self._parts for table in part.process(batch)]

    def finish(self) -> list[pa.Table]:
        return [table for part in self._parts for table in part.finish()]

    @property
    def counts(self) -> dict[str, int]:
        """The sums over all slices, in which each event and each row counts once."""
        counts = [part.counts for part in self._parts]
        return {name: sum(count[name] for count in counts) for name in counts[0]}


class _SlicedPart:
    def __init__(self, part: OrderedPart, width: int, until: int | None) -> None:
        slices = part.slices
        assert slices is not None
        self._part, self._width = part, width
        self._started_before = slices.window if slices.waits else 0
        self._detector = part.slice_detector(partial(owned, width=width) if slices.waits else None)
        self._matcher = OrderedMatcher(self._detector, until=until)
        self._ordering = _SlicedOrdering(width)
        self._ties = 0

    def process(self, batch: Batch) -> list[pa.Table]:
        with in_pattern(self._part.pattern or "", named=self._part.pattern is not None):
            return self._run([*self._ordering.process(self._part.own.of(batch))])

    def finish(self) -> list[pa.Table]:
        with in_pattern(self._part.pattern or "", named=self._part.pattern is not None):
            last = self._run([*self._ordering.finish()])
            return [pa.concat_tables(tables) for tables in zip(last, self._matcher.end(), strict=True)]

    def _run(self, parts: Sequence[Ordered]) -> list[pa.Table]:
        self._ties += sum(one.ties for one in parts)
        return self._matcher.run([Ordered(self._marked(one.batch), one.key_start) for one in parts])

    def _marked(self, events: Batch) -> Batch:
        times, begin = times_of(events), _numbers(events) * self._width
        return self._part.marked(events, (times >= begin - self._started_before) & (times < begin + self._width))

    @property
    def counts(self) -> dict[str, int]:
        return {"ties": self._ties, **asdict(self._detector.found)}


class _SlicedOrdering(Ordering):
    """Counts the ties of each slice's own events."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self._width = width

    def counted(self, tied: Batch) -> int:
        return int(np.count_nonzero(owned(tied, self._width)))


def owned(events: Batch, width: int) -> Flags:
    """Which of the events are those of the slice itself."""
    found: Flags = times_of(events) // width == _numbers(events)
    return found


def _numbers(events: Batch) -> npt.NDArray[np.int64]:
    """(events,) the number of the slice."""
    numbers: npt.NDArray[np.int64] = events.sub_keys[-1].to_numpy()
    return numbers
