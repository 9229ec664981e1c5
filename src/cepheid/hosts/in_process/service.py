"""The matcher for services without Spark: tables of events in, rows out, its state in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from operator import index
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.occurrences.compiled import CompiledOccurrences, compile_occurrences
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.errors import SchemaError
from cepheid.events.batch import TIME, Batch, microseconds
from cepheid.events.order import check_times
from cepheid.hosts.compatibility import made_for
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plan_in_process, with_measures
from cepheid.hosts.in_process.failure_guard import HalfWay
from cepheid.hosts.in_process.occurrences import occurrence_plans
from cepheid.hosts.in_process.prepare import in_order_of_arrival, lifted, timed, usable, used_columns
from cepheid.hosts.in_process.tables import fitted
from cepheid.kernel.stages.layout import NO_TIME
from cepheid.lang.duration import microseconds as length_of
from cepheid.lang.intervals.values import Consistency
from cepheid.matchers.conservative import LiveMatcher
from cepheid.matchers.real_time.matcher import RealTimeMatcher
from cepheid.matchers.snapshot import fitting, restoring
from cepheid.output.changes import FOUND, change_schema
from cepheid.plan.occurrences.growth import occurrence_growth
from cepheid.plan.plan_set import LiftedFor
from cepheid.plan.stages.plan import Measure
from cepheid.requests.request import EventCounts, MatcherCounts, Request, instant_of, warn, warn_of


class TableMatcher(HalfWay):
    """Finds one pattern in tables of events that go on coming."""

    def __init__(
        self, request: Request, columns: pa.Schema, lateness: timedelta | None, consistency: Consistency | None = None
    ) -> None:
        """With a consistency the rows say what changes, and the request has outputs."""
        self._asked = request
        numbered, self._request = in_order_of_arrival(pa.Table.from_batches([], columns), request)
        columns = numbered.schema
        self._zone = request.time_zone or "UTC"
        self._engine = DuckDbEngine(time_zone=self._zone)
        self._pattern, self._measures = _compiled(columns, self._request, self._engine)
        self._plan: LiftedFor = self._pattern.plan
        self._columns = columns
        in_order = timedelta(0) if request.time is None else lateness
        self._lateness = None if in_order is None else length_of(in_order)
        self._batch_columns = self._batch(pa.Table.from_batches([], columns))[0].data.schema
        self._made_for = made_for(self._request, self._pattern, self._zone)
        self._matcher: LiveMatcher | RealTimeMatcher
        if consistency is None:
            self._matcher = LiveMatcher(self._pattern)
        else:
            self._matcher = _of_changes(self._pattern, consistency)
            self._made_for["consistency"] = "given"
        self._latest = NO_TIME
        self._counts = EventCounts()
        """By what it has failed half-way."""

    def process(self, events: pa.Table) -> pa.Table:
        """The rows that these events make certain."""
        events, _ = in_order_of_arrival(events, self._asked, self._counts.events)
        batch, counts = self._batch(events)
        with self._changing():
            self._counts = EventCounts(
                null_keys=self._counts.null_keys + counts.null_keys,
                null_times=self._counts.null_times + counts.null_times,
                events=self._counts.events + counts.events,
            )
            rows = [self._matcher.process(batch)]
            if len(batch) and self._lateness is not None:
                rows.append(self._follow(pc.max(batch.column(TIME).cast(pa.int64())).as_py(), self._lateness))
            return self._output(rows)

    def advance_time(self, time: datetime) -> pa.Table:
        """The rows that are certain once time has passed to `time`: no event up to it comes any more."""
        if self._request.time is None:
            raise SchemaError("time: in processing order (time=None) none passes; finish() ends the input")
        reached = microseconds(instant_of(time, self._zone, argument="time"))
        with self._changing():
            return self._output([self._matcher.advance_time(reached)])

    def finish(self) -> pa.Table:
        """The rows that are certain as no events come any more."""
        with self._changing():
            return self._output([self._matcher.finish()])

    def switch(self, consistency: Consistency) -> pa.Table:
        """The rows that the change of the consistency makes."""
        if isinstance(self._matcher, LiveMatcher):
            raise SchemaError("switch: this matcher was made without a consistency. Give one to Matcher(consistency=…)")
        with self._changing():
            return self._output([self._matcher.switch(consistency)])

    def partial_matches(self, most: int) -> pa.Table:
        """Those that are open."""
        self._check()
        return self._matcher.partial_matches(most)

    def snapshot(self) -> bytes:
        """All that is open and waits."""
        self._check()
        return self._matcher.snapshot(self._made_for, {"latest": self._latest, "counts": asdict(self._counts)})

    def restore(self, data: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot."""
        with restoring(), fitting():
            matcher, kept = self._restored(data)
            latest, counts = index(kept["latest"]), EventCounts(**kept["counts"])
        self._matcher, self._latest, self._counts, self._failure = matcher, latest, counts, None

    def _restored(self, data: bytes) -> tuple[LiveMatcher | RealTimeMatcher, dict[str, Any]]:
        return self._matcher.restored(self._pattern, data, self._made_for, self._batch_columns)

    def _follow(self, time: int, lateness: int) -> pa.Table:
        """Time follows the latest event."""
        self._latest = max(self._latest, time)
        if lateness or self._matcher.detector.whole_instants:
            return self._matcher.advance_time(self._latest - lateness - 1)
        return self._matcher.settle(self._latest)

    @property
    def counts(self) -> MatcherCounts:
        found = asdict(self._matcher.found)
        told = {name: count for name, count in asdict(self._counts).items() if name not in found and name != "ties"}
        return MatcherCounts(
            **told,
            **found,
            ties=self._matcher.ties,
            late=self._matcher.late,
            waiting=len(self._matcher.waiting),
            open_partial_matches=self._matcher.open_partial_matches,
            withheld=self._matcher.withheld,
        )

    def _batch(self, events: pa.Table) -> tuple[Batch, EventCounts]:
        """The usable events as a matcher takes them, and how many there were."""
        used = pa.schema([self._columns.field(name) for name in used_columns(self._plan)])
        placed, counts = usable(timed(fitted(events, used), self._request), self._plan, self._request, None)
        batch = lifted(placed, self._plan, self._engine)
        check_times(batch)
        return batch, counts

    def _output(self, rows: Sequence[pa.Table]) -> pa.Table:
        table = pa.concat_tables(rows)
        return table if self._measures is None else with_measures(table, self._measures, self._engine)


def _compiled(
    columns: pa.Schema, request: Request, engine: DuckDbEngine
) -> tuple[CompiledPattern | CompiledOccurrences, tuple[Measure, ...] | None]:
    """The request's one pattern, and its measures."""
    if request.occurrences is None:
        plan = plan_in_process(columns, request, engine)
        return compile_plan(plan), plan.measures
    plans = occurrence_plans(columns, request, engine)
    warn_of(plans)
    for growth in occurrence_growth(plans.only):
        warn(f"a matcher keeps {growth}")
    return compile_occurrences(plans), plans.only.measures


def _of_changes(pattern: CompiledPattern | CompiledOccurrences, consistency: Consistency) -> RealTimeMatcher:
    matcher = RealTimeMatcher(pattern, consistency)
    plan = matcher.detector.plan
    names = [field.name for field in change_schema(plan)]
    names += [measure.name for measure in plan.measures or ()]
    if names.count(FOUND) > 1:
        raise SchemaError(f"the output has a column {FOUND!r}, as the key or a measure has. Rename that")
    return matcher
