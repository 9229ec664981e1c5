"""Rows of events without a match, on Spark.

The worker that has all events of a key knows which of them no match took, so all events are shipped, also those that
can be in no match. Events that reach no worker, as they have no key or time or come after `as_of`, are added to the
workers' rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import SchemaError
from cepheid.hosts.spark.lift import Times, any_of, missing, named
from cepheid.output.events import own_columns
from cepheid.plan.plan_set import PlanSet
from cepheid.requests.request import Request, last_instant

WORK = "cepheid.hosts.spark.batch.unmatched_worker.find_with_unmatched"


def check_undivided(request: Request) -> None:
    """Raises SchemaError if the request divides a key's events among several workers."""
    if request.slices:
        raise SchemaError(
            "slices: an event is in several slices, and none of them knows all matches; leave out slices or unmatched"
        )


def unread(events: DataFrame, request: Request, times: Sequence[Times], zone: str) -> DataFrame | None:
    """The events that go to no worker; None if all of them do."""
    is_unread = [] if request.nulls == "error" else missing(request.key, times)
    if (until := last_instant(request, zone)) is not None:
        is_unread.append(f"NOT {times[-1].until(until)}")
    return events.where(any_of(is_unread)) if is_unread else None


def with_unmatched(rows: DataFrame, events: DataFrame, plans: PlanSet[Any]) -> DataFrame:
    """The rows, and one for each of these events: NULL in all columns but those of the event."""
    own = {*plans.schema.key, *own_columns(plans.each[0])}
    columns = (
        named(field.name) if field.name in own else F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema
    )
    return rows.union(events.select(*columns))
