"""What runs in a Spark worker: a matcher for each pattern, over the sorted events of a partition.

Besides the matches a worker has two things to tell: why it cannot go on, and what it counted. Both are rows of their
own, with all other columns NULL, which the host takes out again: an exception would reach the user below the worker's
stack.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.stages.compiled_plans import CompiledPlans, compile_plans
from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError, in_pattern
from cepheid.events.batch import MASK, TIME, TIME_TYPE, Batch
from cepheid.events.order import check_times
from cepheid.hosts.spark.coalesce import gathered
from cepheid.matchers.finite import SortedMatchers
from cepheid.matchers.intervals.matcher import all_matches
from cepheid.matchers.occurrences.finite import OccurrenceMatcher
from cepheid.output.intervals import END, matches_schema
from cepheid.output.occurrences import occurrence_schema
from cepheid.output.stages import filled, merged, row_schema
from cepheid.plan.intervals.plan import IntervalPlans
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.requests.request import COUNTS, ERROR, MATCHER_COUNTS

_OUTPUT_ROWS = 1 << 16


class Task(NamedTuple):
    """What a worker is to do."""

    plans: bytes
    """Pickled Plans, or OccurrencePlans: they come with the function that Spark pickles, and are read only once the
    versions agree.
    """
    layout: tuple[tuple[str, str], ...]
    """The matcher's columns, each with the shipped column that holds it; one may hold several."""
    until: int | None


def find_matches(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The matches in a partition, whose events come in the order of key, time and sequence; `given` is a Task's."""
    task = Task(*given)
    patterns = compiled_plans(task.plans)
    schema = output_schema(pa.schema(merged([list(row_schema(plan)) for plan in patterns.plans.each])))
    yield from _told_by(SortedMatchers(patterns, until=task.until), batches, task, schema)


def find_occurrences(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The same for patterns of occurrences."""
    task = Task(*given)
    plans: OccurrencePlans = pickle.loads(task.plans)  # noqa: S301 - from the driver, as the function itself is
    rows = pa.schema(merged([list(occurrence_schema(plan)) for plan in plans.each], last="events"))
    yield from _told_by(OccurrenceMatcher(plans, until=task.until), batches, task, output_schema(rows))


def find_intervals(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The same for interval patterns, with the events in any order: all of a partition are taken together, as their
    longest duration is to be known first. `given` are pickled IntervalPlans and, for each, the layout as a Task has it.
    """
    packed, layouts = given
    plans: IntervalPlans = pickle.loads(packed)  # noqa: S301 - from the driver, as the function itself is
    schema = output_schema(matches_schema(plans))
    events = list(batches)
    if not events:
        return
    together = pa.concat_batches(events)
    counts = Counter(dict.fromkeys(MATCHER_COUNTS, 0))
    try:
        for plan, layout in zip(plans.each, layouts, strict=True):
            with in_pattern(plan.pattern.name):
                found = all_matches(plan, _interval_batch(together, layout))
            yield from _rows([found.rows], schema)
            counts.update(matches=len(found.rows), dropped_matches=found.dropped)
    except (ConditionError, EventError, LimitExceeded) as error:
        yield _told(schema, ERROR, str(error))
        return
    if any(counts.values()):
        yield _told(schema, COUNTS, dict(counts))


def _interval_batch(events: pa.RecordBatch, layout: tuple[tuple[str, str], ...]) -> Batch:
    """The events that matter to the pattern."""
    batch = _batch(events, layout)
    ends = batch.column(END).cast(TIME_TYPE)
    data = batch.data.set_column(batch.data.schema.get_field_index(END), END, ends)
    check_times(Batch(data), TIME, END)
    return Batch(data.filter(pc.not_equal(data.column(MASK), 0)))


class _Matchers(Protocol):
    """One or several, each with a table of rows."""

    def process(self, batch: Batch) -> list[pa.Table]: ...
    def finish(self) -> list[pa.Table]: ...
    @property
    def counts(self) -> dict[str, int]: ...


def _told_by(
    matchers: _Matchers, batches: Iterator[pa.RecordBatch], task: Task, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        for events in gathered(batches):
            yield from _rows(matchers.process(_batch(events, task.layout)), schema)
        yield from _rows(matchers.finish(), schema)
    except (ConditionError, EventError, LimitExceeded, SkipError) as error:
        yield _told(schema, ERROR, str(error))
        return
    counts = matchers.counts
    if any(counts.values()):
        yield _told(schema, COUNTS, counts)


@lru_cache(maxsize=8)
def compiled_plans(plans: bytes) -> CompiledPlans:
    """Kept for the next partition: Spark uses a worker for one task after the other."""
    return compile_plans(pickle.loads(plans))  # noqa: S301 - from the driver, as the function itself is


def _batch(events: pa.RecordBatch, layout: tuple[tuple[str, str], ...]) -> Batch:
    columns = {name: events.column(shipped) for name, shipped in layout}
    columns[TIME] = columns[TIME].cast(TIME_TYPE)
    return Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def _rows(found: list[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if rows := [filled(matches, schema) for matches in found if matches.num_rows]:
        yield from pa.concat_tables(rows).combine_chunks().to_batches(max_chunksize=_OUTPUT_ROWS)


def _told(schema: pa.Schema, column: str, value: str | dict[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{column: value}], schema=schema)


def output_schema(rows: pa.Schema) -> pa.Schema:
    """`rows` with the columns for what is told besides; any column may be NULL, as it is in those rows."""
    counts = pa.struct([pa.field(name, pa.int64()) for name in MATCHER_COUNTS])
    told = [pa.field(ERROR, pa.string()), pa.field(COUNTS, counts)]
    return pa.schema([*told, *(field.with_nullable(nullable=True) for field in rows)])
