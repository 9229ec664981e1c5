"""What patterns of occurrences and of intervals need of a stream's events."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cepheid.errors import PatternError
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, SEQUENCE_PREFIX, TIME, TIME_TYPE, VALUE_PREFIX
from cepheid.hosts.compatibility import intervals_made_for, made_for
from cepheid.hosts.spark.batch.detect import measure_columns
from cepheid.hosts.spark.batch.intervals import has_no_interval, interval_plans_on_spark, intervals_alone
from cepheid.hosts.spark.batch.occurrences import occurrence_plans_on_spark
from cepheid.hosts.spark.batch.worker import output_schema
from cepheid.hosts.spark.engine import expression
from cepheid.hosts.spark.lift import Lift, Times, mask_of, named, usable
from cepheid.hosts.spark.stream.packing import Layouts
from cepheid.hosts.spark.stream.source import GROWS, Sought, Source
from cepheid.hosts.spark.stream.store import SHARD
from cepheid.hosts.spark.stream.tree_matchers import OfIntervals, OfOccurrences
from cepheid.lang.intervals.values import Consistency, End
from cepheid.lang.occurrences.expression import OccurrencePattern, Policy
from cepheid.output.intervals import END
from cepheid.output.stages import merged
from cepheid.plan.intervals.growth import interval_growth, never_certain
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.occurrences.growth import occurrence_growth
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.stages.plan import Lifted
from cepheid.requests.request import Request

RETRACTIONS = "retractions"
"""Among the rows of patterns in real time."""


_Columns: TypeAlias = dict[str, tuple[Column, str | None, pa.DataType]]
"""By the matchers' names: each column, the event column that it is, if it is no more than that, and its type."""


class _Layout(NamedTuple):
    lift: Lift
    columns: pa.Schema
    own: Layouts
    """Of each pattern."""

    def of(self, number: int) -> pa.Schema:
        """The columns of a pattern's events."""
        return pa.schema([self.columns.field(ours).with_name(name) for name, ours in self.own[number] if name != SHARD])


def occurrence_source(events: DataFrame, request: Request, zone: str) -> Source:
    """Of patterns of occurrences; of those without a policy the recent ones.

    Raises:
        PatternError, SchemaError: as `detect_on_stream`.
    """
    recent = (asked._replace(pattern=_with_policy(asked.pattern)) for asked in request.each_occurrences)
    request = replace(request, each_occurrences=tuple(recent))
    plans = occurrence_plans_on_spark(events, request)
    times = Times.of(events, request.time, request.time_zone)
    first = plans.each[0]
    shared = _keys(first)
    shared[TIME] = times.instants, times.name if times.zone is None else None, TIME_TYPE
    for i, name in enumerate(first.schema.sequence):
        shared[f"{SEQUENCE_PREFIX}{i}"] = named(name), name, _type(first, name)
    layout = _layout(shared, first, [(plan.bits, plan.values) for plan in plans.each])
    each = []
    for number, (plan, asked) in enumerate(zip(plans.each, request.each_occurrences, strict=True)):
        pattern = OfOccurrences(plan)
        alone = replace(request, each_occurrences=(asked,), named=False)
        each.append(_sought(pattern, layout.of(number), made_for(alone, pattern.compiled, request.time_zone or zone)))
    return Source(
        events,
        request,
        tuple(each),
        times,
        TIME,
        times.missing,
        lambda read: usable(read, request.key, times, request.nulls),
        *layout,
        zone,
        _row_type(each),
        tuple(_occurrence_output(plans.each, each)),
        request.outputs or (),
        tuple(_occurrence_warnings(plans)),
    )


def interval_source(events: DataFrame, request: Request, zone: str) -> Source:
    """Of interval patterns; `request.time` is that of their two times which the watermark is of.

    Raises:
        PatternError, SchemaError: as `detect_on_stream`.
    """
    plans = interval_plans_on_spark(events, request)
    first = plans.each[0]
    read_in = request.time_zone or zone
    start, end = (Times.of(events, name, read_in) for name in (first.schema.start, first.schema.end))
    lateness = End.END if request.time == end.name != start.name else End.START
    shared = _keys(first)
    for column, times in ((TIME, start), (END, end)):
        shared[column] = times.instants, times.name if times.zone is None else None, TIME_TYPE
    layout = _layout(shared, first, [(plan.bits, plan.values) for plan in plans.each])
    outputs = request.outputs or ("matches", "late")
    each, warnings, problems = [], [], []
    for number, plan in enumerate(plans.each):
        pattern = OfIntervals(plan, lateness, outputs)
        told = intervals_made_for(plan, lateness, outputs, read_in)
        each.append(_sought(pattern, layout.of(number), told))
        uncertain = never_certain(plan.pattern, lateness, f"time={first.schema.start!r}")
        problems += [one.of_pattern(plan.pattern.name) if plans.named else one for one in uncertain]
        whose = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        warnings += [whose + GROWS + warning for warning in interval_growth(plan.pattern, lateness)]
    if problems:
        raise PatternError(problems)
    real_time = any(plan.pattern.consistency is Consistency.REALTIME for plan in plans.each)
    return Source(
        events,
        request,
        tuple(each),
        end if lateness is End.END else start,
        END if lateness is End.END else TIME,
        has_no_interval(start, end),
        lambda read: intervals_alone(read, request, start, end),
        *layout,
        zone,
        _row_type(each),
        tuple(named(field.name) for field in merged([list(sought.rows) for sought in each])),
        (*outputs, *[RETRACTIONS] * real_time),
        tuple(warnings),
    )


def _sought(pattern: OfOccurrences | OfIntervals, columns: pa.Schema, told: Mapping[str, object]) -> Sought:
    """What is open of these is not listed, so nothing is kept for who looks inside but what they are."""
    kind = "occurrences" if isinstance(pattern, OfOccurrences) else "intervals"
    bare = replace(pattern)  # without what it has compiled
    return Sought(pickle.dumps(bare), columns, pattern.schema, told, {"kind": kind})


# Columns


def _type(plan: OccurrencePlan | IntervalPlan, name: str) -> pa.DataType:
    return plan.schema.columns.field(name).type


def _keys(first: OccurrencePlan | IntervalPlan) -> _Columns:
    return {f"{KEY_PREFIX}{i}": (named(name), name, _type(first, name)) for i, name in enumerate(first.schema.key)}


def _layout(
    shared: _Columns,
    first: OccurrencePlan | IntervalPlan,
    each: Sequence[tuple[Sequence[Lifted], Sequence[Lifted]]],
) -> _Layout:
    """What all patterns have, and what each has of its own."""
    lift, types = Lift(), dict[str, pa.DataType]()
    events: _Columns = {EVENT_PREFIX + name: (named(name), name, _type(first, name)) for name in first.columns}
    for name, (column, source, type_) in {**shared, **events}.items():
        lift.add(name, column, source)
        types[name] = type_
    layouts = []
    for number, (bits, values) in enumerate(each):
        own: dict[str, tuple[Column, Any]] = {MASK: (mask_of(bits), pa.int64())}
        own |= {f"{VALUE_PREFIX}{i}": (expression(value.sql), value.type) for i, value in enumerate(values)}
        for name, (column, type_) in own.items():
            lift.add(f"{number}{name}", column)
            types[f"{number}{name}"] = type_
        common = {name: name for name in (*shared, *events, SHARD)}
        layouts.append(tuple({**common, **{name: f"{number}{name}" for name in own}}.items()))
    return _Layout(lift, pa.schema([pa.field(name, types[name]) for name in lift.layout]), tuple(layouts))


def _row_type(each: Sequence[Sought]) -> StructType:
    rows = pa.schema(merged([list(sought.rows) for sought in each]))
    return from_arrow_schema(output_schema(rows), prefer_timestamp_ntz=True)


def _occurrence_output(plans: Sequence[OccurrencePlan], each: Sequence[Sought]) -> Iterator[Column]:
    """The columns of the rows, with measures in the place of what they are computed from."""
    first = plans[0]
    slots = {name for plan in plans for name in plan.slots}
    names = [field.name for field in merged([list(sought.rows) for sought in each]) if field.name not in slots]
    behind = [name for name in names if name == "event" and first.measures is not None]
    yield from (named(name) for name in names if name not in behind)
    if first.measures is not None:
        yield from measure_columns(*plans)
    yield from map(named, behind)


# Plans


def _with_policy(pattern: OccurrencePattern) -> OccurrencePattern:
    return pattern if pattern.chosen is not None else pattern.policy(Policy.RECENT)


def _occurrence_warnings(plans: OccurrencePlans) -> Iterator[str]:
    for plan in plans.each:
        whose = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (whose + warning for warning in plan.warnings)
        yield from (whose + GROWS + growth for growth in occurrence_growth(plan))
