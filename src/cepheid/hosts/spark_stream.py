"""The Spark host for streams: one matcher for each shard of the keys, its state in Spark's store.

Spark lifts the columns and keeps the watermark; events that can matter are packed by shard and go to the shards'
matchers (`stream_shard`) through `transformWithState`, one value a shard and batch; rows come out as values again and
are unpacked. One call a key was tried and dropped: it is four times slower with 10 k keys a batch.

Late events reach the matchers because what comes out of `mapInArrow` has no watermark to Spark: its own stateful
operators drop them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from io import StringIO

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cepheid.compile.compiled_plans import compile_plans
from cepheid.errors import SchemaError
from cepheid.events import (
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
from cepheid.hosts.made_for import asked_of, made_for
from cepheid.hosts.progress import FOUND, READ
from cepheid.hosts.request import ERROR, STREAM_COUNTS, STREAM_TIMES, Request, warn
from cepheid.hosts.sending import mapped, packed
from cepheid.hosts.spark_batch import output_columns, plans_on_spark, row_type
from cepheid.hosts.spark_lift import Lift, Times, lifting, named, raised, session_zone, usable, without_key
from cepheid.hosts.spark_session import STATE_STORE
from cepheid.hosts.stream_packing import EVENTS, SHARD
from cepheid.hosts.stream_processor import PATTERN, ROWS, SHARD_ROWS, ShardProcessor
from cepheid.hosts.tables import with_zone
from cepheid.hosts.worker import output_schema
from cepheid.lang.duration import microseconds
from cepheid.output import merged, row_schema
from cepheid.plan.growth import growth_warnings
from cepheid.plan.plans import Plans, words_of
from cepheid.shared_events import OwnEvents

SESSION_ZONE = "session.time_zone"
"""In what a checkpoint is of: a stream's alone."""

_WATERMARK = "_watermark"
_PACK, _UNPACK = (f"cepheid.hosts.stream_packing.{name}" for name in ("pack", "unpack"))
_PACKED = StructType(
    [StructField(SHARD, IntegerType()), StructField(EVENTS, BinaryType()), StructField(ERROR, StringType())]
)
_STORE_SETTING = "spark.sql.streaming.stateStore.providerClass"
_DELAY = "spark.watermarkDelayMs"
"""In the metadata of a column that has a watermark."""
_COUNTED = (*STREAM_COUNTS, *STREAM_TIMES)
_PATTERNS, _OUTPUTS = "cepheid.patterns", "cepheid.outputs"
"""Metadata of the time of a stream's matches: the names of all patterns that they are of, in all tiers; and what is
among the rows.
"""
_OPERATOR = "TransformWithState"
"""What Spark's plans call the shards' operator."""


def detect_on_stream(events: DataFrame, request: Request) -> DataFrame:
    """The rows that become certain as the watermark passes, for a query in append mode.

    Raises:
        PatternError, SchemaError: the pattern, the names, the types or the session's settings are wrong.

    The query fails with Spark's exceptions, with our message first, as actions on a batch do; and where its checkpoint
    is of another query.
    """
    earlier = Earlier.of(events)
    _check(events, request, earlier)
    source = Source.of(events, request, session_zone(events))
    plans = source.plans
    _warn_of_growth(plans)
    processor = ShardProcessor(request.shards, tuple(matchings(source, of_matches=request.time in earlier.times)))
    values = _called(events_by_shard(source), processor, request)
    rows = StructType(merged([row_type(plan, events.schema).fields for plan in plans.each]))
    schema = output_schema(pa.schema(merged([list(row_schema(plan)) for plan in plans.each])))
    found = checked(values.mapInArrow(mapped(_UNPACK, (schema,), rows), rows)).select(*output_columns(*plans.each))
    told = {_PATTERNS: [*earlier.patterns, *_names(request)], _OUTPUTS: list(request.outputs or ())}
    return found.withMetadata("detected_at", told)


@dataclass(frozen=True)
class Earlier:
    """The tiers that events come from in the same query."""

    patterns: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    """The columns that are the time of their matches. The watermark is that of the matches' events then: one of the
    matches' own would hold it back until there are any.
    """

    @staticmethod
    def of(events: DataFrame) -> Earlier:
        marked = [field for field in events.schema.fields if _PATTERNS in (field.metadata or {})]
        if not marked or not _is_stateful(events):
            return Earlier()
        told = marked[0].metadata
        return Earlier(tuple(told[_PATTERNS]), tuple(told[_OUTPUTS]), tuple(field.name for field in marked))


@dataclass(frozen=True)
class Source:
    """The events of a stream, and what its patterns need of them."""

    events: DataFrame
    request: Request
    plans: Plans
    times: Times
    lift: Lift
    columns: pa.Schema
    """The matchers'."""
    zone: str
    """The session's, on whose clock SQL and functions see times. It belongs to the checkpoint: what was computed of
    events that wait there would not be what is computed of those to come.
    """

    @staticmethod
    def of(events: DataFrame, request: Request, zone: str) -> Source:
        plans = plans_on_spark(events, request)
        times = Times.of(events, request.time, request.time_zone)
        lift = lifting(plans, times)
        return Source(events, request, plans, times, lift, batch_columns(plans, lift, zone), zone)


def events_by_shard(source: Source) -> DataFrame:
    """The lifted events of each pattern and shard, packed; the watermark is that of all events."""
    request = source.request
    # Only a shard knows the watermark, and so which events are late; those that cannot matter may be, too.
    only_relevant = "late" not in (request.outputs or ())
    layout = tuple(source.lift.layout.items())
    packing = (layout, source.columns, packed(source.plans), request.shards, only_relevant)
    return checked(_watermarked(source).mapInArrow(mapped(_PACK, packing, _PACKED), _PACKED)).drop(ERROR)


def matchings(source: Source, *, of_matches: bool = False) -> Iterator[tuple[object, ...]]:
    """Of each pattern what its shards are to do: a `stream_shard.Matching`'s."""
    request, columns = source.request, source.columns
    zone = request.time_zone or source.zone
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in columns], schema=columns)
    patterns = compile_plans(source.plans)
    together: dict[str, object] = {"shards": request.shards, SESSION_ZONE: source.zone}
    if request.named:
        together["patterns"] = _names(request)
    for number, compiled in enumerate(patterns.each):
        alone = replace(request, asked=(request.asked[number],))
        own = OwnEvents(patterns, number).of(Batch(nothing)).data.schema
        told = made_for(alone, compiled, zone) | together
        asked = json.dumps(asked_of(alone, zone, source.events.schema.jsonValue()))
        yield (packed(compiled.plan), own, json.dumps(told), of_matches, request.named, asked)


def _warn_of_growth(plans: Plans) -> None:
    for plan in plans.each:
        whose = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        for warning in growth_warnings(plan.pattern):
            warn(f"{whose}a stream does not end, and keeps what is open: {warning}")


def _check(events: DataFrame, request: Request, earlier: Earlier) -> None:
    """All that a stream needs besides."""
    faults = [*_tier_faults(request, earlier)]
    if request.time is None:
        faults.append(
            "time: a stream needs event times, as its watermark decides when a match is certain. Name a column"
        )
    elif request.time in events.columns and request.time not in earlier.times:
        delay = _DELAY in (events.schema[request.time].metadata or {})
        if request.lateness is None and not delay:
            faults.append(
                "lateness: say how late an event of the stream may come, as in lateness='2 minutes'; what comes later "
                "is late, and a match waits so long"
            )
        if request.lateness is not None and delay:
            faults.append(f"lateness: {request.time!r} has a watermark already. Leave out one of them")
    if request.as_of is not None:
        faults.append("as_of: the time of a stream is its watermark. Leave it out")
    if request.report is not None:
        faults.append(
            "report: the counts of a stream are in the observedMetrics of its query's progress, as "
            f"{READ}.{_names(request)[0]} and {FOUND}.{_names(request)[0]}"
        )
    if not _has_protobuf():
        faults.append(
            "PySpark reaches the state of streams with the package protobuf, which it does not bring and which is not "
            "installed here: pip install 'cepheid[spark]', also where the workers are"
        )
    store = events.sparkSession.conf.get(_STORE_SETTING)
    if store != STATE_STORE:
        faults.append(f"Spark keeps such state in RocksDB only: spark.conf.set({_STORE_SETTING!r}, {STATE_STORE!r})")
    if faults:
        raise SchemaError("\n".join(faults))


def _has_protobuf() -> bool:
    try:
        import_module("google.protobuf")
    except ImportError:
        return False
    return True


def _tier_faults(request: Request, earlier: Earlier) -> Iterator[str]:
    """What is wrong where the events are made from matches of the same query."""
    if repeated := [name for name in _names(request) if name in earlier.patterns]:
        yield (
            f"pattern: two patterns of this query are named {repeated[0]!r}, and its figures and checkpoint go by the "
            "name. Give one of them another, as in Pattern.begin('a', name='…')"
        )
    if request.time not in earlier.times:
        return
    if request.lateness is not None:
        yield f"lateness: {request.time!r} is that of matches in this query, none of which is late. Leave it out"
    if "late" in earlier.outputs:
        yield (
            "events: late events are among these rows, as the outputs that they were asked for with say, and are "
            "no matches. Leave 'late' out there, and write late events in a query of their own"
        )


def _is_stateful(events: DataFrame) -> bool:
    """Whether shards are among what gives the events. Files keep the metadata of columns: matches that were written and
    are read again have it, too.
    """
    shown = StringIO()
    with redirect_stdout(shown):
        events.explain(extended=True)
    return _OPERATOR in shown.getvalue()


def _watermarked(source: Source) -> DataFrame:
    """The usable events, lifted, with their shard; counted before."""
    events, request, times, lift = source.events, source.request, source.times, source.lift
    no_key = without_key(request.key)
    counts = {"events": F.lit(1), "null_keys": F.when(no_key, 1), "null_times": F.when(~no_key & times.missing, 1)}
    seen = [F.count(column).alias(name) for name, column in counts.items()]
    for name in _names(request):
        events = events.observe(f"{READ}.{name}", *seen)
    kept = usable(events, request.key, times, request.nulls)
    shipped = [*lift.shipped, _shard(request).alias(SHARD)]
    time = lift.layout[TIME]
    if times.zone is not None:
        time = _WATERMARK
        shipped.append(times.watermarked.alias(time))
    lifted = kept.select(*shipped)
    if request.lateness is None:
        return lifted
    return lifted.withWatermark(time, f"{-(-microseconds(request.lateness) // 1000)} milliseconds")


def _called(by_shard: DataFrame, processor: ShardProcessor, request: Request) -> DataFrame:
    """The shards' rows as values; what they count is counted."""
    shards = by_shard.groupBy(SHARD)
    given = shards.transformWithState(processor, SHARD_ROWS, outputMode="append", timeMode="eventTime")
    for number, pattern in enumerate(_names(request)):
        own = named(PATTERN) == number
        counts = [F.coalesce(F.sum(F.when(own, F.col(name))), F.lit(0)).alias(name) for name in _COUNTED]
        given = given.observe(f"{FOUND}.{pattern}", *counts)
    return checked(given).where(named(ROWS).isNotNull()).select(ROWS)


def _names(request: Request) -> list[str]:
    return [pattern.name for pattern, _ in request.asked]


def _shard(request: Request) -> Column:
    if not request.key:
        warn("no key: all events are one sequence, which one Spark task works through alone")
        return F.lit(0)
    return F.pmod(F.hash(*(named(name) for name in request.key)), F.lit(request.shards))


def checked(rows: DataFrame) -> DataFrame:
    """Fails with what a worker could not do. Of a stream, such a batch leaves nothing behind."""
    wrong = named(ERROR)
    return rows.where(F.when(wrong.isNotNull(), raised(wrong)).otherwise(F.lit(True)))  # noqa: FBT003


def batch_columns(plan: Plans, lift: Lift, zone: str) -> pa.Schema:
    """The matchers' columns, in the order of the lift's layout. Functions see times on the session's clock."""
    events, schema = plan.schema.columns, plan.schema
    types = {TIME: TIME_TYPE} | {mask_column(word): pa.int64() for word in range(len(words_of(plan.bits)))}
    types |= {f"{KEY_PREFIX}{i}": events.field(name).type for i, name in enumerate(schema.key)}
    types |= {f"{SEQUENCE_PREFIX}{i}": events.field(name).type for i, name in enumerate(schema.sequence)}
    types |= {EVENT_PREFIX + name: events.field(name).type for name in plan.columns}
    types |= {f"{VALUE_PREFIX}{i}": value.type for i, value in enumerate(plan.values)}
    if plan.functions:
        types |= {ROW_PREFIX + name: with_zone(events.field(name).type, zone) for name in events.names}
    return pa.schema([pa.field(name, types[name]) for name in lift.layout])
