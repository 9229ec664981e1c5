"""The Spark host for streams: one matcher for each shard of the keys, its state in Spark's store.

Spark lifts the columns and tracks the watermark. Events that can matter are packed by shard, one value per shard and
batch, and go to the shards' matchers (`shard.py`) through `transformWithState`. Rows come out as values and are
unpacked. One call for each key was tried and dropped: with 10 k keys a batch it is four times slower.

Spark's own stateful operators drop late events. Here late events reach the matchers, because to Spark the output of
`mapInArrow` has no watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from itertools import chain
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from cepheid.errors import SchemaError, warn
from cepheid.families.family import RETRACTIONS, LateBy
from cepheid.hosts.spark.batch.detect import output_columns
from cepheid.hosts.spark.engine import expression, quoted
from cepheid.hosts.spark.lift import checked, compared, counts_read, observed, session_zone, usable
from cepheid.hosts.spark.sent import sent
from cepheid.hosts.spark.session import STATE_STORE
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.hosts.spark.stream.arriving import arriving
from cepheid.hosts.spark.stream.copies.copying import Copying
from cepheid.hosts.spark.stream.ledger import EVENTS, SHARD
from cepheid.hosts.spark.stream.packing import COUNT, FIGURES
from cepheid.hosts.spark.stream.places import Places
from cepheid.hosts.spark.stream.processor import CALL, PATTERN, ROWS, SHARD_ROWS, ShardProcessor
from cepheid.hosts.spark.stream.progress import CALLS, FOUND, KEYED, OF_READ, PACKED, READ, REPORTS, SHARDS
from cepheid.hosts.spark.stream.source import StreamSource, matchings, source_of
from cepheid.hosts.spark.stream.stored_state import CheckpointedPattern, stored_patterns
from cepheid.lang.duration import microseconds
from cepheid.lang.parameters import string_literal
from cepheid.output.common import nullable
from cepheid.plan.problems import beside
from cepheid.requests.request import ERROR, Request

_WATERMARK = "_watermark"
_PACK, _UNPACK = (f"cepheid.hosts.spark.stream.packing.{name}" for name in ("pack", "unpack"))
_PACKED = StructType(
    [
        StructField(SHARD, IntegerType()),
        StructField(EVENTS, BinaryType()),
        StructField(ERROR, StringType()),
        StructField(FIGURES, StringType()),
        StructField(COUNT, LongType()),
    ]
)
_STORE_SETTING = "spark.sql.streaming.stateStore.providerClass"
_DELAY = "spark.watermarkDelayMs"
"""Spark's key in the metadata of a column that has a watermark."""
_PATTERNS, _OUTPUTS = "cepheid.patterns", "cepheid.outputs"
"""Keys of the metadata that the time column of a stream's matches has: the names of all patterns, in all tiers, and the
outputs among the rows.
"""
_OPERATOR = "TransformWithState"
"""The name of the shards' operator in Spark's plans."""
_WATERMARKED = "EventTimeWatermark"
"""The name of the operator of a watermark in Spark's plans."""


def detect_on_stream(events: DataFrame, request: Request, places: Places | None = None) -> DataFrame:
    """The rows that become certain as the watermark advances, for a query in append mode. `places` are those of the
    patterns, if these may come and go.

    Raises:
        PatternError, SchemaError: the pattern, the names, the types or the session's settings are wrong.

    The query fails with Spark's exceptions, our message first, for the same reasons as an action on a batch. It also
    fails if its checkpoint belongs to another query.
    """
    if request.arrival:
        events, request = arriving(events, request)
    earlier = Earlier.of(events)
    places = places or _places(request, stored_patterns(events.sparkSession, request.checkpoint))
    late_by = _late_by(events, request, earlier)
    source = _checked_source(events, request, late_by, earlier, places)
    for warning in source.warnings:
        warn(warning)
    of_matches = _watermarked_column(request, late_by) in earlier.times
    made = matchings(source, of_matches=of_matches)
    processor = ShardProcessor(source.placement, sent(events.sparkSession, made.pickled), source.places.ended)
    values = _called(events_by_shard(source), processor, source)
    found = _unpacked(values, source).selectExpr(*_columns(source))
    metadata = {_PATTERNS: [*earlier.patterns, *source.places.labels], _OUTPUTS: list(source.outputs)}
    return found.withMetadata("detected_at", metadata)


def _places(request: Request, before: Sequence[CheckpointedPattern]) -> Places:
    """The places of the patterns: where the checkpoint has them, if it has state."""
    together = request.family.shares_events
    together &= all(one.placement.together for one in before if one.name in request.names)
    return Places.of(request.names, even=all(one.placement.even for one in before), together=together)


def _unpacked(values: DataFrame, source: StreamSource) -> DataFrame:
    rows = nullable(source.rows)
    type_ = from_arrow_schema(rows, prefer_timestamp_ntz=True)
    return values.mapInArrow(mapped(_UNPACK, (rows, source.places.versions), type_), type_)


def _columns(source: StreamSource) -> Iterator[str]:
    return output_columns(source.plans, source.rows.names, source.request.family.last_columns)


def _checked_source(
    events: DataFrame, request: Request, late_by: LateBy, earlier: Earlier, places: Places
) -> StreamSource:
    """The stream's source. Raises as `detect_on_stream`, with all faults. If the tiers are wrong, no plan can be made,
    and the faults of the plan are left out.
    """
    time = _watermarked_column(request, late_by)
    of_tiers = [*_tier_faults(request, time, earlier, places)]
    faults = [*of_tiers, *_time_faults(events, request, time, earlier), *_faults(events, request)]
    if of_tiers:
        raise SchemaError("\n".join(faults))
    with beside(faults):
        return source_of(events, request, late_by, session_zone(events), places)


def _late_by(events: DataFrame, request: Request, earlier: Earlier) -> LateBy:
    """Which time of an event has the watermark; the start if both have one or none has."""
    marked = [
        name
        for name in (request.time, request.end)
        if name in events.columns and (name in earlier.times or _has_watermark(events, str(name)))
    ]
    return "end" if marked == [request.end] and request.end != request.time else "start"


def _watermarked_column(request: Request, late_by: LateBy) -> str | None:
    return request.end if late_by == "end" else request.time


def _has_watermark(events: DataFrame, name: str) -> bool:
    return _DELAY in (events.schema[name].metadata or {})


@dataclass(frozen=True)
class Earlier:
    """The earlier tiers of the same query, if the events are made from their matches."""

    patterns: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    """The time columns of their matches. These need no watermark of their own: that of the events in the matches
    applies. A watermark on the matches would not advance until there are any.
    """

    @staticmethod
    def of(events: DataFrame) -> Earlier:
        marked = [field for field in events.schema.fields if _PATTERNS in (field.metadata or {})]
        if not marked or not _is_stateful(events):
            return Earlier()
        metadata = [field.metadata for field in marked]
        patterns, outputs = (tuple(chain(*(one[name] for one in metadata))) for name in (_PATTERNS, _OUTPUTS))
        return Earlier(patterns, outputs, tuple(field.name for field in marked))


def events_by_shard(source: StreamSource) -> DataFrame:
    """The lifted events of each pattern and shard, packed; the watermark is that of all events."""
    request = source.request
    layout = tuple(source.lift.layout.items())
    places = source.places
    packing = (
        *(layout, source.columns, request.family.kind, packed(source.plans), source.placement, source.only_relevant),
        *(places.numbers, tuple(places.labels), places.ended, uuid4().hex, request.show_keys, _copying(source)),
    )
    found = checked(_watermarked(source).mapInArrow(mapped(_PACK, packing, _PACKED), _PACKED))
    reports = {REPORTS: f"collect_list({FIGURES})", KEYED: str(bool(request.key or source.divided_by))}
    found = observed(found, f"{PACKED}.{places.labels[0]}", reports)
    if request.nulls != "drop":
        counts = {"events": f"coalesce(sum({COUNT}), 0)", "null_keys": "0", "null_times": "0"}
        found = _with_counts(found, source, counts)
    return found.where(f"{SHARD} IS NOT NULL").select(SHARD, EVENTS)


def _copying(source: StreamSource) -> Copying | None:
    """How standbys get copies of keys; None without standbys."""
    request = source.request
    if not request.standbys:
        return None
    assert request.checkpoint is not None, "standbys without a checkpoint are refused"
    delay = -(-microseconds(request.lateness) // 1000) if request.lateness is not None else _watermark_delay(source)
    each = zip(source.places.numbers, source.each, strict=True)
    markings = {number: one.marking for number, one in each if one.marking is not None}
    return Copying(request.checkpoint, 1000 * delay, markings)


def _watermark_delay(source: StreamSource) -> int:
    """How late events may be, in milliseconds, for the watermark that the time column has."""
    metadata = source.events.schema[str(source.request.time)].metadata or {}
    return int(metadata.get(_DELAY, 0))


def _time_faults(events: DataFrame, request: Request, time: str | None, earlier: Earlier) -> Iterator[str]:
    """The faults of the time column and its watermark."""
    marked = [name for name in events.columns if _has_watermark(events, name)]
    if time is None:
        yield "time: a stream needs event times, as its watermark decides when a match is certain. Name a column"
    elif time not in events.columns or time in earlier.times:
        return
    elif earlier.times:
        yield (
            "time: these events are matches of this query. They come when they are certain, so their time is "
            f"{earlier.times[0]!r}, not {time!r}"
        )
    elif time in marked:
        if request.lateness is not None:
            yield f"lateness: {time!r} has a watermark already. Leave out one of them"
    elif marked:
        yield (
            f"time: the stream has a watermark on {marked[0]!r} already, and Spark has only one. Name that column, or "
            "read the stream without the watermark"
        )
    elif request.lateness is None:
        yield (
            "lateness: say how late an event of the stream may come, as in lateness='2 minutes'. Events that come "
            "later count as late; a match waits that long"
        )


def _faults(events: DataFrame, request: Request) -> Iterator[str]:
    """What streams do not support, and what else they need."""
    if request.as_of is not None:
        yield "as_of: the time of a stream is its watermark. Leave it out"
    if request.report is not None:
        yield (
            "report: the counts of a stream are in the progress of its query: cepheid.streams.progress(query), or a "
            "progress_listener"
        )
    if not _has_protobuf():
        yield (
            "PySpark reaches the state of streams with the package protobuf, which it does not install itself and "
            "which is missing here: pip install 'cepheid[spark]', also where the workers are"
        )
    if request.standbys and _analyzed(events).count(_WATERMARKED) > 1:
        # A copy takes the starts after all times that have been received: the watermark and its delay say which.
        yield (
            "standbys: the events come from several streams with watermarks of their own, and the least of these does "
            "not say which times have been received. Give them one watermark, after the streams are joined"
        )
    store = events.sparkSession.conf.get(_STORE_SETTING)
    if store != STATE_STORE:
        yield f"Spark stores the state of streams in RocksDB only: spark.conf.set({_STORE_SETTING!r}, {STATE_STORE!r})"


def _has_protobuf() -> bool:
    try:
        import_module("google.protobuf")
    except ImportError:
        return False
    return True


def _tier_faults(request: Request, time: str | None, earlier: Earlier, places: Places) -> Iterator[str]:
    """The faults of events that are made from matches of the same query."""
    if repeated := [name for name in places.labels if name in earlier.patterns]:
        yield (
            f"pattern: two patterns of this query are named {repeated[0]!r}, and its figures and checkpoint use the "
            "names. Rename one of them, as in Pattern.begin('a', name='…')"
        )
    if time not in earlier.times:
        return
    if request.standbys:
        yield "standbys: these events are matches of this query, which come without a watermark. Leave it out"
    if request.event_id is not None:
        yield "event_id: these events are matches of this query, each in one row. Leave it out"
    if request.lateness is not None:
        yield f"lateness: {time!r} is the time of matches in this query, and no match is late. Leave it out"
    if RETRACTIONS in earlier.outputs:
        yield (
            "events: these are matches that are emitted in real time, which may be retracted later. Give their pattern "
            "conservative output"
        )
    if "late" in earlier.outputs:
        yield (
            "events: these rows include late events, as 'late' is among their outputs, and late events are no matches. "
            "Leave out 'late' there, and write late events in a query of their own"
        )


def _is_stateful(events: DataFrame) -> bool:
    """Whether the plan of the events contains shards. Metadata alone does not show that: files store the metadata of
    columns, so matches that are read from files have it, too.
    """
    return _OPERATOR in _analyzed(events)


def _analyzed(events: DataFrame) -> str:
    """Spark's plan of the events, before it is optimized, as text."""
    shown = StringIO()
    with redirect_stdout(shown):
        events.explain(extended=True)
    return shown.getvalue().partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]


def _watermarked(source: StreamSource) -> DataFrame:
    """The usable events, lifted, with their shard. Where unusable events are dropped, all are counted first; else they
    are counted where they are packed, as to observe events takes Spark a quarter of the time in which it reads them.
    """
    events, request, lift = source.events, source.request, source.lift
    if request.nulls == "drop":
        counts = counts_read(request.key, source.times, request.nulls, request.event_id)
        counts["null_times"] += f" + {counts.pop('reversed', '0')}"
        events = _with_counts(events, source, counts)
    usable_events = usable(events, request.key, source.times, request.nulls, request.event_id)
    more = [f"{_shard(source)} AS {SHARD}"]
    column, times = source.watermarked
    time = lift.layout[column]
    if times.zone is not None or request.arrival or request.event_id is not None:
        time = _WATERMARK
        mark = times.watermarked
        if request.event_id is not None:  # each row moves the clock by its own time
            mark = f"coalesce({', '.join(one.watermarked for one in reversed(source.times))})"
        if request.arrival:
            # A watermark reaches the microsecond before it. So this one is past the events of its own micro-batch.
            mark += " + INTERVAL 1 MILLISECOND"
        more.append(f"{mark} AS {time}")
    lifted = lift.select(usable_events, *more)
    if request.lateness is None:
        return lifted
    return lifted.withWatermark(time, f"{-(-microseconds(request.lateness) // 1000)} milliseconds")


def _with_counts(rows: DataFrame, source: StreamSource, counts: Mapping[str, str]) -> DataFrame:
    """The rows; the counts of the events read go to the query's metrics."""
    return observed(rows, f"{READ}.{source.places.labels[0]}", counts)


def _called(by_shard: DataFrame, processor: ShardProcessor, source: StreamSource) -> DataFrame:
    """Calls the shards. Returns their rows as values; their counts, and what each call reports of itself, go to the
    query's metrics.
    """
    shards = by_shard.groupBy(SHARD)
    given = shards.transformWithState(processor, SHARD_ROWS, outputMode="append", timeMode="eventTime")
    number = source.request.shards + source.request.standbys
    of_query = {SHARDS: str(number), OF_READ: string_literal(source.places.labels[0])}
    for place in source.places.each:
        calls = f"collect_list(CASE WHEN {PATTERN} = {place.number} THEN {CALL} END)"
        given = observed(given, f"{FOUND}.{place.label}", {CALLS: calls, **of_query})
    return checked(given).where(f"{ROWS} IS NOT NULL").select(ROWS, PATTERN)


def _shard(source: StreamSource) -> str:
    """The shard of an event. Those that differ in a value by which events are divided do not affect each other."""
    values = [*map(quoted, source.request.key)]
    values += [compared(expression(source.plans.values[side.column].sql), side) for side in source.divided_by]
    if not values:
        warn("no key: all events are one sequence, which a single Spark task processes")
        return "0"
    return f"pmod(hash({', '.join(values)}), {source.request.shards})"
