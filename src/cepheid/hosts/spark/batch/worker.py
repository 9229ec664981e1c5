"""The code that runs in a Spark worker: a matcher for each pattern, over the sorted events of a partition.

Besides the matches, a worker reports why it cannot continue, and what it counted. Both are separate rows, in which all
other columns are NULL. The host removes these rows. An exception would reach the user only below the worker's stack.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.families import family_named
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.meanwhile import PatientMatcher
from cepheid.hosts.spark.coalesce import coalesced
from cepheid.matchers.counts import MATCHER_COUNTS
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.output.common import filled, merged, nullable
from cepheid.output.times import given_rows, given_schema
from cepheid.plan.plan_set import PlanSet
from cepheid.requests.request import COUNTS, ERROR

FoundRows: TypeAlias = Callable[[list[pa.Table]], list[pa.Table]]
"""Converts the tables that a matcher returns."""
Layout: TypeAlias = tuple[tuple[str, str], ...]
"""The matcher's columns, each with the shipped column that holds it. Several may share a shipped column."""
_OUTPUT_ROWS = 1 << 16

CAUSED_BY_EVENTS = (ConditionError, EventError, LimitExceeded, SkipError)
"""The errors that a worker reports."""


class Task(NamedTuple):
    """What a worker needs for detecting matches."""

    kind: str
    """The kind of the patterns."""
    plans: bytes
    """Pickled plans. They come with the function that Spark pickles, but are read only once the versions agree."""
    layout: Layout
    until: int | None
    zone: str
    """The zone of times without one."""
    width: int | None
    """The width of time slices, in microseconds; None: events are divided by their keys."""


def find_matches(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The matches in a partition, whose events are in the order that the kind of pattern needs. `given` has the fields
    of a Task.
    """
    task = Task(*given)
    yield from found_by(task, batches_of_layout(batches, task.layout))


def found_by(task: Task, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
    """The matches in the batches, which are in order, and the worker's messages."""
    family = family_named(task.kind)
    plans, compiled = compiled_plans(task.kind, task.plans)
    matcher: FiniteMatcher
    if task.width is None:
        matcher = PatientMatcher(family, compiled, task.until)
    else:
        matcher = family.sliced(compiled, task.width, task.until)
    yield from found_in(batches, matcher, output_schema(rows_of_all(family, plans)), given_to_user(plans, task.zone))


def given_to_user(plans: PlanSet[Any], zone: str) -> FoundRows:
    """Gives times in the matchers' rows the types that users have."""

    def rows_of_each(found: list[pa.Table]) -> list[pa.Table]:
        return [given_rows(plan, rows, zone) for plan, rows in zip(plans.each, found, strict=False) if len(rows)]

    return rows_of_each


def found_in(
    batches: Iterable[Batch],
    matcher: FiniteMatcher,
    schema: pa.Schema,
    rows_of: FoundRows,
) -> Iterator[pa.RecordBatch]:
    """What the matcher finds in the batches as rows of `schema`, and the worker's messages."""
    try:
        for batch in batches:
            yield from rows_in_parts(rows_of(matcher.process(batch)), schema)
        yield from rows_in_parts(rows_of(matcher.finish()), schema)
    except CAUSED_BY_EVENTS as error:
        yield message(schema, ERROR, str(error))
        return
    if any(matcher.counts.values()):
        yield message(schema, COUNTS, matcher.counts)


def rows_of_all(family: Family, plans: PlanSet[Any]) -> pa.Schema:
    """The columns of all patterns' rows."""
    each = zip(plans.each, family.row_schemas(plans), strict=True)
    return pa.schema(merged([list(given_schema(plan, rows)) for plan, rows in each], family.last_columns))


@lru_cache(maxsize=8)
def compiled_plans(kind: str, packed: bytes) -> tuple[PlanSet[Any], CompiledSet]:
    """The plans, and the same compiled. They are cached: Spark uses a worker for many tasks, one after the other."""
    plans: PlanSet[Any] = pickle.loads(packed)  # noqa: S301 - from the driver, as the function itself is
    return plans, family_named(kind).compile(plans)


def batches_of_layout(batches: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[Batch]:
    """The events as matchers take them, many at once."""
    return (batch_of_layout(events, layout) for events in coalesced(batches))


def batch_of_layout(events: pa.RecordBatch, layout: Layout) -> Batch:
    columns = {name: events.column(shipped) for name, shipped in layout}
    for name in (TIME, END):
        if name in columns:
            columns[name] = columns[name].cast(TIME_TYPE)
    return Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def rows_in_parts(found: list[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The tables as batches of `schema`; columns that a table lacks are NULL."""
    if rows := [filled(matches, schema) for matches in found]:
        yield from pa.concat_tables(rows).combine_chunks().to_batches(max_chunksize=_OUTPUT_ROWS)


def message(schema: pa.Schema, column: str, value: str | dict[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{column: value}], schema=schema)


def output_schema(rows: pa.Schema) -> pa.Schema:
    """`rows` with the columns of the worker's messages. Any column may be NULL: in a message all others are."""
    counts = pa.struct([pa.field(name, pa.int64()) for name in MATCHER_COUNTS])
    messages = [pa.field(ERROR, pa.string()), pa.field(COUNTS, counts)]
    return pa.schema([*messages, *nullable(rows)])
