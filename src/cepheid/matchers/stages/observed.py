"""The matcher that also observes what becomes of each start."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.kernel.stages.observed.kernel import ObservedKernel, TracedKernel
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.stages.detector import Detector
from cepheid.output.funnel import Funnel
from cepheid.output.stages.funnel import funnel_of
from cepheid.output.stages.trace import trace_of
from cepheid.output.trace import Trace
from cepheid.plan.used_columns import lifted_columns


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


class TracedMatcher:
    """A FiniteMatcher of one pattern over the events of one key. After `finish`, `trace` has its steps."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (self._pattern,) = patterns.each
        self._kernel = TracedKernel(self._pattern)
        self._matcher = SortedMatcher(Detector(self._pattern, kernel=self._kernel), until=until)

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that the batch makes certain; raises as a SortedMatcher."""
        return self._matcher.process(batch)

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows."""
        return self._matcher.finish()

    @property
    def counts(self) -> dict[str, int]:
        """The matcher's counts."""
        return self._matcher.counts

    @property
    def trace(self) -> Trace:
        """All steps."""
        plan = self._pattern.plan
        return trace_of(plan.pattern, self._kernel.steps, self._kernel.batches, lifted_columns(plan))
