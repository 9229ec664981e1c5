"""The only part of patterns of occurrences: one detector finds them all."""

from __future__ import annotations

from dataclasses import dataclass, field

from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags
from cepheid.matchers.occurrences.detector import OccurrenceDetector
from cepheid.matchers.parts import Chosen, SliceDetector
from cepheid.matchers.pattern_events import AllEvents, OwnEvents


@dataclass(frozen=True)
class OccurrencesPart:
    """An OrderedPart."""

    compiled: CompiledOccurrences
    own: OwnEvents = field(default_factory=AllEvents)
    pattern: str | None = None

    def detector(self) -> OccurrenceDetector:
        return OccurrenceDetector(self.compiled)

    @property
    def slices(self) -> None:
        return None

    def slice_detector(self, reports: Chosen | None = None) -> SliceDetector:
        raise AssertionError(f"occurrences are divided by key only, not for {reports}")

    def marked(self, events: Batch, may_start: Flags) -> Batch:
        raise AssertionError(f"occurrences are divided by key only, not {len(events)} events at {may_start}")
