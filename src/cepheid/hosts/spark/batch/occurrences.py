"""Patterns of occurrences on Spark, as batches: the events travel as those of any pattern do, to another matcher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cepheid.events.batch import Schema, mask_column, microseconds
from cepheid.hosts.spark.batch.detect import check_columns, counted, in_order, measure_columns, told_rows
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema
from cepheid.hosts.spark.lift import Times, lifting, named, session_zone
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.output.occurrences import occurrence_schema
from cepheid.output.stages import merged
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.requests.request import (
    COUNTS,
    ERROR,
    MATCHER_COUNTS,
    EventCounts,
    Request,
    instant_of,
    planned_occurrences,
    warn_of,
)

WORK = "cepheid.hosts.spark.batch.worker.find_occurrences"


def occurrences_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The occurrences in `events`, in no order: a plan that runs with an action on it, which raises as one of
    `detect_on_spark` does.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
    """
    plans = occurrence_plans_on_spark(events, request)
    warn_of(plans)
    if request.as_of is not None:
        request = replace(request, as_of=instant_of(request.as_of, request.time_zone or session_zone(events)))
    read, found = Observation(), Observation()
    if request.report is not None:
        request.report.set(lambda: EventCounts(**read.get, **found.get))
    times = Times.of(events, request.time, request.time_zone)
    lift = lifting(plans, times)
    shipped = counted(events, request, times, read).select(*lift.shipped)
    (bits,) = plans.relevant
    shipped = shipped.where(lift[mask_column(0)].bitwiseAND(F.lit(bits)) != 0)
    rows = StructType(merged([_row_type(plan, events.schema).fields for plan in plans.each], last="events"))
    until = None if request.as_of is None else microseconds(request.as_of)
    task = (packed(plans), tuple(lift.layout.items()), until)
    found_rows = in_order(shipped, plans.schema, lift).mapInArrow(mapped(WORK, task, rows), rows)
    return told_rows(found_rows, found).select(*_output_columns(plans, rows))


def occurrence_plans_on_spark(events: DataFrame, request: Request) -> OccurrencePlans:
    """Raises PatternError and SchemaError, as `occurrences_on_spark` does, with the problems of all patterns."""
    check_columns(events, request)
    schema = Schema(arrow_schema(events.schema), request.key, request.time, request.sequence)
    return planned_occurrences(request, schema, SparkEngine(events))


def _row_type(plan: OccurrencePlan, events: StructType) -> StructType:
    """The workers' rows: what they tell, then the matcher's columns, in the events' own types."""
    counts = StructType([StructField(name, LongType()) for name in MATCHER_COUNTS])
    told = [name for name in occurrence_schema(plan).names if name in ("kind", "pattern")]
    fields: list[tuple[str, DataType]] = [(ERROR, StringType()), (COUNTS, counts)]
    fields += [(name, StringType()) for name in (*told, "match_id")]
    fields += [(name, events[name].dataType) for name in plan.schema.key]
    fields += [(name, TimestampType()) for name in ("match_start", "match_end", "detected_at")]
    event = StructType([StructField(name, events[name].dataType) for name in plan.columns])
    if plan.measures is not None:
        slots = plan.slots.items()
        fields += [(name, from_arrow_type(slot.type, prefer_timestamp_ntz=True)) for name, slot in slots]
    else:
        span = StructType([StructField(name, TimestampType()) for name in ("start", "end")])
        given = [variable for variable in plan.variables if variable.in_output]
        fields += [(variable.name, event if variable.is_event else span) for variable in given]
        fields.append(("events", ArrayType(_member_type(plan, events))))
    fields += [] if plan.outputs is None else [("event", event)]
    return StructType([StructField(name, type_) for name, type_ in fields])


def _member_type(plan: OccurrencePlan, events: StructType) -> StructType:
    fields: list[tuple[str, DataType]] = [("type", events[plan.type_column.name].dataType), ("time", TimestampType())]
    if plan.has_delays:
        fields += [("delay", DayTimeIntervalType()), ("depth", IntegerType())]
    fields += [(name, events[name].dataType) for name in plan.member_columns]
    return StructType([StructField(name, type_) for name, type_ in fields])


def _output_columns(plans: OccurrencePlans, rows: StructType) -> Iterator[Column]:
    """Those of the rows, with the measures in the place of their slots."""
    slots = {name for plan in plans.each for name in plan.slots}
    names = [name for name in rows.names if name not in (ERROR, COUNTS, *slots)]
    yield from (named(name) for name in names if name != "event")
    yield from measure_columns(*plans.each)
    yield from (named(name) for name in names if name == "event")
