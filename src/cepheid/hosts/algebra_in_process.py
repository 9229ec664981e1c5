"""Patterns of occurrences in process: the events come in as those of any pattern do, and go to another matcher."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pyarrow as pa

from cepheid.algebra_matcher import OccurrenceMatcher
from cepheid.events import Schema, microseconds
from cepheid.hosts.ahead import ahead
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.in_process import check_columns, ordered_batches, tell, with_measures
from cepheid.hosts.intake import timed, usable, used_columns
from cepheid.hosts.request import Request, instant_of, warn
from cepheid.hosts.tables import plain_schema, without_views
from cepheid.plan.algebra import OccurrencePlan
from cepheid.plan.algebra_build import build_occurrence_plan
from cepheid.plan.algebra_plans import OccurrencePlans


def detect_occurrences(events: pa.Table, request: Request) -> pa.Table:
    """The occurrences in `events`, as rows in the order of key and emission.

    Raises:
        as `detect_in_process` does.
    """
    zone = request.time_zone or "UTC"
    until = None if request.as_of is None else microseconds(instant_of(request.as_of, zone))
    engine = DuckDbEngine(time_zone=zone)
    plan = occurrence_plan(events.schema, request, engine)
    plans = OccurrencePlans.of([plan])
    for warning in plan.warnings:
        warn(warning)
    events = without_views(events.select(used_columns(plans)))
    usable_events, counts = usable(timed(events, request), plans, request, until)
    matcher = OccurrenceMatcher(plans, until=until)
    found = [matcher.process(batch) for batch in ahead(ordered_batches(usable_events, plans, plans.relevant, engine))]
    rows = pa.concat_tables(chain.from_iterable([*found, matcher.finish()]))
    # What is simultaneous is so in any order; only contexts use up one of such events before another.
    tell(replace(counts, **matcher.counts), request, ties_matter=plan.policy.is_context)
    return rows if plan.measures is None else with_measures(rows, plan.measures, engine)


def occurrence_plan(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> OccurrencePlan:
    """Raises PatternError and SchemaError, as `detect_occurrences` does."""
    schema = Schema(plain_schema(columns), request.key, request.time, request.sequence)
    check_columns(schema)
    assert request.occurrences is not None
    pattern, measures = request.occurrences
    return build_occurrence_plan(
        pattern, schema, engine, columns=request.columns, measures=measures, limits=request.limits
    )
