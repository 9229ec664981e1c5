"""What a shard of a stream needs of a matcher, and how patterns of stages give it (others: `stream_tree_matchers`)."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.events.batch import Batch, join
from cepheid.matchers.conservative import LiveMatcher
from cepheid.matchers.event_queue import times_of
from cepheid.output.stages import row_schema
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.stages.plan import Plan
from cepheid.requests.request import OPENED, STREAM_COUNTS


class ShardMatcher(Protocol):
    """The matcher of all keys of a shard."""

    @property
    def pattern(self) -> ShardPattern: ...

    def advance_time(self, time: int) -> pa.Table:
        """The rows that are certain as no event up to `time` (microseconds) comes any more."""

    def process(self, events: Batch) -> pa.Table:
        """The rows that these events make, which do not depend on their order. Those whose time has passed are late."""

    def net(self, rows: pa.Table) -> pa.Table:
        """Of all rows of a micro-batch those that it leaves."""

    def replay(self, log: Iterable[tuple[int, Batch]], passed: int, limits: Limits) -> None:
        """Takes events that came before, each batch when time had passed to where it says; then time passes. What comes
        of it was told. These limits count, and behind it those of the pattern.
        """

    def renewed(self) -> pa.Table | None:
        """The rows that come of it that the pattern is not quite the one that the matcher was kept for; None where it
        is, in all that matters to what was kept.
        """

    @property
    def now(self) -> int:
        """Microseconds: time has passed to here."""

    @property
    def due(self) -> int:
        """Microseconds: when time passes it, there is something to do; FOREVER if there is nothing."""

    @property
    def open(self) -> int:
        """How many partial matches, occurrences or matches that are not final are open."""

    @property
    def is_idle(self) -> bool:
        """Whether it need not be kept: nothing is open, nothing waits."""

    @property
    def counts(self) -> dict[str, int]:
        """What was found so far: STREAM_COUNTS, but for what is opened."""

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """As LiveMatcher's."""


class ShardPattern(Protocol):
    """A pattern that a stream looks for, as it travels to the workers."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""

    def matcher(self) -> ShardMatcher:
        """A new one."""

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[ShardMatcher, dict[str, Any]]:
        """As LiveMatcher's."""


@lru_cache(maxsize=1024)
def shard_pattern(packed: bytes) -> ShardPattern:
    """Of a pickled Plan, or a pickled pattern. It is one and the same for all calls in a worker, compiled once."""
    loaded: Plan | ShardPattern = pickle.loads(packed)  # noqa: S301 - from the driver, as the function itself is
    return OfStages(loaded) if isinstance(loaded, Plan) else loaded


class Planned:
    """What a pattern has from its plan, of whatever kind it is."""

    plan: Plan | OccurrencePlan | IntervalPlan

    @property
    def name(self) -> str:
        return self.plan.pattern.name

    @property
    def limits(self) -> Limits:
        return self.plan.limits


# Stages


@dataclass(frozen=True)
class OfStages(Planned):
    """A pattern of stages."""

    plan: Plan

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @cached_property
    def compiled(self) -> CompiledPattern:
        return compile_plan(self.plan)

    def matcher(self) -> StageShardMatcher:
        return StageShardMatcher(self, LiveMatcher(self.compiled))

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[StageShardMatcher, dict[str, Any]]:
        live, kept = LiveMatcher.restored(self.compiled, snapshot, made_for, columns)
        return StageShardMatcher(self, live), kept


class StageShardMatcher:
    """Finds a pattern of stages."""

    def __init__(self, pattern: ShardPattern, live: LiveMatcher) -> None:
        self.pattern = pattern
        self.live = live

    def advance_time(self, time: int) -> pa.Table:
        return self.live.advance_time(time)

    def process(self, events: Batch) -> pa.Table:
        return self.live.process(events)

    def net(self, rows: pa.Table) -> pa.Table:
        return rows

    def replay(self, log: Iterable[tuple[int, Batch]], passed: int, limits: Limits) -> None:
        """In which steps time has passed does not matter, so all is taken at once. Late events are counted, as their
        ids go on from there.
        """
        detector = self.live.detector
        in_time = []
        for until, events in log:
            is_late = times_of(events) <= until
            self.live.passed.numbered(events.filter(pa.array(is_late)))
            in_time.append(events.filter(pa.array(~is_late)))
        with detector.replaying(limits):
            if in_time:
                self.live.process(join(in_time))
            self.live.advance_time(passed)

    def renewed(self) -> pa.Table | None:
        return None

    @property
    def now(self) -> int:
        return self.live.now

    @property
    def due(self) -> int:
        return self.live.due

    @property
    def open(self) -> int:
        return self.live.open_partial_matches

    @property
    def is_idle(self) -> bool:
        return not (self.open or len(self.live.waiting))

    @property
    def counts(self) -> dict[str, int]:
        found = {"ties": self.live.ties, "late": self.live.late, **asdict(self.live.found)}
        return {name: found[name] for name in STREAM_COUNTS if name != OPENED}

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        return self.live.snapshot(made_for, kept)
