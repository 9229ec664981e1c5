"""The runner of a pattern of stages, for hosts of live events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.runners import OrderedLiveMatcher, OrderedRunner
from cepheid.matchers.stages.detector import Detector
from cepheid.output.stages import key_id, open_schema, row_schema, stored_open_schema
from cepheid.plan.stages.plan import Plan


class StagesLiveMatcher(OrderedLiveMatcher):
    """A LiveMatcher that can drain, and whose open partial matches can be listed."""

    pattern: StagesRunner

    def drain(self, *, waiting: bool) -> None:
        detector = self.live.detector
        assert isinstance(detector, Detector)
        if waiting and (waited := detector.pattern.waited):
            self.live.waiting.mark(waited)
        detector.start_nothing()
        self.drains = True

    @property
    def no_match(self) -> dict[str, int]:
        detector = self.live.detector
        assert isinstance(detector, Detector)
        return detector.no_match

    def open_changes(self, most: int) -> OpenChanges:
        visited = self.live.visited
        assert visited is not None, "watch() comes first"
        self.live.visited = {}
        detector, numbers = self.live.detector, self.live.keys.number_of
        assert isinstance(detector, Detector)
        known = np.array(sorted(numbers[name] for name in visited if name in numbers), np.int32)
        rows = detector.stored_partial_matches(self.live.now, most, known)
        return OpenChanges([key_id(name) for name, was_open in visited.items() if was_open], rows)


@dataclass(frozen=True)
class StagesRunner(OrderedRunner):
    """A PatternRunner."""

    plan: Plan
    live_matcher = StagesLiveMatcher

    @cached_property
    def compiled(self) -> CompiledPattern:
        return compile_plan(self.plan)

    def detector(self) -> Detector:
        return Detector(self.compiled)

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @property
    def open_schema(self) -> pa.Schema:
        return open_schema(self.plan)

    @property
    def stored_open_schema(self) -> pa.Schema:
        return stored_open_schema(self.plan)
