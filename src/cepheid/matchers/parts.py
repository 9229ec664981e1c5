"""Finite input in parts that several processes can work on, each with a detector of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags
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
