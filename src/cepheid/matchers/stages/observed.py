"""The matcher that also observes what becomes of each start."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.kernel.stages.observed.kernel import ObservedKernel
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.stages.detector import Detector
from cepheid.output.funnel import Funnel
from cepheid.output.stages.funnel import funnel_of


class ObservedMatcher:
    """A FiniteMatcher of one pattern. After `finish`, `funnel` has what became of its starts."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (self._pattern,) = patterns.each
        self._kernel = ObservedKernel(self._pattern)
        self._matcher = SortedMatcher(Detector(self._pattern, kernel=self._kernel), until=until)
        self._relevant = 0

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that the batch makes certain; raises as a SortedMatcher."""
        self._relevant += len(batch)
        return self._matcher.process(batch)

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows."""
        return self._matcher.finish()

    @property
    def counts(self) -> dict[str, int]:
        """The matcher's counts."""
        return self._matcher.counts

    def funnel(self, read: Mapping[str, int]) -> Funnel:
        """What became of the starts; `read` has the counts of the events read."""
        return funnel_of(self._pattern.plan.pattern, self._kernel.starts, relevant=self._relevant, read=read)
