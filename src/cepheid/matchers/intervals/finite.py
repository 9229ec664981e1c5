"""Interval patterns in finite input: all events are processed together, in any order, as the longest must be known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervalPlans, compile_intervals
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.counts import Found
from cepheid.matchers.intervals.joiner import RowMaker
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.intervals.rates import rates_in
from cepheid.matchers.parts import GatheredPart, GatheredRows
from cepheid.matchers.pattern_events import OwnEvents, events_of_each
from cepheid.matchers.shared.order_of_ends import in_order_of_content, in_order_of_ends
from cepheid.matchers.working_set import mask_of
from cepheid.output.intervals.finite import finite_rows, finite_schema, merged_by_end
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.intervals.constants import FREE, Guard
from cepheid.plan.intervals.growth import guard_of
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.intervals.slices import slices_of
from cepheid.plan.undivided import Undivided


def parts_of_intervals(patterns: CompiledIntervalPlans) -> Sequence[GatheredPart]:
    """A part for each pattern."""
    plans = patterns.plans
    own = events_of_each(plans, patterns.relevant_to)
    return [_part(plan, events, named=plans.named) for plan, events in zip(plans.each, own, strict=True)]


def _part(plan: IntervalPlan, own: OwnEvents, *, named: bool) -> GatheredPart:
    slices = slices_of(plan)
    return GatheredPart(
        own=own,
        pattern=plan.pattern.name if named else None,
        slices=None if isinstance(slices, Undivided) else slices,
        may_start=1 << MAX_CONDITIONS - 1,
        find=partial(_rows_in, plan, named),
    )


def _rows_in(
    plan: IntervalPlan,
    named: bool,  # noqa: FBT001
    events: Batch,
    may_start: int,
    until: int | None,
) -> GatheredRows:
    """As GatheredPart.find. The rows are in the order of BY_END."""
    result = all_matches(plan, events, may_start, named=named)
    rows = result.rows if until is None else certain_rows(plan, result.rows, until)
    found = Found(matches=len(rows), dropped_matches=result.dropped)
    if plan.outputs is not None and "matches" not in plan.outputs:
        rows = rows.slice(0, 0)
    return GatheredRows(rows, found)


def certain_rows(plan: IntervalPlan, rows: pa.Table, until: int) -> pa.Table:
    """The rows of matches that no event could forbid which ends after `until` (microseconds), as all events of the
    match do not. In real time, all of them.
    """
    if _waits_for_the_window(plan):
        return rows.filter(pc.less_equal(certain_from(plan, rows), pa.scalar(until, pa.int64()).cast(TIME_TYPE)))
    return rows


def certain_from(plan: IntervalPlan, rows: pa.Table) -> pa.ChunkedArray:
    """The times from which no event could forbid the matches that ends then or later. Only a negation after the last
    event of a match looks at events that end after it: up to the window after its start.
    """
    if not _waits_for_the_window(plan):
        return rows.column("match_end")
    window = pa.scalar(plan.window or 0, pa.int64()).cast(pa.duration("us"))
    return pc.add(rows.column("match_start").cast(TIME_TYPE), window)


def _waits_for_the_window(plan: IntervalPlan) -> bool:
    pattern = plan.pattern
    guards = {guard_of(negation, End.END) for negation in pattern.negations}
    return pattern.consistency is not Consistency.REALTIME and Guard.WINDOW in guards


class AllMatches(NamedTuple):
    rows: pa.Table
    """Columns as in `finite_schema`, in the order of BY_END."""
    dropped: int
    """The number of matches dropped because of a limit."""


def all_matches(plan: IntervalPlan, batch: Batch, may_start: int = 0, *, named: bool = False) -> AllMatches:
    """All matches in the events of a batch, which may be in any order. If a bit is given, only those whose first event
    has it. If `named`, the rows have kind and pattern.

    Raises:
        ConditionError, LimitExceeded: as LiveIntervalMatcher.
    """
    starts, ends = (batch.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END))
    # In the order of their ends and with the longest duration as the delay, no event is late, and old events are
    # forgotten soon. Events that are equal in times and sequence are numbered in the order of their content.
    batch = in_order_of_content(batch) if batch.sequence else in_order_of_ends(batch)
    longest = min(int((ends - starts).max(initial=0)), FREE)
    rates = rates_in(plan.variable_bits[: plan.positives], mask_of(batch))
    pattern = compile_intervals(plan, delay=longest, lateness=End.START, rates=rates, may_start=may_start)
    rows = RowMaker(finite_schema(plan, named=named), partial(finite_rows, plan, named=named), sorts=True)
    matcher = LiveIntervalMatcher(pattern, rows)
    matcher.kernel.consistency = Consistency.EARLIEST
    found = pa.concat_tables([matcher.process(batch), matcher.finish()])
    return AllMatches(merged_by_end(found), matcher.dropped)
