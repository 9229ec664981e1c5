"""Runs the observed reference step for all keys, in place of the kernel that detection chooses."""

from __future__ import annotations

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Visits
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.observed.fates import Start
from cepheid.kernel.stages.observed.key_matcher import ObservedKeyMatcher
from cepheid.kernel.stages.observed.tally import Tally, tally_of
from cepheid.kernel.stages.observed.trace import Step, TracedKeyMatcher
from cepheid.kernel.stages.python_kernel import KeyMatcher, PythonKernel


class TracedKernel(PythonKernel):
    """A PythonKernel with all steps that it has taken, and the events that it was given."""

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern)
        self.steps: list[Step] = []
        self.batches: list[Batch] = []

    def run(self, batch: Batch, visits: Visits) -> Emitted:
        self.batches.append(batch)
        return super().run(batch, visits)

    def _new_key(self) -> KeyMatcher:
        return TracedKeyMatcher(self._pattern, self.bounds, [], self.steps)


class ObservedKernel(PythonKernel):
    """A PythonKernel with the starts of all keys that are closed."""

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern)
        self.starts: list[Start] = []

    def tally(self) -> Tally:
        """The counts of all starts. Call it after the last key is closed."""
        return tally_of(self.starts)

    def _new_key(self) -> KeyMatcher:
        return ObservedKeyMatcher(self._pattern, self.bounds, self.starts)
