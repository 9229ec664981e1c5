"""The events of a stream, and what its patterns need of them, whichever kind these are of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from cepheid.compile.stages.compiled_plans import compile_plans
from cepheid.events.batch import (
    EVENT_PREFIX,
    KEY_PREFIX,
    ROW_PREFIX,
    SEQUENCE_PREFIX,
    TIME,
    TIME_TYPE,
    VALUE_PREFIX,
    Batch,
    mask_column,
)
from cepheid.hosts.compatibility import asked_of, made_for
from cepheid.hosts.in_process.tables import with_zone
from cepheid.hosts.spark.batch.detect import output_columns, plans_on_spark, row_type
from cepheid.hosts.spark.lift import Lift, Times, lifting, usable
from cepheid.hosts.spark.shipping import packed
from cepheid.hosts.spark.stream.packing import Layouts
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.output.stages import merged, row_schema
from cepheid.plan.plan_set import Plans, words_of
from cepheid.plan.stages.growth import growth_warnings
from cepheid.requests.request import Request

SESSION_ZONE = "session.time_zone"
"""In what a checkpoint is of: a stream's alone."""


class Sought(NamedTuple):
    """A pattern that a stream looks for."""

    packed: bytes
    """As `stream_matcher.shard_pattern` takes it."""
    columns: pa.Schema
    """Of its events, as the matcher takes them."""
    rows: pa.Schema
    made_for: Mapping[str, object]
    """What a checkpoint must be of, beside what the query says."""
    asked: Mapping[str, object]
    """What its plan is made from, for who looks inside."""


@dataclass(frozen=True)
class Source:
    """The events of a stream, and what its patterns need of them."""

    events: DataFrame
    request: Request
    each: tuple[Sought, ...]
    times: Times
    """Those that the watermark is of."""
    time: str
    """The matchers' column of them."""
    missing: Column
    """Whether an event has not the times that it must have."""
    usable: Callable[[DataFrame], DataFrame]
    """The events that have key and times; others fail, or are dropped."""
    lift: Lift
    columns: pa.Schema
    """Of the lift's layout."""
    own: bytes | Layouts
    """Which of these are each pattern's: a `stream_packing.Packing`'s."""
    zone: str
    """The session's, on whose clock SQL and functions see times. It belongs to the checkpoint: what was computed of
    events that wait there would not be what is computed of those to come.
    """
    row_type: StructType
    """Of the workers' rows."""
    output: tuple[Column, ...]
    """The output's columns, made of these rows."""
    outputs: tuple[str, ...]
    """What is among the rows."""
    warnings: tuple[str, ...]

    @property
    def rows(self) -> pa.Schema:
        """The columns of all patterns' rows."""
        return pa.schema(merged([list(sought.rows) for sought in self.each]))


def matchings(source: Source, *, of_matches: bool = False) -> Iterator[tuple[object, ...]]:
    """Of each pattern what its shards are to do: a `stream_shard.Matching`'s."""
    request = source.request
    together: dict[str, object] = {"shards": request.shards, SESSION_ZONE: source.zone}
    if request.named:
        together["patterns"] = request.names
    for sought in source.each:
        told = json.dumps({**sought.made_for, **together})
        yield (sought.packed, sought.columns, told, of_matches, request.named, json.dumps(sought.asked))


def stage_source(events: DataFrame, request: Request, zone: str) -> Source:
    """Of patterns of stages.

    Raises:
        PatternError, SchemaError: as `detect_on_stream`.
    """
    plans = plans_on_spark(events, request)
    times = Times.of(events, request.time, request.time_zone)
    lift = lifting(plans, times)
    columns = batch_columns(plans, lift, zone)
    return Source(
        events,
        request,
        tuple(_sought(events, request, plans, columns, zone)),
        times,
        TIME,
        times.missing,
        lambda read: usable(read, request.key, times, request.nulls),
        lift,
        columns,
        packed(plans),
        zone,
        StructType(merged([row_type(plan, events.schema).fields for plan in plans.each])),
        tuple(output_columns(*plans.each)),
        request.outputs or (),
        tuple(_growth(plans)),
    )


def _sought(
    events: DataFrame, request: Request, plans: Plans, columns: pa.Schema, session_zone: str
) -> Iterator[Sought]:
    zone = request.time_zone or session_zone
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in columns], schema=columns)
    patterns = compile_plans(plans)
    for number, compiled in enumerate(patterns.each):
        alone = replace(request, asked=(request.asked[number],))
        yield Sought(
            packed(compiled.plan),
            OwnEvents(patterns, number).of(Batch(nothing)).data.schema,
            row_schema(compiled.plan),
            made_for(alone, compiled, zone),
            asked_of(alone, zone, events.schema.jsonValue()),
        )


def _growth(plans: Plans) -> Iterator[str]:
    for plan in plans.each:
        whose = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (whose + GROWS + warning for warning in growth_warnings(plan.pattern))


GROWS = "a stream does not end, and keeps what is open: "


def batch_columns(plan: Plans, lift: Lift, zone: str) -> pa.Schema:
    """The matchers' columns, in the order of the lift's layout. Functions see times on the session's clock."""
    events, schema = plan.schema.columns, plan.schema
    types: dict[str, Any] = {TIME: TIME_TYPE} | {
        mask_column(word): pa.int64() for word in range(len(words_of(plan.bits)))
    }
    types |= {f"{KEY_PREFIX}{i}": events.field(name).type for i, name in enumerate(schema.key)}
    types |= {f"{SEQUENCE_PREFIX}{i}": events.field(name).type for i, name in enumerate(schema.sequence)}
    types |= {EVENT_PREFIX + name: events.field(name).type for name in plan.columns}
    types |= {f"{VALUE_PREFIX}{i}": value.type for i, value in enumerate(plan.values)}
    if plan.functions:
        types |= {ROW_PREFIX + name: with_zone(events.field(name).type, zone) for name in events.names}
    return pa.schema([pa.field(name, types[name]) for name in lift.layout])
