"""Interval patterns in this process: tables of events in, rows out; DuckDB evaluates the lifted columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.interval import CompiledIntervals, compile_intervals
from cepheid.errors import EventError, SchemaError
from cepheid.events import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, VALUE_PREFIX, Batch
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.half_way import HalfWay
from cepheid.hosts.intake import instants, whole
from cepheid.hosts.interval_request import IntervalCounts, IntervalRequest
from cepheid.hosts.request import repeated_names
from cepheid.hosts.tables import as_plain, plain_schema, without_views
from cepheid.interval_output import END
from cepheid.lang.interval_document import interval_form
from cepheid.lang.interval_values import Consistency, End
from cepheid.live_intervals import LiveIntervalMatcher, all_matches
from cepheid.plan.interval_build import build_interval_plan
from cepheid.plan.interval_plan import IntervalPlan, IntervalSchema


def interval_plan(columns: pa.Schema, request: IntervalRequest, engine: DuckDbEngine) -> IntervalPlan:
    """Raises PatternError and SchemaError."""
    if faults := repeated_names(columns.names):
        raise SchemaError("\n".join(faults))
    schema = IntervalSchema(plain_schema(columns), request.key, request.type, request.start, request.end)
    return build_interval_plan(
        request.pattern, schema, engine, columns=request.columns, kinds=request.kinds, limits=request.limits
    )


def detect_in_table(events: pa.Table, request: IntervalRequest) -> tuple[pa.Table, IntervalCounts]:
    """All matches in the events, in order of their end; and what was seen.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or times, or that end before they start (`nulls="error"`).
        ConditionError: a condition fails on an event.
    """
    zone = request.time_zone or "UTC"
    engine = DuckDbEngine(time_zone=zone)
    plan = interval_plan(events.schema, request, engine)
    batch, counts = _batch(without_views(events), plan, request, engine)
    order = [(name, "ascending") for name in ("match_end", "match_start", "match_id")]
    return all_matches(plan, batch).sort_by(order), counts


class IntervalTableMatcher(HalfWay):
    """Finds one interval pattern in tables of events that go on coming, in the order of their arrival."""

    def __init__(self, request: IntervalRequest, columns: pa.Schema, *, delay: int | None, lateness: End) -> None:
        self._request = request
        self._engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
        self._columns = columns
        self.plan = interval_plan(columns, request, self._engine)
        self._compiled: CompiledIntervals = compile_intervals(
            self.plan, delay=delay, lateness=lateness, frequencies=request.frequencies
        )
        self._matcher = LiveIntervalMatcher(self._compiled)
        self._counts = IntervalCounts()
        """By what it has failed half-way."""
        self._batch_columns = self._batch(pa.Table.from_batches([], columns))[0].data.schema

    def process(self, events: pa.Table) -> pa.Table:
        """The rows that these events make."""
        batch, counts = self._batch(events)
        with self._changing():
            names = ("events", "null_keys", "null_times", "reversed")
            added = {name: getattr(self._counts, name) + getattr(counts, name) for name in names}
            self._counts = IntervalCounts(**added)
            return self._matcher.process(batch)

    def switch(self, consistency: Consistency) -> pa.Table:
        """The rows that the change makes."""
        with self._changing():
            return self._matcher.switch(consistency)

    def advance_time(self, time: int) -> pa.Table:
        """The rows that are certain once the clock is at `time`, in microseconds."""
        with self._changing():
            return self._matcher.advance_time(time)

    def finish(self) -> pa.Table:
        """The rows that are left as no events come any more."""
        with self._changing():
            return self._matcher.finish()

    @property
    def counts(self) -> IntervalCounts:
        now = {"late": self._matcher.late, "open_matches": self._matcher.open_matches, "held": self._matcher.held}
        return IntervalCounts(**(asdict(self._counts) | now))

    def snapshot(self) -> bytes:
        """All that is held and open."""
        self._check()
        return self._matcher.snapshot(self._made_for, asdict(self._counts))

    def restore(self, data: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot."""
        self._matcher, kept = LiveIntervalMatcher.restored(self._compiled, data, self._made_for, self._batch_columns)
        self._counts, self._failure = IntervalCounts(**kept), None

    @property
    def _made_for(self) -> dict[str, object]:
        pattern = interval_form(self._request.pattern)
        pattern.pop("consistency", None)  # it may be changed while the matcher runs
        return {
            "interval pattern": pattern,
            "key": list(self._request.key),
            "times": [self._request.start, self._request.end, self._request.type],
            "kinds": {
                name: list([above] if isinstance(above, str) else above) for name, above in self._request.kinds.items()
            },
            "columns": {name: str(type_) for name, type_ in zip(self._columns.names, self._columns.types, strict=True)},
            "chosen": list(self.plan.columns),
            "delay": self._compiled.delay,
            "lateness": self._compiled.lateness.value,
            "time_zone": self._engine.time_zone,
        }

    def _batch(self, events: pa.Table) -> tuple[Batch, IntervalCounts]:
        lacking = [name for name in self._columns.names if name not in events.schema.names]
        if lacking:
            raise SchemaError(
                "\n".join(f"events have no column {name!r}, which the matcher was made with" for name in lacking)
            )
        return _batch(without_views(events.select(self._columns.names)), self.plan, self._request, self._engine)


def _batch(
    events: pa.Table, plan: IntervalPlan, request: IntervalRequest, engine: DuckDbEngine
) -> tuple[Batch, IntervalCounts]:
    """The events that have key, times and no reversed ones, as a matcher takes them; and how many there were."""
    events = as_plain(events, plan.schema.columns)
    times = {name: instants(events.column(name), name, engine.time_zone) for name in plan.schema.times.values()}
    events, times, counts = _usable(events, times, plan, request)
    found = engine.evaluate(events, bits=plan.bits, values=plan.values)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{f"{KEY_PREFIX}{i}": events.column(name) for i, name in enumerate(plan.schema.key)},
        TIME: times[plan.schema.start],
        END: times[plan.schema.end],
        MASK: pa.array(found.masks[0]),
        **{f"{VALUE_PREFIX}{i}": values for i, values in enumerate(found.values)},
        **{f"{EVENT_PREFIX}{name}": events.column(name) for name in plan.columns},
    }
    arrays = [whole(column) for column in columns.values()]
    return Batch(pa.RecordBatch.from_arrays(arrays, names=list(columns))), counts


def _usable(
    events: pa.Table, times: dict[str, pa.ChunkedArray], plan: IntervalPlan, request: IntervalRequest
) -> tuple[pa.Table, dict[str, pa.ChunkedArray], IntervalCounts]:
    schema = plan.schema
    no_key = _nulls(events, [events.column(name) for name in schema.key])
    no_time = _nulls(events, list(times.values())) & ~no_key
    turned = pc.less(times[schema.end], times[schema.start]).fill_null(fill_value=False)
    backwards = turned.to_numpy() & ~no_key & ~no_time
    counts = IntervalCounts(events.num_rows, *(int(which.sum()) for which in (no_key, no_time, backwards)))
    unfit = no_key | no_time | backwards
    if not unfit.any():
        return events, times, counts
    if request.nulls == "error":
        found = [f"{counts.null_keys} with a NULL in the key ({', '.join(schema.key)})"] * bool(counts.null_keys)
        found += [f"{counts.null_times} without {schema.start} or {schema.end}"] * bool(counts.null_times)
        found += [f"{counts.reversed} with {schema.end} before {schema.start}"] * bool(counts.reversed)
        how = 'Mend or drop them before, or give nulls="drop", which counts them'
        raise EventError(f"events that are no intervals: {', '.join(found)}. {how}")
    chosen = pa.array(~unfit)
    return events.filter(chosen), {name: time.filter(chosen) for name, time in times.items()}, counts


def _nulls(events: pa.Table, columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    null = np.zeros(events.num_rows, np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy()
    return null
