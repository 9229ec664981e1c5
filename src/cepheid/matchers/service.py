"""The ServiceMatcher of patterns of stages and of occurrences: time follows the events, or the caller advances it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.events.batch import TIME, Batch
from cepheid.kernel.arrays import NO_TIME
from cepheid.lang.consistency import Consistency
from cepheid.lang.duration import microseconds
from cepheid.matchers.conservative import ConservativeMatcher
from cepheid.matchers.counts import EventCounts, MatcherCounts
from cepheid.matchers.protocols import Detector
from cepheid.matchers.real_time.matcher import RealTimeMatcher
from cepheid.matchers.snapshot import fitting, restored, stored_number, stored_numbers
from cepheid.output.changes import FOUND


class FollowingMatcher:
    """A ServiceMatcher whose time follows the events, or that the caller advances."""

    def __init__(
        self,
        new_detector: Callable[[], Detector],
        made_for: Mapping[str, Any],
        *,
        lateness: timedelta | None,
        consistency: Consistency | None,
        warnings: Iterable[str] = (),
    ) -> None:
        """`lateness` is how far time stays before the latest event; None: only the caller advances time. With a
        `consistency` the rows are changes (insertions and retractions), and the plan must have outputs.
        """
        self.warnings = tuple(warnings)
        self._lateness = None if lateness is None else microseconds(lateness)
        self._made_for = dict(made_for) if consistency is None else {**made_for, "consistency": "given"}
        self._new_matcher = partial(_new_matcher, new_detector, consistency)
        self._matcher = self._new_matcher()
        self._latest = NO_TIME

    def process(self, batch: Batch) -> pa.Table:
        rows = [self._matcher.process(batch)]
        if len(batch) and self._lateness is not None:
            rows.append(self._follow(pc.max(batch.column(TIME).cast(pa.int64())).as_py(), self._lateness))
        return pa.concat_tables(rows)

    def advance_time(self, time: int) -> pa.Table:
        return self._matcher.advance_time(time)

    def finish(self) -> pa.Table:
        return self._matcher.finish()

    def switch(self, consistency: Consistency) -> pa.Table:
        if isinstance(self._matcher, ConservativeMatcher):
            raise SchemaError("switch: this matcher was made without a consistency. Give one to Matcher(consistency=…)")
        return self._matcher.switch(consistency)

    def partial_matches(self, most: int) -> pa.Table:
        return self._matcher.partial_matches(most)

    def counts(self, read: Mapping[str, int]) -> MatcherCounts:
        return MatcherCounts(
            events=read["events"],
            null_keys=read["null_keys"],
            null_times=read["null_times"],
            **asdict(self._matcher.found),
            ties=self._matcher.ties,
            late=self._matcher.late,
            waiting=len(self._matcher.waiting),
            open_partial_matches=self._matcher.open_partial_matches,
            withheld=self._matcher.withheld,
        )

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        counts = EventCounts(read["events"], read["null_keys"], read["null_times"])
        return self._matcher.snapshot(self._made_for, {"latest": self._latest, "counts": asdict(counts)})

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        matcher, kept = restored(self._new_matcher(), data, self._made_for, columns)
        with fitting():
            latest, counts = stored_number(kept["latest"]), asdict(EventCounts(**stored_numbers(kept["counts"])))
        self._matcher, self._latest = matcher, latest
        return counts

    def _follow(self, time: int, lateness: int) -> pa.Table:
        """Advances time to `lateness` (microseconds) before the latest event; `time` is the latest one of a batch."""
        self._latest = max(self._latest, time)
        if lateness or self._matcher.detector.closes_instants:
            return self._matcher.advance_time(self._latest - lateness - 1)
        return self._matcher.settle(self._latest)


def _new_matcher(
    new_detector: Callable[[], Detector], consistency: Consistency | None
) -> ConservativeMatcher | RealTimeMatcher:
    if consistency is None:
        return ConservativeMatcher(new_detector())
    matcher = RealTimeMatcher(new_detector(), consistency)
    names = [
        *matcher.revisions.changes.schema.names,
        *(measure.name for measure in matcher.detector.plan.measures or ()),
    ]
    if names.count(FOUND) > 1:
        raise SchemaError(f"the output has its own column {FOUND!r}: rename the key column or measure of that name")
    return matcher
