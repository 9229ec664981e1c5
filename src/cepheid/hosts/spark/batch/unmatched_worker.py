"""The code that runs in a Spark worker where events without a match have rows, too.

A worker numbers the events of its partition and retains them in Arrow. A row of the matcher has the number of its
event, from which it gets the event's columns. At the end, each event whose number is in no row has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, NUMBER, Batch
from cepheid.families import family_named
from cepheid.families.family import Family
from cepheid.hosts.meanwhile import PatientMatcher
from cepheid.hosts.spark.batch.worker import (
    Task,
    batches_of_layout,
    compiled_plans,
    found_in,
    given_to_user,
    output_schema,
    rows_in_parts,
    rows_of_all,
)
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.matchers.working_set import mask_of, rows_with_any
from cepheid.output.events import own_columns
from cepheid.output.typed import as_typed
from cepheid.plan.plan_set import PlanSet, Words, relevant_to_any
from cepheid.plan.reserved import ROW_NUMBER


def find_with_unmatched(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of events of a partition, also of those without a match. `given` has the fields of a Task, whose plans
    are numbered.
    """
    task = Task(*given)
    family = family_named(task.kind)
    plans, compiled = compiled_plans(task.kind, task.plans)
    schema, events = output_schema(rows_of_events(family, plans)), PartitionEvents(plans)
    relevant, as_given = relevant_to_any(compiled.relevant_to), given_to_user(plans, task.zone)
    matcher = _Numbering(PatientMatcher(family, compiled, task.until), events, relevant)
    yield from found_in(
        batches_of_layout(batches, task.layout),
        matcher,
        schema,
        lambda found: [events.with_columns(rows) for rows in as_given(found)],
    )
    yield from rows_in_parts([events.unmatched()], schema)


def rows_of_events(family: Family, plans: PlanSet[Any]) -> pa.Schema:
    """The columns of all patterns' rows, with those of the event in place of its number."""
    fields = [*rows_of_all(family, plans)]
    place, plan = [field.name for field in fields].index(ROW_NUMBER), plans.each[0]
    fields[place : place + 1] = [plan.schema.columns.field(name) for name in own_columns(plan)]
    return pa.schema(fields)


class PartitionEvents:
    """The events of a partition, by their numbers from 0."""

    def __init__(self, plans: PlanSet[Any]) -> None:
        plan = plans.each[0]
        columns, own = plan.schema.columns, own_columns(plan)
        self._keys = {name: f"{KEY_PREFIX}{i}" for i, name in enumerate(plan.schema.key)}
        self._own = {name: f"{EVENT_PREFIX}{name}" for name in own}
        self._schema = pa.schema([columns.field(name).with_nullable(nullable=True) for name in (*self._keys, *own)])
        self._parts: list[pa.RecordBatch] = []
        self._ends = [0]
        self._in_rows: list[Ints] = []

    def numbered(self, batch: Batch) -> Batch:
        """The batch with the numbers of its events, which are retained."""
        first, end = self._ends[-1], self._ends[-1] + len(batch)
        columns = [batch.column(source) for source in (*self._keys.values(), *self._own.values())]
        typed = [as_typed(field.type, column) for field, column in zip(self._schema, columns, strict=True)]
        self._parts.append(pa.RecordBatch.from_arrays(typed, schema=self._schema))
        self._ends.append(end)
        return Batch(batch.data.append_column(NUMBER, pa.array(np.arange(first, end))))

    def with_columns(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns of their events in place of the numbers."""
        numbers = rows.column(ROW_NUMBER).to_numpy()
        self._in_rows.append(numbers)
        first, last = np.searchsorted(self._ends, [numbers.min(), numbers.max()], side="right") - 1
        events = pa.Table.from_batches(self._parts[first : last + 1]).take(pa.array(numbers - self._ends[first]))
        rows = rows.drop_columns([ROW_NUMBER])
        for name in self._own:
            rows = rows.append_column(self._schema.field(name), events.column(name))
        return rows

    def unmatched(self) -> pa.Table:
        """The events that are in no row, with their columns and those of the key."""
        is_free = np.ones(self._ends[-1], np.bool_)
        for numbers in self._in_rows:
            is_free[numbers] = False
        each = zip(self._parts, np.split(is_free, self._ends[1:-1]), strict=False)
        return pa.Table.from_batches([part.filter(pa.array(free)) for part, free in each], self._schema)


class _Numbering:
    """A matcher that numbers its events. Those that matter to no pattern do not reach it."""

    def __init__(self, matcher: FiniteMatcher, events: PartitionEvents, relevant: Words | None) -> None:
        self._matcher = matcher
        self._events = events
        self._relevant = relevant

    def process(self, batch: Batch) -> list[pa.Table]:
        batch = self._events.numbered(batch)
        if self._relevant is not None:
            masks = [mask_of(batch, word) for word in range(len(self._relevant))]
            batch = batch.take(pa.array(rows_with_any(masks, self._relevant)))
        return self._matcher.process(batch) if len(batch) else []

    def finish(self) -> list[pa.Table]:
        return self._matcher.finish()

    @property
    def counts(self) -> dict[str, int]:
        return self._matcher.counts
