"""Interval patterns on Spark, as batches: Spark lifts the columns and brings the events of a key together."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cepheid.errors import PatternError, Problem, SchemaError
from cepheid.events import EVENT_PREFIX, KEY_PREFIX, TIME, VALUE_PREFIX, mask_column
from cepheid.hosts.interval_request import IntervalRequest
from cepheid.hosts.request import COUNTS, ERROR, MATCHER_COUNTS, repeated_names, warn
from cepheid.hosts.sending import mapped, packed
from cepheid.hosts.spark_engine import SparkEngine, arrow_schema, expression, is_carried, sql_name
from cepheid.hosts.spark_lift import Lift, Times, mask_of, named, raised, session_zone, usable
from cepheid.interval_output import END, match_schema
from cepheid.plan.interval_build import build_interval_plan
from cepheid.plan.interval_plan import IntervalPlan, IntervalSchema
from cepheid.plan.plans import words_of

WORK = "cepheid.hosts.worker.find_intervals"


def intervals_on_spark(events: DataFrame, request: IntervalRequest) -> DataFrame:
    """The matches in `events`, in no order: a plan that runs with an action on it.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
    """
    if events.isStreaming:
        message = f"pattern {request.pattern.name!r} is one of intervals, which a stream does not find yet"
        raise PatternError(Problem(message, hint="Use an IntervalMatcher, or a DataFrame that is no stream."))
    plan = _plan(events, request)
    zone = request.time_zone or session_zone(events)
    start, end = (Times.of(events, name, zone) for name in (request.start, request.end))
    placed = usable(usable(events, request.key, start, request.nulls), (), end, request.nulls)
    reversed_ = end.instants < start.instants
    if request.nulls == "drop":
        placed = placed.where(~reversed_)
    else:
        message = f"an event ends before it starts: {request.end!r} is before {request.start!r}. "
        advice = 'Mend or drop such events before, or give nulls="drop"'
        placed = placed.where(F.when(reversed_, raised(F.lit(message + advice))).otherwise(F.lit(True)))  # noqa: FBT003
    lift = _lift(plan, start, end)
    shipped = placed.select(*lift.shipped).where(lift[mask_column(0)] != 0)
    key = [lift[f"{KEY_PREFIX}{i}"] for i in range(len(request.key))]
    if not key:
        warn("no key: all events are one sequence, which one Spark task works through alone")
    together = shipped.repartition(*key) if key else shipped.repartition(1)
    rows = _row_type(plan, events.schema)
    task = (packed(plan), tuple(lift.layout.items()), None)
    told = together.mapInArrow(mapped(WORK, task, rows), rows)
    sound = told.where(F.when(named(ERROR).isNotNull(), raised(named(ERROR))).otherwise(named(COUNTS).isNull()))
    return sound.select(*map(named, match_schema(plan).names))


def _plan(events: DataFrame, request: IntervalRequest) -> IntervalPlan:
    faults = repeated_names(events.columns)
    chosen = events.columns if request.columns is None else request.columns
    types = {field.name: field.dataType for field in events.schema}
    faults += [
        f"{name!r} is of type {sql_name(types[name])}, which a worker cannot be sent. Name the others with columns=…"
        for name in (*request.key, *chosen)
        if name in types and not is_carried(types[name])
    ]
    if faults:
        raise SchemaError("\n".join(faults))
    schema = IntervalSchema(arrow_schema(events.schema), request.key, request.type, request.start, request.end)
    return build_interval_plan(
        request.pattern,
        schema,
        SparkEngine(events),
        columns=request.columns,
        kinds=request.kinds,
        limits=request.limits,
    )


def _lift(plan: IntervalPlan, start: Times, end: Times) -> Lift:
    lift = Lift()
    for i, name in enumerate(plan.schema.key):
        lift.add(f"{KEY_PREFIX}{i}", named(name), name)
    for column, times in ((TIME, start), (END, end)):
        lift.add(column, times.instants, times.name if times.zone is None else None)
    for word, bits in enumerate(words_of(plan.bits)):
        lift.add(mask_column(word), mask_of(bits))
    for name in plan.columns:
        lift.add(EVENT_PREFIX + name, named(name), name)
    for i, value in enumerate(plan.values):
        lift.add(f"{VALUE_PREFIX}{i}", expression(value.sql))
    return lift


def _row_type(plan: IntervalPlan, events: StructType) -> StructType:
    """The workers' rows: what they tell, then those of `match_schema`, in the events' own types."""
    counts = StructType([StructField(name, LongType()) for name in MATCHER_COUNTS])
    fields = [StructField(ERROR, StringType()), StructField(COUNTS, counts), StructField("match_id", StringType())]
    fields += [StructField(name, events[name].dataType) for name in plan.schema.key]
    fields += [StructField(name, TimestampType()) for name in ("match_start", "match_end")]
    event = StructType([StructField(name, events[name].dataType) for name in plan.columns])
    return StructType(fields + [StructField(p.variable, event) for p in plan.pattern.positives])
