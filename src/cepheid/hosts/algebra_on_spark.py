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

from cepheid.errors import PatternError, Problem
from cepheid.events import Schema, mask_column, microseconds
from cepheid.hosts.request import COUNTS, ERROR, MATCHER_COUNTS, EventCounts, Request, instant_of, warn
from cepheid.hosts.sending import mapped, packed
from cepheid.hosts.spark_batch import check_columns, counted, in_order, told_rows
from cepheid.hosts.spark_engine import SparkEngine, arrow_schema, expression
from cepheid.hosts.spark_lift import Times, lifting, named, session_zone
from cepheid.plan.algebra import OccurrencePlan
from cepheid.plan.algebra_build import build_occurrence_plan

WORK = "cepheid.hosts.worker.find_occurrences"


def occurrences_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The occurrences in `events`, in no order: a plan that runs with an action on it, which raises as one of
    `detect_on_spark` does.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
    """
    plan = occurrence_plan_on_spark(events, request)
    for warning in plan.warnings:
        warn(warning)
    if request.as_of is not None:
        request = replace(request, as_of=instant_of(request.as_of, request.time_zone or session_zone(events)))
    read, found = Observation(), Observation()
    if request.report is not None:
        request.report.set(lambda: EventCounts(**read.get, **found.get))
    times = Times.of(events, request.time, request.time_zone)
    lift = lifting(plan, times)
    shipped = counted(events, request, times, read).select(*lift.shipped)
    (bits,) = plan.relevant
    shipped = shipped.where(lift[mask_column(0)].bitwiseAND(F.lit(bits)) != 0)
    rows = _row_type(plan, events.schema)
    until = None if request.as_of is None else microseconds(request.as_of)
    task = (packed(plan), tuple(lift.layout.items()), until)
    found_rows = in_order(shipped, plan.schema, lift).mapInArrow(mapped(WORK, task, rows), rows)
    return told_rows(found_rows, found).select(*_output_columns(plan))


def occurrence_plan_on_spark(events: DataFrame, request: Request) -> OccurrencePlan:
    """Raises PatternError and SchemaError, as `occurrences_on_spark` does."""
    check_columns(events, request)
    if request.named:
        hint = "Call detect for each of them."
        raise PatternError(Problem("several patterns of occurrences at once are found in process alone", hint=hint))
    assert request.occurrences is not None
    pattern, measures = request.occurrences
    schema = Schema(arrow_schema(events.schema), request.key, request.time, request.sequence)
    engine = SparkEngine(events)
    return build_occurrence_plan(
        pattern, schema, engine, columns=request.columns, measures=measures, limits=request.limits
    )


def _row_type(plan: OccurrencePlan, events: StructType) -> StructType:
    """The workers' rows: what they tell, then the matcher's columns, in the events' own types."""
    counts = StructType([StructField(name, LongType()) for name in MATCHER_COUNTS])
    fields: list[tuple[str, DataType]] = [(ERROR, StringType()), (COUNTS, counts), ("match_id", StringType())]
    fields += [(name, events[name].dataType) for name in plan.schema.key]
    fields += [(name, TimestampType()) for name in ("match_start", "match_end", "detected_at")]
    if plan.measures is not None:
        slots = plan.slots.items()
        fields += [(name, from_arrow_type(slot.type, prefer_timestamp_ntz=True)) for name, slot in slots]
    else:
        chosen = StructType([StructField(name, events[name].dataType) for name in plan.columns])
        span = StructType([StructField(name, TimestampType()) for name in ("start", "end")])
        given = [variable for variable in plan.variables if variable.in_output]
        fields += [(variable.name, chosen if variable.is_event else span) for variable in given]
        fields.append(("events", ArrayType(_member_type(plan, events))))
    return StructType([StructField(name, type_) for name, type_ in fields])


def _member_type(plan: OccurrencePlan, events: StructType) -> StructType:
    fields: list[tuple[str, DataType]] = [("type", events[plan.type_column.name].dataType), ("time", TimestampType())]
    if plan.has_delays:
        fields += [("delay", DayTimeIntervalType()), ("depth", IntegerType())]
    fields += [(name, events[name].dataType) for name in plan.member_columns]
    return StructType([StructField(name, type_) for name, type_ in fields])


def _output_columns(plan: OccurrencePlan) -> Iterator[Column]:
    for name in ("match_id", *plan.schema.key, "match_start", "match_end", "detected_at"):
        yield named(name)
    if plan.measures is not None:
        yield from (expression(measure.sql).alias(measure.name) for measure in plan.measures)
        return
    yield from (named(variable.name) for variable in plan.variables if variable.in_output)
    yield named("events")
