"""Patterns of stages in finite inputs."""

from __future__ import annotations

import pyarrow as pa

from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.errors import in_pattern
from cepheid.events.batch import Batch
from cepheid.events.order import ordering_of
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.pattern_events import events_of_each
from cepheid.matchers.stages.detector import Detector, KernelOf


class SortedMatchers:
    """One matcher per pattern; each batch goes to all of them."""

    def __init__(self, patterns: CompiledPlans, *, until: int | None = None, kernel_of: KernelOf | None = None) -> None:
        """Without `kernel_of` the kernels are chosen."""
        plans = patterns.plans
        self._named = plans.named
        self._names = [plan.pattern.name for plan in plans.each]
        self._matchers = [
            SortedMatcher(Detector(pattern, kernel_of=kernel_of), until=until, ordering=ordering_of(plans.schema))
            for pattern in patterns.each
        ]
        self._own = events_of_each(plans, patterns.relevant_to)

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows of each pattern; `batch` has the lifted columns of all patterns.

        Raises:
            as a SortedMatcher, with the pattern's name in the message.
        """
        rows: list[pa.Table] = []
        for name, matcher, own in zip(self._names, self._matchers, self._own, strict=True):
            with in_pattern(name, named=self._named):
                rows += matcher.process(own.of(batch))
        return rows

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows."""
        rows: list[pa.Table] = []
        for name, matcher in zip(self._names, self._matchers, strict=True):
            with in_pattern(name, named=self._named):
                rows += matcher.finish()
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """The sums of the matchers' counts."""
        counts = [matcher.counts for matcher in self._matchers]
        return {name: sum(count[name] for count in counts) for name in counts[0]}
