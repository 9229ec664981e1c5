"""What the two LiveMatchers of interval patterns share: that of whole events, and that of events in two rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.matchers.intervals.joiner import IntervalJoiner
from cepheid.matchers.protocols import PatternRunner, ShardMatcher
from cepheid.matchers.runners import LiveDefaults, advance
from cepheid.matchers.snapshot import Snapshot
from cepheid.matchers.watermark import Reached
from cepheid.output.common import LATE, net_matches
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits

WHY_UNLISTED = "partial_matches: an interval pattern has no stages, and so none. counts has its open_matches"


class LiveIntervals(LiveDefaults, ABC):
    """A LiveMatcher whose clock is at the watermark, the first time that is not late."""

    pattern: PatternRunner

    def __init__(self, plan: IntervalPlan, live: IntervalJoiner) -> None:
        self.plan, self.live = plan, live
        self._with_late = "late" in plan.live_outputs
        self._matches = 0

    def advance_time(self, time: int) -> pa.Table:
        return self.passed(time)

    def process(self, events: Batch) -> pa.Table:
        return self.taken(events)

    @abstractmethod
    def passed(self, time: int) -> pa.Table:
        """The rows that become certain once the watermark is past `time`. If rows open events, they have been read up
        to then.
        """

    @abstractmethod
    def taken(self, events: Batch) -> pa.Table:
        """The rows that these events produce. If rows open events, these are the events that they make."""

    @abstractmethod
    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """As in Restorable."""

    @abstractmethod
    def net(self, rows: pa.Table) -> pa.Table: ...

    @abstractmethod
    def renewed(self) -> pa.Table | None: ...

    @property
    @abstractmethod
    def due(self) -> int: ...

    @property
    @abstractmethod
    def is_idle(self) -> bool: ...

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]: ...

    @abstractmethod
    def keep_only(self, names: Collection[bytes]) -> None: ...

    @abstractmethod
    def limit(self, limits: Limits) -> None:
        """From now on these limits apply."""

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:
        self.limit(limits)
        replay_batches(self, log, reached)
        self.limit(self.plan.limits)

    @abstractmethod
    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes: ...

    def settle(self, time: int) -> pa.Table:
        return self.advance_time(time - 1)

    @property
    def now(self) -> int:
        return NO_TIME if self.live.clock == BEGINNING else self.live.clock - 1

    @property
    def open(self) -> int:
        return self.live.open_matches

    @property
    def open_keys(self) -> Collection[bytes]:
        return self.live.key_names

    def partial_matches(self, most: int) -> pa.Table:  # noqa: ARG002
        raise PatternError(WHY_UNLISTED)

    def watch(self, *, all_open: bool = False) -> None:
        """Nothing can be listed."""

    def snapshot_in_pieces(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[bytes]:
        return iter([self.snapshot(made_for, kept)])

    def _counted(self, rows: pa.Table) -> pa.Table:
        """The rows, after the matches among them are counted."""
        self._matches += net_matches(rows)
        return rows

    def _asked(self, rows: pa.Table) -> pa.Table:
        """The rows without late events, unless these are asked for."""
        return rows if self._with_late else rows.filter(pc.not_equal(rows.column("kind"), LATE))


def replay_batches(matcher: ShardMatcher, log: Iterable[tuple[Reached, Batch]], reached: Reached) -> None:
    """Repeats the input batch by batch, so that events that are equal in all visible columns keep their order."""
    for before, events in log:
        advance(matcher, before)
        matcher.process(events)
    advance(matcher, reached)


def clock_at(time: int) -> int:
    """The clock once the watermark is past `time`: the first time that is not late."""
    return min(max(time, BEGINNING), FOREVER - 1) + 1
