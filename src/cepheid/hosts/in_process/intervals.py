"""Interval patterns in this process: tables of events in, rows out; DuckDB evaluates the lifted columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.errors import EventError, PatternError, in_pattern
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, VALUE_PREFIX, Batch
from cepheid.events.order import check_times
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import check_columns, tell
from cepheid.hosts.in_process.failure_guard import HalfWay
from cepheid.hosts.in_process.prepare import instants, lifted_columns, whole
from cepheid.hosts.in_process.tables import as_plain, fitted, plain_schema, without_views
from cepheid.lang.document.values import parameters_document, taxonomy_document
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.intervals.values import Consistency, End
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher, all_matches, in_order_of_content
from cepheid.matchers.snapshot import fitting, restoring
from cepheid.output.intervals import END, INSERTION_KIND, RETRACTION_KIND, matches_schema
from cepheid.output.stages import filled
from cepheid.plan.intervals.build import build_interval_plans
from cepheid.plan.intervals.growth import interval_growth, never_certain
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans, IntervalSchema
from cepheid.requests.counts import IntervalCounts, IntervalMatcherCounts
from cepheid.requests.request import Request, warn


def interval_plans(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> IntervalPlans:
    """Raises PatternError and SchemaError."""
    assert request.intervals is not None
    schema = IntervalSchema(plain_schema(columns), request.key, request.intervals.start, request.intervals.end)
    check_columns(schema)
    return build_interval_plans(
        request.intervals.patterns,
        schema,
        engine,
        named=request.named,
        columns=request.columns,
        limits=request.limits,
    )


def detect_intervals(events: pa.Table, request: Request) -> pa.Table:
    """The matches in the events, as rows in the order of patterns, match_end and match_start.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or times, or that end before they start (`nulls="error"`).
        ConditionError, LimitExceeded: a condition fails on an event, a limit is reached.
    """
    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    plans = interval_plans(events.schema, request, engine)
    usable, counts = _usable(_timed(without_views(events), plans.schema, engine), plans.schema, request)
    order = [(name, "ascending") for name in ("match_end", "match_start", "match_id")]
    rows = []
    for plan in plans.each:
        with in_pattern(plan.pattern.name):
            found = all_matches(plan, _batch(usable, plan, engine))
        rows.append(found.rows.sort_by(order))
        counts = replace(
            counts, matches=counts.matches + len(found.rows), dropped_matches=counts.dropped_matches + found.dropped
        )
    tell(counts, request)
    schema = matches_schema(plans)
    return pa.concat_tables([filled(table, schema) for table in rows])


class IntervalTableMatcher(HalfWay):
    """Finds one interval pattern in tables of events that go on coming; those of one table come together."""

    def __init__(
        self,
        request: Request,
        columns: pa.Schema,
        *,
        delay: int | None,
        lateness: End,
        frequencies: Mapping[str, float] | None,
    ) -> None:
        self._request = request
        self._engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
        self._columns = columns
        (self.plan,) = interval_plans(columns, request, self._engine).each
        self._ends = delay is None
        """Whether only input that ends is of use: then nothing can be certain before, nor forgotten."""
        self._lateness = lateness
        self._check_certain(self.plan.pattern)
        for warning in self.growth:
            warn(warning)
        self._compiled: CompiledIntervals = compile_intervals(
            self.plan, delay=delay, lateness=lateness, frequencies=frequencies
        )
        self._matcher = LiveIntervalMatcher(self._compiled)
        self._counts = IntervalCounts()
        """By what it has failed half-way."""
        self._batch_columns = self._batch(pa.Table.from_batches([], columns))[0].data.schema

    def process(self, events: pa.Table) -> pa.Table:
        """The rows that these events make."""
        with in_pattern(self.plan.pattern.name):
            batch, counts = self._batch(events)
            with self._changing():
                self._counts = _sum(self._counts, counts)
                return self._counted(self._matcher.process(in_order_of_content(batch)))

    def switch(self, consistency: Consistency) -> pa.Table:
        """The rows that the change makes."""
        self._check_certain(self.plan.pattern.emitting(consistency))
        with self._changing():
            return self._counted(self._matcher.switch(consistency))

    def advance_time(self, time: int) -> pa.Table:
        """The rows that are certain once the clock is at `time`, in microseconds."""
        with self._changing():
            return self._counted(self._matcher.advance_time(time))

    def finish(self) -> pa.Table:
        """The rows that are left as no events come any more."""
        with self._changing():
            return self._counted(self._matcher.finish())

    @property
    def growth(self) -> tuple[str, ...]:
        """What is kept for ever. It does not change with the consistency: what would is refused."""
        return () if self._ends else interval_growth(self.plan.pattern, self._lateness)

    @property
    def plan_now(self) -> IntervalPlan:
        """The plan with the consistency that was switched to, or that a snapshot had."""
        return replace(self.plan, pattern=self.plan.pattern.emitting(self._matcher.kernel.consistency))

    def _check_certain(self, pattern: IntervalPattern) -> None:
        if not self._ends and (problems := never_certain(pattern, self._lateness)):
            raise PatternError(problems)

    def _counted(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column("kind").to_pylist()
        added = kinds.count(INSERTION_KIND) - kinds.count(RETRACTION_KIND)
        self._counts = replace(self._counts, matches=self._counts.matches + added)
        return rows

    @property
    def counts(self) -> IntervalMatcherCounts:
        now = {
            "dropped_matches": self._matcher.dropped,
            "late": self._matcher.late,
            "open_matches": self._matcher.open_matches,
            "held": self._matcher.held,
        }
        return IntervalMatcherCounts(**(asdict(self._counts) | now))

    def snapshot(self) -> bytes:
        """All that is held and open."""
        self._check()
        return self._matcher.snapshot(self._made_for, asdict(self._counts))

    def restore(self, data: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot."""
        with restoring(), fitting():
            matcher, kept = LiveIntervalMatcher.restored(self._compiled, data, self._made_for, self._batch_columns)
            counts = IntervalCounts(**{name: kept[name] for name in _COUNTS})  # older ones have more, of other patterns
        self._matcher, self._counts, self._failure = matcher, counts, None

    @property
    def _made_for(self) -> dict[str, object]:
        pattern = self.plan.pattern.emitting(Consistency.CONSERVATIVE)  # it may be changed while the matcher runs
        types = pattern.types
        return {
            "name": pattern.name,
            "interval pattern": interval_text(pattern).splitlines(),
            "taxonomy": None if types is None else taxonomy_document(types),
            "key": list(self.plan.schema.key),
            "times": [self.plan.schema.start, self.plan.schema.end],
            "columns": {name: str(type_) for name, type_ in zip(self._columns.names, self._columns.types, strict=True)},
            "chosen": list(self.plan.columns),
            "delay": self._compiled.delay,
            "lateness": self._compiled.lateness.value,
            "time_zone": self._engine.time_zone,
            **parameters_document(pattern.parameters),
        }

    def _batch(self, events: pa.Table) -> tuple[Batch, IntervalCounts]:
        used = pa.schema([self._columns.field(name) for name in _used_columns(self.plan)])
        timed = _timed(fitted(events, used), self.plan.schema, self._engine)
        usable, counts = _usable(timed, self.plan.schema, self._request)
        return _batch(usable, self.plan, self._engine), counts


_COUNTS = [field.name for field in fields(IntervalCounts)]


def _sum(one: IntervalCounts, other: IntervalCounts) -> IntervalCounts:
    return IntervalCounts(**{name: getattr(one, name) + getattr(other, name) for name in _COUNTS})


def _used_columns(plan: IntervalPlan) -> list[str]:
    """The event columns that the output or a condition needs."""
    schema = plan.schema
    needed = {*schema.key, schema.start, schema.end, *plan.columns, *lifted_columns(plan)}
    return [name for name in schema.columns.names if name in needed]


class _Timed(NamedTuple):
    """Events as they came, and their starts and ends as instants."""

    events: pa.Table
    start: pa.ChunkedArray
    end: pa.ChunkedArray


def _timed(events: pa.Table, schema: IntervalSchema, engine: DuckDbEngine) -> _Timed:
    events = as_plain(events, schema.columns)
    start, end = (instants(events.column(name), name, engine.time_zone) for name in (schema.start, schema.end))
    return _Timed(events, start, end)


def _batch(timed: _Timed, plan: IntervalPlan, engine: DuckDbEngine) -> Batch:
    """The events as a matcher takes them; EventError where a time is too far away."""
    events = timed.events
    shown, lifted = events.select(plan.columns), events.select(lifted_columns(plan))
    found = engine.evaluate(lifted, bits=plan.bits, values=plan.values, shown=shown)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{f"{KEY_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.key)},
        TIME: timed.start,
        END: timed.end,
        MASK: pa.array(found.masks[0]),
        **{f"{VALUE_PREFIX}{i}": values for i, values in enumerate(found.values)},
        **{f"{EVENT_PREFIX}{name}": events.column(name) for name in plan.columns},
    }
    arrays = [whole(column) for column in columns.values()]
    batch = Batch(pa.RecordBatch.from_arrays(arrays, names=list(columns)))
    check_times(batch, TIME, END)
    return batch


def _usable(timed: _Timed, schema: IntervalSchema, request: Request) -> tuple[_Timed, IntervalCounts]:
    """The events that have key and times and are not reversed; and how many there were of which kind."""
    events = timed.events
    no_key = _nulls(events, [events.column(name) for name in schema.key])
    no_time = _nulls(events, [timed.start, timed.end]) & ~no_key
    turned = pc.less(timed.end, timed.start).fill_null(fill_value=False)
    backwards = turned.to_numpy() & ~no_key & ~no_time
    counts = IntervalCounts(
        events=events.num_rows,
        null_keys=int(no_key.sum()),
        null_times=int(no_time.sum()),
        reversed=int(backwards.sum()),
    )
    unfit = no_key | no_time | backwards
    if not unfit.any():
        return timed, counts
    if request.nulls == "error":
        found = [f"{counts.null_keys} with a NULL in the key ({', '.join(schema.key)})"] * bool(counts.null_keys)
        found += [f"{counts.null_times} without {schema.start} or {schema.end}"] * bool(counts.null_times)
        found += [f"{counts.reversed} with {schema.end} before {schema.start}"] * bool(counts.reversed)
        how = 'Mend or drop them before, or give nulls="drop", which counts them'
        raise EventError(f"events that are no intervals: {', '.join(found)}. {how}")
    chosen = pa.array(~unfit)
    return _Timed(*(part.filter(chosen) for part in timed)), counts


def _nulls(events: pa.Table, columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    null = np.zeros(events.num_rows, np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy()
    return null
