"""The Spark host for streams: one matcher for each shard of the keys, its state in Spark's store.

Spark lifts the columns and keeps the watermark; events that can matter are packed by shard and go to the shards'
matchers (`stream_shard`) through `transformWithState`, one value a shard and batch; rows come out as values again and
are unpacked. One call a key was tried and dropped: it is four times slower with 10 k keys a batch.

Late events reach the matchers because what comes out of `mapInArrow` has no watermark to Spark: its own stateful
operators drop them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from io import StringIO
from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cepheid.errors import PatternError, SchemaError
from cepheid.hosts.spark.batch.worker import output_schema
from cepheid.hosts.spark.lift import named, raised, session_zone, without_key
from cepheid.hosts.spark.session import STATE_STORE
from cepheid.hosts.spark.shipping import mapped
from cepheid.hosts.spark.stream.processor import PATTERN, ROWS, SHARD_ROWS, ShardProcessor
from cepheid.hosts.spark.stream.progress import FOUND, READ
from cepheid.hosts.spark.stream.source import Source, matchings, stage_source
from cepheid.hosts.spark.stream.store import EVENTS, SHARD
from cepheid.hosts.spark.stream.trees import RETRACTIONS, interval_source, occurrence_source
from cepheid.lang.duration import microseconds
from cepheid.plan.stages.build import refusal
from cepheid.requests.request import ERROR, STREAM_COUNTS, STREAM_TIMES, AskedIntervals, Request, warn

_WATERMARK = "_watermark"
_PACK, _UNPACK = (f"cepheid.hosts.spark.stream.packing.{name}" for name in ("pack", "unpack"))
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
    if request.intervals is not None:
        request = replace(request, time=_time_of_intervals(events, request, request.intervals, earlier))
    source = _checked_source(events, request, earlier)
    for warning in source.warnings:
        warn(warning)
    processor = ShardProcessor(request.shards, tuple(matchings(source, of_matches=request.time in earlier.times)))
    values = _called(events_by_shard(source), processor, request)
    schema, rows = output_schema(source.rows), source.row_type
    found = checked(values.mapInArrow(mapped(_UNPACK, (schema,), rows), rows)).select(*source.output)
    told = {_PATTERNS: [*earlier.patterns, *request.names], _OUTPUTS: list(source.outputs)}
    return found.withMetadata("detected_at", told)


def _checked_source(events: DataFrame, request: Request, earlier: Earlier) -> Source:
    """Raises as `detect_on_stream`, with all that is wrong; of wrong tiers no plan can be made."""
    of_tiers = [*_tier_faults(request, earlier)]
    faults = [*of_tiers, *_time_faults(events, request, earlier), *_faults(events, request)]
    if of_tiers:
        raise SchemaError("\n".join(faults))
    try:
        source = source_of(events, request, session_zone(events))
    except PatternError as error:
        raise refusal(error.problems, faults) from None
    except SchemaError as error:
        raise SchemaError("\n".join([*faults, str(error)])) from None
    if faults:
        raise SchemaError("\n".join(faults))
    return source


def source_of(events: DataFrame, request: Request, zone: str) -> Source:
    """What the request's patterns need of the events; raises as `detect_on_stream`."""
    if request.intervals is not None:
        return interval_source(events, request, zone)
    if request.occurrences is not None:
        return occurrence_source(events, request, zone)
    return stage_source(events, request, zone)


def _time_of_intervals(events: DataFrame, request: Request, asked: AskedIntervals, earlier: Earlier) -> str:
    """That of start and end which the watermark is of: what is said, or what has one, else the start."""
    if request.time is not None:
        return request.time
    there = [name for name in (asked.start, asked.end) if name in events.columns]
    marked = [name for name in there if name in earlier.times or _has_watermark(events, name)]
    return marked[0] if len(marked) == 1 else asked.start


def _has_watermark(events: DataFrame, name: str) -> bool:
    return _DELAY in (events.schema[name].metadata or {})


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
        told = [field.metadata for field in marked]
        patterns, outputs = (tuple(chain(*(one[name] for one in told))) for name in (_PATTERNS, _OUTPUTS))
        return Earlier(patterns, outputs, tuple(field.name for field in marked))


def events_by_shard(source: Source) -> DataFrame:
    """The lifted events of each pattern and shard, packed; the watermark is that of all events."""
    request = source.request
    # Only a shard knows the watermark, and so which events are late; those that cannot matter may be, too.
    only_relevant = "late" not in source.outputs
    layout = tuple(source.lift.layout.items())
    packing = (layout, source.columns, source.own, request.shards, only_relevant)
    return checked(_watermarked(source).mapInArrow(mapped(_PACK, packing, _PACKED), _PACKED)).drop(ERROR)


def _time_faults(events: DataFrame, request: Request, earlier: Earlier) -> Iterator[str]:
    """What is wrong with the time and its watermark."""
    time, marked = request.time, [name for name in events.columns if _has_watermark(events, name)]
    if time is None:
        yield "time: a stream needs event times, as its watermark decides when a match is certain. Name a column"
    elif time not in events.columns or time in earlier.times:
        return
    elif earlier.times:
        yield (
            f"time: these events are matches of this query, and come when they are certain, which {time!r} is not. "
            f"Name {earlier.times[0]!r}"
        )
    elif time in marked:
        if request.lateness is not None:
            yield f"lateness: {time!r} has a watermark already. Leave out one of them"
    elif marked:
        yield (
            f"time: the stream has a watermark on {marked[0]!r} already, and Spark keeps one. Name that column, or "
            "read the stream without it"
        )
    elif request.lateness is None:
        yield (
            "lateness: say how late an event of the stream may come, as in lateness='2 minutes'; what comes later is "
            "late, and a match waits so long"
        )


def _faults(events: DataFrame, request: Request) -> Iterator[str]:
    """What a stream is refused, or needs besides."""
    if request.as_of is not None:
        yield "as_of: the time of a stream is its watermark. Leave it out"
    if request.report is not None:
        yield (
            "report: the counts of a stream are in the observedMetrics of its query's progress, as "
            f"{READ}.{request.names[0]} and {FOUND}.{request.names[0]}"
        )
    if not _has_protobuf():
        yield (
            "PySpark reaches the state of streams with the package protobuf, which it does not bring and which is not "
            "installed here: pip install 'cepheid[spark]', also where the workers are"
        )
    store = events.sparkSession.conf.get(_STORE_SETTING)
    if store != STATE_STORE:
        yield f"Spark keeps such state in RocksDB only: spark.conf.set({_STORE_SETTING!r}, {STATE_STORE!r})"


def _has_protobuf() -> bool:
    try:
        import_module("google.protobuf")
    except ImportError:
        return False
    return True


def _tier_faults(request: Request, earlier: Earlier) -> Iterator[str]:
    """What is wrong where the events are made from matches of the same query."""
    if repeated := [name for name in request.names if name in earlier.patterns]:
        yield (
            f"pattern: two patterns of this query are named {repeated[0]!r}, and its figures and checkpoint go by the "
            "name. Give one of them another, as in Pattern.begin('a', name='…')"
        )
    if request.time not in earlier.times:
        return
    if request.lateness is not None:
        yield f"lateness: {request.time!r} is that of matches in this query, none of which is late. Leave it out"
    if RETRACTIONS in earlier.outputs:
        yield (
            "events: these rows are told in real time and may be taken back. Let the pattern that they are of emit "
            "conservatively"
        )
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
    counts = {"events": F.lit(1), "null_keys": F.when(no_key, 1), "null_times": F.when(~no_key & source.missing, 1)}
    seen = [F.count(column).alias(name) for name, column in counts.items()]
    for name in request.names:
        events = events.observe(f"{READ}.{name}", *seen)
    kept = source.usable(events)
    shipped = [*lift.shipped, _shard(request).alias(SHARD)]
    time = lift.layout[source.time]
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
    for number, pattern in enumerate(request.names):
        own = named(PATTERN) == number
        counts = [F.coalesce(F.sum(F.when(own, F.col(name))), F.lit(0)).alias(name) for name in _COUNTED]
        given = given.observe(f"{FOUND}.{pattern}", *counts)
    return checked(given).where(named(ROWS).isNotNull()).select(ROWS)


def _shard(request: Request) -> Column:
    if not request.key:
        warn("no key: all events are one sequence, which one Spark task works through alone")
        return F.lit(0)
    return F.pmod(F.hash(*(named(name) for name in request.key)), F.lit(request.shards))


def checked(rows: DataFrame) -> DataFrame:
    """Fails with what a worker could not do. Of a stream, such a batch leaves nothing behind."""
    wrong = named(ERROR)
    return rows.where(F.when(wrong.isNotNull(), raised(wrong)).otherwise(F.lit(True)))  # noqa: FBT003
