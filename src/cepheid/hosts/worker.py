"""What runs in a Spark worker: one matcher over the sorted events of a partition.

Besides the matches a worker has two things to tell: why it cannot go on, and what it counted. Both are rows of their
own, with all other columns NULL, which the host takes out again: an exception would reach the user below the worker's
stack.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.compile.compiled import CompiledPattern, compile_plan
from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError
from cepheid.events import TIME, TIME_TYPE, Batch
from cepheid.hosts.gathering import gathered
from cepheid.hosts.request import COUNTS, ERROR, MATCHER_COUNTS
from cepheid.output import row_schema
from cepheid.sorted_matcher import SortedMatcher

_OUTPUT_ROWS = 1 << 16


class Task(NamedTuple):
    """What a worker is to do."""

    plan: bytes
    """A pickled Plan: it comes with the function that Spark pickles, and is read only once the versions agree."""
    layout: tuple[tuple[str, str], ...]
    """The matcher's columns, each with the shipped column that holds it; one may hold several."""
    until: int | None


def find_matches(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The matches in a partition, whose events come in the order of key, time and sequence; `given` is a Task's."""
    task = Task(*given)
    pattern = compiled(task.plan)
    matcher = SortedMatcher(pattern, until=task.until)
    schema = output_schema(row_schema(pattern.plan))
    try:
        for events in gathered(batches):
            yield from _rows(matcher.process(_batch(events, task.layout)), schema)
        yield from _rows(matcher.finish(), schema)
    except (ConditionError, EventError, LimitExceeded, SkipError) as error:
        yield _told(schema, ERROR, str(error))
        return
    counts = {"ties": matcher.ties, **asdict(matcher.found)}
    if any(counts.values()):
        yield _told(schema, COUNTS, counts)


@lru_cache(maxsize=8)
def compiled(plan: bytes) -> CompiledPattern:
    """Kept for the next partition: Spark uses a worker for one task after the other."""
    return compile_plan(pickle.loads(plan))  # noqa: S301 - from the driver, as the function itself is


def _batch(events: pa.RecordBatch, layout: tuple[tuple[str, str], ...]) -> Batch:
    columns = {name: events.column(shipped) for name, shipped in layout}
    columns[TIME] = columns[TIME].cast(TIME_TYPE)
    return Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def _rows(matches: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if matches.num_rows == 0:
        return
    nothing = [pa.nulls(matches.num_rows, schema.field(name).type) for name in (ERROR, COUNTS)]
    table = pa.Table.from_arrays([*nothing, *matches.columns], schema=schema)
    yield from table.combine_chunks().to_batches(max_chunksize=_OUTPUT_ROWS)


def _told(schema: pa.Schema, column: str, value: str | dict[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{column: value}], schema=schema)


def output_schema(rows: pa.Schema) -> pa.Schema:
    """`rows` with the columns for what is told besides; any column may be NULL, as it is in those rows."""
    counts = pa.struct([pa.field(name, pa.int64()) for name in MATCHER_COUNTS])
    told = [pa.field(ERROR, pa.string()), pa.field(COUNTS, counts)]
    return pa.schema([*told, *(field.with_nullable(nullable=True) for field in rows)])
