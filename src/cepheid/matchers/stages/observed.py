"""Matchers that also observe what becomes of each start, and each step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import NUMBER, Batch
from cepheid.kernel.stages.observed.kernel import ObservedKernel, TracedKernel
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.stages.detector import Detector
from cepheid.output.funnel import Funnel
from cepheid.output.stages.funnel import funnel_of
from cepheid.output.stages.trace import trace_of
from cepheid.output.trace import Trace
from cepheid.plan.engine import SqlEngine
from cepheid.plan.stages.near.probes import Probes, probes_of


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
    """A FiniteMatcher of one pattern over the events of one key. After `finish`, `trace` gives
    its steps. Events come with their numbers.
    """

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (pattern,) = patterns.each
        self._kernel = TracedKernel(pattern)
        super().__init__(pattern, self._kernel, until)

    @property
    def looked_at(self) -> Ints:
        """The numbers of the events, in their order."""
        return np.concatenate([np.empty(0, np.int64), *(one.column(NUMBER).to_numpy() for one in self._kernel.batches)])

    def probes(self, engine: SqlEngine) -> Probes:
        """What must be lifted for the events of `looked_at`."""
        return probes_of(self.plan, engine)

    def trace(self, probes: Probes, batch: Batch) -> Trace:
        """All steps. `batch` has the events of `looked_at`, lifted for the probes."""
        return trace_of(self.plan, self._kernel.steps, self._kernel.batches, probes, batch)
