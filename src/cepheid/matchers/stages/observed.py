"""Matchers that also observe what becomes of each start, and each step."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.kernel.stages.observed.kernel import ObservedKernel, TracedKernel
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.stages.detector import Detector
from cepheid.output.funnel import Funnel
from cepheid.output.stages.funnel import funnel_of
from cepheid.output.stages.trace import trace_of
from cepheid.output.trace import Trace
from cepheid.plan.used_columns import lifted_columns


class _MatcherOn:
    """A FiniteMatcher of one pattern, on this kernel."""

    def __init__(self, pattern: CompiledPattern, kernel: PythonKernel, until: int | None) -> None:
        self.plan = pattern.plan
        self.relevant = 0
        """The number of events that it was given."""
        self._matcher = SortedMatcher(Detector(pattern, kernel=kernel), until=until)

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that the batch makes certain; raises as a SortedMatcher."""
        self.relevant += len(batch)
        return self._matcher.process(batch)

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows."""
        return self._matcher.finish()

    @property
    def counts(self) -> dict[str, int]:
        """The matcher's counts."""
        return self._matcher.counts


class ObservedMatcher(_MatcherOn):
    """A FiniteMatcher of one pattern. After `finish`, `funnel` has what became of its starts."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (pattern,) = patterns.each
        self._kernel = ObservedKernel(pattern)
        super().__init__(pattern, self._kernel, until)

    def funnel(self, read: Mapping[str, int]) -> Funnel:
        """What became of the starts; `read` has the counts of the events read."""
        return funnel_of(self.plan.pattern, self._kernel.starts, relevant=self.relevant, read=read)


class TracedMatcher(_MatcherOn):
    """A FiniteMatcher of one pattern over the events of one key. After `finish`, `trace` has its steps."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (pattern,) = patterns.each
        self._kernel = TracedKernel(pattern)
        super().__init__(pattern, self._kernel, until)

    @property
    def trace(self) -> Trace:
        """All steps."""
        return trace_of(self.plan.pattern, self._kernel.steps, self._kernel.batches, lifted_columns(self.plan))
