"""Interval patterns in finite input: the events of all keys come in any order, and are processed together."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.intervals.compiled import CompiledIntervalPlans, compile_intervals
from cepheid.errors import in_pattern
from cepheid.events.batch import END, TIME, Batch, join
from cepheid.events.order import check_times
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.counts import MATCHER_COUNTS, Found
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.pattern_events import events_of_each
from cepheid.matchers.working_set import mask_of
from cepheid.output.intervals import finite_rows
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.plan import IntervalPlan

_ORDER = [(name, "ascending") for name in ("match_end", "match_start", "match_id")]


class FiniteIntervalMatcher:
    """Finds interval patterns once all events are there, as the longest duration of an event must be known first."""

    def __init__(self, patterns: CompiledIntervalPlans) -> None:
        self._plans = patterns.plans
        self._own = events_of_each(patterns.plans, patterns.relevant_to)
        self._batches: list[Batch] = []
        self._found = Found()

    def process(self, batch: Batch) -> list[pa.Table]:
        """Stores the events. Rows come only from `finish`.

        Raises:
            EventError: a time is out of range.
        """
        check_times(batch, TIME, END)
        self._batches.append(batch)
        return []

    def finish(self) -> list[pa.Table]:
        """The matches of each pattern, in the order of match_end, match_start and match_id.

        Raises:
            ConditionError, LimitExceeded: as LiveIntervalMatcher, with the pattern's name in the message.
        """
        if not self._batches:
            return []
        together, rows = join(self._batches), []
        for plan, own in zip(self._plans.each, self._own, strict=True):
            with in_pattern(plan.pattern.name, named=self._plans.named):
                result = all_matches(plan, own.of(together))
            rows.append(finite_rows(plan, result.rows, named=self._plans.named).sort_by(_ORDER))
            self._found = replace(
                self._found,
                matches=self._found.matches + len(result.rows),
                dropped_matches=self._found.dropped_matches + result.dropped,
            )
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """A value for each of MATCHER_COUNTS."""
        return {name: getattr(self._found, name, 0) for name in MATCHER_COUNTS}


class AllMatches(NamedTuple):
    rows: pa.Table
    """Columns as in `row_schema`; all rows are insertions."""
    dropped: int
    """The number of matches dropped because of a limit."""


def all_matches(plan: IntervalPlan, batch: Batch) -> AllMatches:
    """All matches in the events of a batch, which may be in any order.

    Raises:
        ConditionError, LimitExceeded: as LiveIntervalMatcher.
    """
    starts, ends = (batch.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END))
    # In the order of their ends and with the longest duration as the delay, no event is late, and old events are
    # forgotten soon.
    batch = batch.take(pa.array(np.lexsort((starts, ends))))
    longest = min(int((ends - starts).max(initial=0)), FREE)
    pattern = compile_intervals(plan, delay=longest, lateness=End.START, frequencies=_frequencies(plan, batch))
    matcher = LiveIntervalMatcher(pattern)
    matcher.kernel.consistency = Consistency.EARLIEST
    rows = pa.concat_tables([matcher.process(batch), matcher.finish()])
    return AllMatches(rows, matcher.dropped)


def _frequencies(plan: IntervalPlan, batch: Batch) -> dict[str, float]:
    """The number of events of each type in the pattern."""
    mask = mask_of(batch)
    bits = zip(plan.pattern.positives, plan.variable_bits, strict=False)
    return {positive.type: float((mask >> bit & 1).sum()) for positive, bit in bits}
