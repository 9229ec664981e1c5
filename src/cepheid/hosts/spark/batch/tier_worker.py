"""The code that runs in a Spark worker for one of several tiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import Batch
from cepheid.families import family_named
from cepheid.hosts.spark.batch.worker import (
    Layout,
    batches_of_layout,
    compiled_plans,
    found_in,
    given_to_user,
    output_schema,
    rows_of_all,
)
from cepheid.hosts.spark.coalesce import coalesced
from cepheid.matchers.shipped_events import ShippedEvents
from cepheid.output.common import filled
from cepheid.requests.request import COUNTS, ERROR


class TierTask(NamedTuple):
    """What a worker needs for a tier. The first fields are those of a Task."""

    kind: str
    plans: bytes
    layout: Layout
    until: int | None
    zone: str
    width: int | None
    tier: int
    """The number of the tier."""
    is_last: bool
    shipped: pa.Schema
    """The columns in which events are shipped to the first tier."""


def find_in_tier(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a tier, for a partition whose rows are in the order of sub-keys, time and sequence. `given` has the
    fields of a TierTask.

    The messages of the tier before are among its rows, and are passed on.
    """
    task = TierTask(*given)
    family = family_named(task.kind)
    plans, _ = compiled_plans(task.kind, task.plans)
    shipped = ShippedEvents(dict(task.layout), task.shipped)
    matcher = family.tier_matcher(plans, task.tier, shipped, task.until)
    schema = tier_output_schema(task, shipped)
    if task.tier == 0:
        yield from found_in(batches_of_layout(batches, task.layout), matcher, schema, _as_found)
        return
    messages: list[pa.RecordBatch] = []

    def without_messages(rows: pa.RecordBatch) -> Batch:
        is_message = pc.or_(rows.column(ERROR).is_valid(), rows.column(COUNTS).is_valid())
        messages.append(rows.filter(is_message).select([ERROR, COUNTS]))
        return Batch(rows.filter(pc.invert(is_message)).drop_columns([ERROR, COUNTS]))

    rows_of = given_to_user(plans, task.zone) if task.is_last else _as_found
    yield from found_in(map(without_messages, coalesced(batches)), matcher, schema, rows_of)
    for batch in messages:
        if len(batch):
            yield from filled(pa.Table.from_batches([batch]), schema).combine_chunks().to_batches()


def tier_output_schema(task: TierTask, shipped: ShippedEvents) -> pa.Schema:
    """The columns of the worker's rows."""
    family = family_named(task.kind)
    plans, _ = compiled_plans(task.kind, task.plans)
    rows = rows_of_all(family, plans) if task.is_last else family.tier_schema(plans, task.tier, shipped)
    return output_schema(rows)


def _as_found(found: list[pa.Table]) -> list[pa.Table]:
    return found
