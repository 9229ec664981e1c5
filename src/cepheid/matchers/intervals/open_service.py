"""The ServiceMatcher of interval patterns in events that rows open and close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.events.batch import Batch
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.duration import microseconds
from cepheid.matchers.counts import IntervalMatcherCounts
from cepheid.matchers.intervals.event_rows import EventRows
from cepheid.matchers.intervals.live import WHY_UNLISTED
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.service import made_for
from cepheid.matchers.shared.events import Share
from cepheid.matchers.snapshot import fitting, opened, stored_numbers
from cepheid.output.common import net_matches
from cepheid.plan.intervals.ends import unknown_negations
from cepheid.plan.intervals.growth import interval_growth, never_certain
from cepheid.plan.intervals.plan import IntervalPlan


class OpenIntervalServiceMatcher:
    """A ServiceMatcher, and a RowsMatcher. Its batches are the events of what `rows` has read."""

    def __init__(
        self,
        plan: IntervalPlan,
        lateness: timedelta | None,
        late_by: End,
        *,
        rows: EventRows,
        open_for: timedelta | None,
        changes: str | None = None,
        frequencies: Mapping[str, float] | None,
        columns: pa.Schema,
        zone: str,
        parts: Mapping[str, str],
        share: Share | None = None,
    ) -> None:
        """`open_for` and `changes` are those of `rows`. `parts` are further values on which it depends whether a
        snapshot fits. With a `share`, it holds events together with the matchers of other patterns.

        Raises:
            PatternError: no match would be certain before the end, or a negation reads an end in SQL.
        """
        if problems := unknown_negations(plan):
            raise PatternError(problems)
        self._plan, self._late_by, self._ends = plan, late_by, lateness is None
        self._check_certain(plan.pattern.consistency)
        self._delay = None if lateness is None else microseconds(lateness)
        self._open_for, self._revises, self._frequencies = open_for, changes is not None, frequencies
        self._rows, self._share = rows, share
        self._matcher = self._new_matcher()
        self._matches = 0
        own = {"event_id": plan.schema.event_id, "time_zone": zone, **parts}
        own |= {} if changes is None else {"changes": changes}
        self._made_for = made_for(plan, columns, self._delay, late_by, own)

    def _new_matcher(self) -> LiveOpenMatcher:
        return LiveOpenMatcher(
            self._plan,
            delay=self._delay,
            lateness=self._late_by,
            revises=self._revises,
            frequencies=self._frequencies,
            share=self._share,
        )

    def holds(self, name: bytes) -> bool:
        return self._matcher.holds(name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is retained forever."""
        found = () if self._ends else interval_growth(self._plan.pattern, self._late_by)
        if self._open_for is None and not self._ends:
            found = (*found, "events that no row closes are stored for ever. Give open_for=…")
        return found

    @property
    def plan_now(self) -> IntervalPlan:
        """The plan with the current consistency."""
        return replace(self._plan, pattern=self._plan.pattern.emitting(self._matcher.consistency))

    def process(self, batch: Batch) -> pa.Table:
        return self._counted(self._matcher.process_steps(batch, self._rows.steps))

    def advance_time(self, time: int) -> pa.Table:
        return self._counted(self._matcher.move_clock(time, self._rows.steps))

    def finish(self) -> pa.Table:
        return self._counted(self._matcher.end(self._rows.steps))

    def switch(self, consistency: Consistency) -> pa.Table:
        self._check_certain(consistency)
        return self._counted(self._matcher.switch(consistency))

    def partial_matches(self, most: int) -> pa.Table:  # noqa: ARG002
        raise PatternError(WHY_UNLISTED)

    def counts(self, read: Mapping[str, int]) -> IntervalMatcherCounts:
        return IntervalMatcherCounts(
            **read,
            matches=self._matches,
            late=self._matcher.late,
            open_matches=self._matcher.open_matches,
            held=self._matcher.held,
        )

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        """As in ServiceMatcher. What is read once for all patterns is stored with the first of them."""
        is_first = self._share is None or self._share.number == 0
        header = {"made_for": self._made_for, "kept": {**read, "matches": self._matches}}
        return self._matcher.stored(header, {}, self._rows.stored if is_first else {})

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        snapshot, matcher = opened(data, self._made_for), self._new_matcher()
        with fitting():
            matcher.take_over(snapshot, columns)
            kept = stored_numbers(snapshot.header["kept"])
            matches = kept["matches"]
            if self._share is None or self._share.number == 0:  # in older snapshots all patterns have the same here
                self._rows.restore(snapshot.batches, kept, matcher)
        # Only now: a snapshot that is refused changes nothing.
        self._matcher, self._matches = matcher, matches
        return kept

    def _check_certain(self, consistency: Consistency) -> None:
        pattern = self._plan.pattern.emitting(consistency)
        if not self._ends and (problems := never_certain(pattern, self._late_by, "late_by='start'")):
            raise PatternError(problems)

    def _counted(self, rows: pa.Table) -> pa.Table:
        self._matches += net_matches(rows)
        return rows
