"""Finite input in parts that several processes can work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags
from cepheid.matchers.counts import Found
from cepheid.matchers.event_queue import with_bits
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.matchers.protocols import Detector
from cepheid.plan.division import TimeSlices

Chosen: TypeAlias = Callable[[Batch], Flags]
"""Which of these events are chosen."""


class SliceDetector(Detector, Protocol):
    """A detector of one key's events, in which only marked events start partial matches."""

    def open_starts(self) -> Batch:
        """The first events of the open partial matches and of the matches that wait, in their order. At least one event
        must have come.
        """


class OrderedPart(Protocol):
    """One or more patterns of a call, found by one detector in their own events, which are in order."""

    @property
    def own(self) -> OwnEvents:
        """Selects the events of these patterns from those of all."""

    @property
    def pattern(self) -> str | None:
        """The pattern that errors name; None if they name none, or the detector names it itself."""

    def detector(self) -> Detector:
        """A new detector of whole keys."""

    @property
    def slices(self) -> TimeSlices | None:
        """How keys are divided into time slices; None: not at all."""

    def slice_detector(self, reports: Chosen | None = None) -> SliceDetector:
        """A new detector that starts only with marked events, for parts with `slices`. With `reports`, it reports only
        results whose first event is chosen.
        """

    def marked(self, events: Batch, may_start: Flags) -> Batch:
        """The events, with marks on these."""


class GatheredRows(NamedTuple):
    """The rows of a part, in their final order, and their counts."""

    rows: pa.Table
    found: Found


@dataclass(frozen=True)
class GatheredPart:
    """One pattern of a call, found once all events of some keys, or of a slice, are there. They are in any order."""

    own: OwnEvents
    """Selects the events of the pattern from those of all."""
    pattern: str | None
    """The pattern that errors name; None if they name none."""
    slices: TimeSlices | None
    """How keys are divided into time slices; None: not at all."""
    may_start: int
    """The bit that marks the events of a slice that may be first in a match."""
    find: Callable[[Batch, int, int | None], GatheredRows]
    """The rows in these events. If a bit is given, only those whose first event has it. If a time is given, in
    microseconds, the input ends then, and only those that no later event could forbid.
    """

    def in_all(self, events: Batch, until: int | None = None) -> GatheredRows:
        return self.find(events, 0, until)

    def in_slice(self, events: Batch, may_start: Flags, until: int | None = None) -> GatheredRows:
        """The rows in the events of a slice and its neighbours, that start with one of these."""
        return self.find(with_bits(events, np.where(may_start, self.may_start, 0)), self.may_start, until)


Part: TypeAlias = OrderedPart | GatheredPart
