"""What the two LiveMatchers of interval patterns share: that of whole events, and that of events in two rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError
from cepheid.kernel.arrays import NO_TIME
from cepheid.kernel.intervals.layout import BEGINNING
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.runners import LiveDefaults
from cepheid.output.common import INSERTION, LATE, RETRACTION
from cepheid.plan.intervals.plan import IntervalPlan

WHY_UNLISTED = "partial_matches: an interval pattern has no stages, and so none. counts has its open_matches"


class LiveIntervals(LiveDefaults, ABC):
    """A LiveMatcher whose clock is at the watermark, the first time that is not late."""

    def __init__(self, plan: IntervalPlan, live: LiveIntervalMatcher) -> None:
        self.live = live
        self._with_late = "late" in plan.live_outputs
        self._matches = 0

    @abstractmethod
    def advance_time(self, time: int) -> pa.Table: ...

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
        kinds = rows.column("kind")
        inserted, taken_back = (pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in (INSERTION, RETRACTION))
        self._matches += inserted - taken_back
        return rows

    def _asked(self, rows: pa.Table) -> pa.Table:
        """The rows without late events, unless these are asked for."""
        return rows if self._with_late else rows.filter(pc.not_equal(rows.column("kind"), LATE))
