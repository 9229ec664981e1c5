"""Threads that put the events of their tasks in order themselves.

Until a task begins only the numbers of the rows are in order. So this work is divided, too, and few events are in order
at once: with P8 of docs/performance.md, 20 million events in order would take 0.7 GB, whose pages the system clears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.events.batch import Batch, Schema
from cepheid.events.order import Ordered, ordering_of
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.sort import KeysInOrder, OrderedEvents
from cepheid.hosts.in_process.workers.division import Division, PartEvents
from cepheid.hosts.in_process.workers.matcher import found_in_parts
from cepheid.hosts.in_process.workers.worker_groups import ThreadWorker
from cepheid.hosts.meanwhile import Found
from cepheid.hosts.pace import in_portions
from cepheid.plan.plan_set import PlanSet


class EventsInPlace(NamedTuple):
    """Events that are put in order when they are read (SpooledEvents). The events read at once neither begin nor end
    within an instant.
    """

    schema: Schema
    keys: KeysInOrder
    batches: Callable[[int, int], Iterator[Batch]]
    """The events from a position to before another one. Several threads may take them."""

    def read(self, first: int, end: int) -> Iterator[Ordered]:
        if first == end:
            return
        ordering = ordering_of(self.schema, begins_key=self.keys.begins_at(first))
        for batch in in_portions(self.batches(first, end)):
            yield from ordering.process(batch)
        yield from ordering.finish()


def can_be_found_in_place(plans: PlanSet[Any], ordered: OrderedEvents) -> bool:
    """Whether a task can read its events by their positions: none is left out when they are read, as for one of several
    patterns.
    """
    return ordered.keys.rows is not None and len(plans.each) == 1


def found_in_place(
    family: Family,
    plans: PlanSet[Any],
    compiled: CompiledSet,
    ordered: OrderedEvents,
    *,
    division: Division,
    engine: DuckDbEngine,
) -> Found:
    """What threads find in the events, of a kind of pattern that takes them in order. The engine evaluates nothing.

    Raises:
        as `found_in_parts`.
    """
    (part,) = family.parts(compiled)
    keys = ordered.keys
    assert keys.rows is not None
    rows, times = keys.rows.to_numpy(), ordered.times.view(pa.int64()).to_numpy()
    known = PartEvents(0, keys.length, keys.around, lambda position: int(times[rows[position]]), part.slices)
    events = EventsInPlace(plans.schema, keys, lambda first, end: ordered.batches(first, end, engine))
    workers = [ThreadWorker([part], [events]) for _ in range(division.workers)]
    found, counts = found_in_parts(family, plans, [known], division, workers)
    return Found([found], counts)
