"""The runner of a pattern of occurrences, for hosts of live events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from cepheid.compile.occurrences.compiled import CompiledOccurrences, compile_occurrences
from cepheid.events.batch import Batch
from cepheid.kernel.parts import Joined, StatePart
from cepheid.matchers.conservative import ConservativeMatcher
from cepheid.matchers.occurrences.detector import WHY_UNLISTED, OccurrenceDetector
from cepheid.matchers.occurrences.division import joined_state
from cepheid.matchers.runners import OrderedLiveMatcher, OrderedRunner
from cepheid.matchers.watermark import Reached
from cepheid.output.occurrences import row_schema
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans


class OccurrenceLiveMatcher(OrderedLiveMatcher):
    """A LiveMatcher that forgets idle keys at every step, so that a shard with no other keys need not be stored."""

    def __init__(self, pattern: OccurrencesRunner, live: ConservativeMatcher) -> None:
        super().__init__(pattern, live)
        self._idle_from = self.live.forget_idle()

    def advance_time(self, time: int) -> pa.Table:
        rows = super().advance_time(time)
        self._idle_from = self.live.forget_idle()
        return rows

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:
        super().replay(log, reached, limits)
        self._idle_from = self.live.forget_idle()

    @property
    def due(self) -> int:
        return min(self.live.due, self._idle_from)

    @property
    def is_idle(self) -> bool:
        """What the events of a key said is remembered also while no occurrence is open."""
        return super().is_idle and not len(self.live.keys)


@dataclass(frozen=True)
class OccurrencesRunner(OrderedRunner):
    """A PatternRunner."""

    plan: OccurrencePlan
    why_unlisted = WHY_UNLISTED
    live_matcher = OccurrenceLiveMatcher

    @cached_property
    def compiled(self) -> CompiledOccurrences:
        return compile_occurrences(OccurrencePlans.of([self.plan], named=self.plan.named))

    def detector(self) -> OccurrenceDetector:
        return OccurrenceDetector(self.compiled)

    def joined_state(self, parts: Sequence[StatePart]) -> Joined:
        return joined_state(parts)

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)
