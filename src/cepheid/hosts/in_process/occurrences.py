"""Patterns of occurrences in process: the events come in as those of any pattern do, and go to another matcher."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from cepheid.events.batch import Schema, microseconds
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import check_columns, ordered_batches, tell, tell_ties, with_measures
from cepheid.hosts.in_process.prefetch import ahead
from cepheid.hosts.in_process.prepare import timed, usable, used_columns
from cepheid.hosts.in_process.tables import plain_schema, without_views
from cepheid.matchers.occurrences.finite import OccurrenceMatcher
from cepheid.output.stages import filled, merged
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.requests.request import Request, instant_of, planned_occurrences, warn_of


def detect_occurrences(events: pa.Table, request: Request) -> pa.Table:
    """The occurrences in `events`, as rows in the order of key and emission.

    Raises:
        as `detect_in_process` does.
    """
    zone = request.time_zone or "UTC"
    until = None if request.as_of is None else microseconds(instant_of(request.as_of, zone))
    engine = DuckDbEngine(time_zone=zone)
    plans = occurrence_plans(events.schema, request, engine)
    warn_of(plans)
    events = without_views(events.select(used_columns(plans)))
    usable_events, counts = usable(timed(events, request), plans, request, until)
    matcher = OccurrenceMatcher(plans, until=until)
    found = [matcher.process(batch) for batch in ahead(ordered_batches(usable_events, plans, plans.relevant, engine))]
    found.append(matcher.finish())
    counts = replace(counts, **matcher.counts)
    tell(counts, request)
    # What is simultaneous is so in any order; only contexts use up one of such events before another.
    if any(plan.policy.is_context for plan in plans.each):
        tell_ties(counts, request)
    tables = [pa.concat_tables(parts) for parts in zip(*found, strict=True)]
    tables = [
        rows if plan.measures is None else with_measures(rows, plan.measures, engine)
        for plan, rows in zip(plans.each, tables, strict=True)
    ]
    schema = pa.schema(merged([list(rows.schema) for rows in tables], last="events"))
    return pa.concat_tables([filled(rows, schema) for rows in tables])


def occurrence_plans(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> OccurrencePlans:
    """Raises PatternError and SchemaError, as `detect_occurrences` does, with the problems of all patterns."""
    schema = Schema(plain_schema(columns), request.key, request.time, request.sequence)
    check_columns(schema)
    return planned_occurrences(request, schema, engine)
