"""The parts of patterns of stages: one for each pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags
from cepheid.matchers.event_queue import with_bits
from cepheid.matchers.parts import Chosen
from cepheid.matchers.pattern_events import OwnEvents, events_of_each
from cepheid.matchers.stages.detector import Detector
from cepheid.matchers.working_set import mask_of
from cepheid.plan.division import TimeSlices
from cepheid.plan.stages.division.slices import slices_of
from cepheid.plan.undivided import Undivided


@dataclass(frozen=True)
class StagesPart:
    """An OrderedPart."""

    compiled: CompiledPattern
    own: OwnEvents
    pattern: str | None

    def detector(self) -> Detector:
        return Detector(self.compiled)

    @property
    def slices(self) -> TimeSlices | None:
        found = slices_of(self.compiled.plan)
        return None if isinstance(found, Undivided) else found

    def slice_detector(self, reports: Chosen | None = None) -> Detector:
        detector = Detector(self.compiled, reports=reports)
        detector.start_only_marked()
        return detector

    def marked(self, events: Batch, may_start: Flags) -> Batch:
        if self.compiled.starting is not None:  # a marked event wakes the start state, so no more than needed
            may_start = may_start & (mask_of(events) & np.int64(self.compiled.starting) != 0)
        return with_bits(events, np.where(may_start, self.compiled.may_start, 0))


def parts_of_stages(compiled: CompiledPlans) -> Sequence[StagesPart]:
    plans = compiled.plans
    own = events_of_each(plans, compiled.relevant_to)
    return [
        StagesPart(each, events, each.plan.pattern.name if plans.named else None)
        for each, events in zip(compiled.each, own, strict=True)
    ]
