"""Matchers that say what becomes of each start, and of each step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern, compile_starts
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.compile.stages.representation import choose_representation
from cepheid.events.batch import NUMBER, TIME, Batch, Schema
from cepheid.events.order import ordering_of
from cepheid.kernel.arrays import Visits
from cepheid.kernel.stages.emitted import NOTHING, Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.kernel.stages.observed.classes.kernel import ClassKernel
from cepheid.kernel.stages.observed.compiled import CountingKernel, CountingLookingBackKernel
from cepheid.kernel.stages.observed.kernel import ObservedKernel, TracedKernel
from cepheid.kernel.stages.observed.tally import Tally
from cepheid.kernel.stages.warm_up import warm_up
from cepheid.matchers.counts import Found
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.protocols import Stepping
from cepheid.matchers.reported_timeouts import NoTimeouts, TimeoutLog
from cepheid.matchers.stages.detector import Detector, plain_kernel
from cepheid.matchers.working_set import mask_of
from cepheid.output.funnel import Funnel
from cepheid.output.stages.funnel import funnel_of
from cepheid.output.stages.rows import row_schema
from cepheid.output.stages.trace import trace_of
from cepheid.output.trace import Trace
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.stages.near.probes import Probes, probes_of
from cepheid.plan.stages.plan import Plan

FEW_EVENTS = 20_000
"""With fewer events than this the reference step takes up to a second. To compile the counting kernel for the first
time takes 20.
"""


class _MatcherOn:
    """A FiniteMatcher of one pattern, on this detector."""

    def __init__(self, detector: Stepping, until: int | None, schema: Schema) -> None:
        self.relevant = 0
        """The number of events that it was given."""
        self._matcher = SortedMatcher(detector, until=until, ordering=ordering_of(schema))

    def process(self, batch: Batch) -> list[pa.Table]:
        """No rows; raises as a SortedMatcher."""
        self.relevant += len(batch)
        return self._matcher.process(batch)

    def finish(self) -> list[pa.Table]:
        """Ends the input; raises as `process`."""
        return self._matcher.finish()

    @property
    def counts(self) -> dict[str, int]:
        """The matcher's counts."""
        return self._matcher.counts


class ObservedMatcher(_MatcherOn):
    """A FiniteMatcher of one pattern. After `finish`, `funnel` has what became of its starts."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None, events: int | None = None) -> None:
        """`events` is the number of events to come; None: it is not known."""
        (self._pattern,) = patterns.each
        self._detector = _counting(self._pattern, few=events is not None and events < FEW_EVENTS)
        super().__init__(self._detector, until, patterns.plans.schema)

    def funnel(self, read: Mapping[str, int]) -> Funnel:
        """What became of the starts; `read` has the counts of the events read."""
        pattern, tally, kept_out = self._pattern.plan.pattern, self._detector.tally(), self._detector.kept_out
        return funnel_of(pattern, tally, kept_out=kept_out, relevant=self.relevant, read=read)


class TracedMatcher(_MatcherOn):
    """A FiniteMatcher of one pattern over the events of one key. After `finish`, `trace` gives
    its steps. Events come with their numbers.
    """

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None) -> None:
        (pattern,) = patterns.each
        self._plan, self._kernel = pattern.plan, TracedKernel(pattern)
        super().__init__(Detector(pattern, kernel_of=lambda _: self._kernel), until, patterns.plans.schema)

    @property
    def looked_at(self) -> Ints:
        """The numbers of the events, in their order."""
        return np.concatenate([np.empty(0, np.int64), *(one.column(NUMBER).to_numpy() for one in self._kernel.batches)])

    def probes(self, engine: SqlEngine) -> Probes:
        """What must be lifted for the events of `looked_at`."""
        return probes_of(self._plan, engine)

    def trace(self, probes: Probes, batch: Batch, zone: str) -> Trace:
        """All steps. `batch` has the events of `looked_at`, lifted for the probes; local times are those of `zone`."""
        return trace_of(self._plan, self._kernel.steps, self._kernel.batches, probes, batch, zone=zone)


def _counting(pattern: CompiledPattern, *, few: bool) -> _StepByStep | _ByClass:
    """The quickest way to count the starts. Counted by class, few starts may have any number of partial matches."""
    if not choose_representation(pattern).sets:
        return (_StepByStep if pattern.plan.pattern.without is None else _BeginWithout)(pattern, few=few)
    return _ByClass(pattern) if pattern.plan.limits == Limits() else _ByClassWithLimits(pattern)


class _WithoutRows(Detector):
    """A detector that makes no rows."""

    def _own(self, emitted: Emitted) -> Emitted:  # noqa: ARG002
        return NOTHING


class _StepByStep(_WithoutRows):
    """A detector that counts starts."""

    kept_out = 0
    """The number of starts that `begin_without` has forbidden."""

    def __init__(self, pattern: CompiledPattern, *, few: bool) -> None:
        super().__init__(pattern, kernel_of=_observed if few or pattern.plan.runs_in_python else _compiled)

    def tally(self) -> Tally:
        """The counts of all starts, once the last key is closed."""
        assert isinstance(self.kernel, CountingKernel | ObservedKernel)
        return self.kernel.tally()


class _BeginWithout(_StepByStep):
    """The same for patterns with `begin_without`: it also counts the starts that this has forbidden."""

    def __init__(self, pattern: CompiledPattern, *, few: bool) -> None:
        super().__init__(pattern, few=few)
        self._starting = _Starting(pattern.plan, few=few)

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """No rows; raises as a Detector."""
        self._starting.step(batch, visits)
        return super().step(batch, visits)

    @property
    def kept_out(self) -> int:  # type: ignore[override]  # here it is computed
        return self._starting.count - self.tally().starts


class _Starting(Detector):
    """Counts the events that start a partial match, also those that `begin_without` has forbidden."""

    def __init__(self, plan: Plan, *, few: bool) -> None:
        super().__init__(
            compile_starts(plan), kernel_of=plain_kernel if few or plan.runs_in_python else _plainly_compiled
        )
        self.count = 0

    def _own(self, emitted: Emitted) -> Emitted:
        self.count += len(emitted.end)
        return NOTHING


def _observed(pattern: CompiledPattern) -> ObservedKernel:
    return ObservedKernel(pattern)


def _compiled(pattern: CompiledPattern) -> CountingKernel:
    kind = CountingKernel if pattern.plan.pattern.without is None else CountingLookingBackKernel
    warm_up(kind)
    return kind(pattern.tables, pattern.untils)


def _plainly_compiled(pattern: CompiledPattern) -> CompiledKernel:
    warm_up(CompiledKernel)
    return CompiledKernel(pattern.tables)


class _ByClass:
    """Counts starts by class. Of a detector it has what a matcher for finite input needs."""

    kept_out = 0

    def __init__(self, pattern: CompiledPattern) -> None:
        self.schemas = [row_schema(pattern.plan)]
        self.reported: TimeoutLog = NoTimeouts()
        self.found = Found()
        self._kernel = ClassKernel(pattern)

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """No rows. One key is open at a time."""
        # Arrow's arrays are read-only. Numba would compile the kernel again for them.
        times, masks = np.array(batch.column(TIME).view(pa.int64())), mask_of(batch).copy()
        self._kernel.run(times, masks, visits)
        return [schema.empty_table() for schema in self.schemas]

    def tally(self) -> Tally:
        """The counts of all starts, once the last key is closed."""
        return self._kernel.tally()


class _ByClassWithLimits(_ByClass):
    """The same where limits are given. A class has no number of partial matches, so they are also found as `detect`
    finds them, and the same limits are passed at the same events.
    """

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern)
        self._detector = _WithoutRows(pattern)

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """No rows; raises LimitExceeded."""
        self._detector.step(batch, visits)
        return super().step(batch, visits)
