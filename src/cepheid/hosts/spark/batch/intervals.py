"""Interval patterns on Spark, as batches: Spark lifts the columns and brings the events of a key together."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, VALUE_PREFIX
from cepheid.hosts.spark.batch.detect import check_columns, together, told_rows
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression
from cepheid.hosts.spark.lift import Lift, Times, mask_of, named, raised, session_zone, usable, without_key
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.output.intervals import END, matches_schema
from cepheid.plan.intervals.build import build_interval_plans
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans, IntervalSchema
from cepheid.requests.counts import IntervalCounts
from cepheid.requests.request import COUNTS, ERROR, MATCHER_COUNTS, Request

WORK = "cepheid.hosts.spark.batch.worker.find_intervals"
_FOUND = ("matches", "dropped_matches")
"""Of MATCHER_COUNTS, what there is of intervals."""


def intervals_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The matches in `events`, in no order: a plan that runs with an action on it, which raises as one of
    `detect_on_spark` does.

    Raises:
        PatternError, SchemaError: a pattern, the names or the types are wrong.
    """
    plans = interval_plans_on_spark(events, request)
    read, found = Observation(), Observation()
    if request.report is not None:
        request.report.set(lambda: IntervalCounts(**read.get, **{name: found.get[name] for name in _FOUND}))
    zone = request.time_zone or session_zone(events)
    start, end = (Times.of(events, name, zone) for name in (plans.schema.start, plans.schema.end))
    lift = _shared(plans, start, end)
    layouts = [_layout(lift, plan, f"{number}") for number, plan in enumerate(plans.each)]
    matters = reduce(Column.__or__, [F.col(layout[MASK]) != 0 for layout in layouts])
    shipped = _counted(events, request, start, end, read).select(*lift.shipped).where(matters)
    rows = _row_type(plans, events.schema)
    task = (packed(plans), tuple(tuple(layout.items()) for layout in layouts))
    by_key = together(shipped, [lift[f"{KEY_PREFIX}{i}"] for i in range(len(request.key))])
    told = told_rows(by_key.mapInArrow(mapped(WORK, task, rows), rows), found)
    return told.select(*map(named, matches_schema(plans).names))


def interval_plans_on_spark(events: DataFrame, request: Request) -> IntervalPlans:
    """Raises PatternError and SchemaError, as `intervals_on_spark` does."""
    check_columns(events, request)
    assert request.intervals is not None
    schema = IntervalSchema(arrow_schema(events.schema), request.key, request.intervals.start, request.intervals.end)
    return build_interval_plans(
        request.intervals.patterns,
        schema,
        SparkEngine(events),
        named=request.named,
        columns=request.columns,
        limits=request.limits,
    )


def _counted(events: DataFrame, request: Request, start: Times, end: Times, read: Observation) -> DataFrame:
    """The events that have key and times and are not reversed, the counts taken before others are dropped."""
    no_key = without_key(request.key)
    no_time = ~no_key & (start.missing | end.missing)
    counts = {"events": F.lit(1), "null_keys": F.when(no_key, 1), "null_times": F.when(no_time, 1)}
    counts["reversed"] = F.when(~no_key & ~no_time & has_no_interval(start, end), 1)
    events = events.observe(read, *(F.count(column).alias(name) for name, column in counts.items()))
    return intervals_alone(events, request, start, end)


def has_no_interval(start: Times, end: Times) -> Column:
    """Whether an event lacks one of its times, or ends before it starts."""
    return start.missing | end.missing | (end.instants < start.instants)


def intervals_alone(events: DataFrame, request: Request, start: Times, end: Times) -> DataFrame:
    """The events that have key and times and are not reversed; others fail, or are dropped."""
    placed = usable(usable(events, request.key, start, request.nulls), (), end, request.nulls)
    backwards = end.instants < start.instants
    if request.nulls == "drop":
        return placed.where(~backwards)
    message = f"an event ends before it starts: {end.name!r} is before {start.name!r}. "
    advice = 'Mend or drop such events before, or give nulls="drop"'
    return placed.where(F.when(backwards, raised(F.lit(message + advice))).otherwise(F.lit(True)))  # noqa: FBT003


def _shared(plans: IntervalPlans, start: Times, end: Times) -> Lift:
    """What all patterns need of the events."""
    lift = Lift()
    for i, name in enumerate(plans.schema.key):
        lift.add(f"{KEY_PREFIX}{i}", named(name), name)
    for column, times in ((TIME, start), (END, end)):
        lift.add(column, times.instants, times.name if times.zone is None else None)
    for name in plans.columns:
        lift.add(EVENT_PREFIX + name, named(name), name)
    return lift


def _layout(lift: Lift, plan: IntervalPlan, prefix: str) -> dict[str, str]:
    """Adds what the pattern needs besides; the columns of its matcher, each with the shipped one."""
    own = {MASK: mask_of(plan.bits)} | {f"{VALUE_PREFIX}{i}": expression(v.sql) for i, v in enumerate(plan.values)}
    for name, column in own.items():
        lift.add(prefix + name, column)
    columns = [*(f"{KEY_PREFIX}{i}" for i in range(len(plan.schema.key))), TIME, END]
    columns += [EVENT_PREFIX + name for name in plan.columns]
    return {name: lift.layout[name] for name in columns} | {name: lift.layout[prefix + name] for name in own}


def _row_type(plans: IntervalPlans, events: StructType) -> StructType:
    """The workers' rows: what they tell, then those of `matches_schema`, in the events' own types."""
    counts = StructType([StructField(name, LongType()) for name in MATCHER_COUNTS])
    fields = [StructField(ERROR, StringType()), StructField(COUNTS, counts)]
    fields += [StructField("pattern", StringType())] if plans.named else []
    fields += [StructField("match_id", StringType())]
    fields += [StructField(name, events[name].dataType) for name in plans.schema.key]
    fields += [StructField(name, TimestampType()) for name in ("match_start", "match_end")]
    event = StructType([StructField(name, events[name].dataType) for name in plans.columns])
    variables = dict.fromkeys(p.variable for plan in plans.each for p in plan.pattern.positives)
    return StructType([*fields, *(StructField(variable, event) for variable in variables)])
