"""The events of a stream, and what its patterns need from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from cepheid.errors import PatternError, Problem, in_pattern
from cepheid.events import batch as names
from cepheid.events.batch import Batch, mask_column
from cepheid.events.time import TIME_TYPE
from cepheid.families.family import LateBy
from cepheid.hosts.in_process.tables import with_zone
from cepheid.hosts.spark.batch.detect import plans_on_spark
from cepheid.hosts.spark.lift import Lift, Times, lifting
from cepheid.hosts.spark.sequence import with_sequence
from cepheid.hosts.spark.shipping import packed
from cepheid.hosts.spark.stream.copies.routing import Marking
from cepheid.hosts.spark.stream.ledger import packed_asked
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.hosts.spark.stream.places import Places
from cepheid.hosts.spark.stream.processor import Matchings
from cepheid.hosts.spark.stream.shard import DIVIDED_BY, SESSION_ZONE
from cepheid.matchers.pattern_events import projections
from cepheid.matchers.protocols import PatternRunner
from cepheid.output.common import merged
from cepheid.output.times import given_schema
from cepheid.plan.plan_set import PlanSet, words_of
from cepheid.plan.reserved import LEADING, VERSION
from cepheid.plan.tiers import Side
from cepheid.requests.ledger import stored_request
from cepheid.requests.request import Request
from cepheid.requests.warnings import of_growth, with_names

_STREAM = "a stream does not end, and"


class StreamPattern(NamedTuple):
    """A pattern that a stream looks for."""

    packed: bytes
    """The pattern's runner, as `packing.unpacked_runner` takes it."""
    columns: pa.Schema
    """The columns of its events, as the matcher takes them."""
    rows: pa.Schema
    marking: Marking | None
    """How events that may start partial matches are marked; None without standbys."""
    made_for: Mapping[str, object]
    """What a checkpoint must have been written for, besides what the query adds."""
    asked: Mapping[str, object]
    """What its plan is made from. It is stored for `partial_matches`, which reads checkpoints."""


@dataclass(frozen=True)
class StreamSource:
    """The events of a stream, and what its patterns need from them."""

    events: DataFrame
    request: Request
    places: Places
    plans: PlanSet[Any]
    each: tuple[StreamPattern, ...]
    times: tuple[Times, ...]
    """One time column, or start and end."""
    late_by: LateBy
    """Which time has the watermark."""
    lift: Lift
    columns: pa.Schema
    """The columns of the lift's layout: those of the events of all patterns, as matchers take them."""
    divided_by: tuple[Side, ...]
    """The values that extend the key: events that differ in them may be in different shards. Without key and without
    such values, all events are one sequence, in one shard.
    """
    together: bytes | None
    """The runner of all patterns, packed, if these have the same shards."""
    zone: str
    """The session's zone, in which SQL and functions see times. It must stay the same for a checkpoint: in another
    zone, values computed from waiting events and from new events would not agree.
    """

    @property
    def watermarked(self) -> tuple[str, Times]:
        """The time that has the watermark: the matchers' column for it, and how it is read."""
        return (names.END, self.times[-1]) if self.late_by == "end" else (names.TIME, self.times[0])

    @property
    def rows(self) -> pa.Schema:
        """The columns of all patterns' rows."""
        columns = merged([list(one.rows) for one in self.each], self.request.family.last_columns)
        if self.places.versions:
            columns.insert(len(LEADING), pa.field(VERSION, pa.string()))
        return pa.schema(columns)

    @property
    def placement(self) -> Placement:
        """How the shards are numbered."""
        request, patterns = self.request, len(self.each) if self.request.standbys else 0
        return Placement(request.shards, self.places.even, request.standbys, patterns, self.places.together)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs among the rows."""
        each = [self.request.family.live_outputs(plan) for plan in self.plans.each]
        return tuple(dict.fromkeys(output for outputs in each for output in outputs))

    @property
    def only_relevant(self) -> bool:
        """Whether shards get only the events that can matter."""
        return _only_relevant(self.plans, self.request)

    @property
    def warnings(self) -> Iterator[str]:
        """What the user should know before the stream starts."""
        family = self.request.family
        yield from with_names(self.plans, family.warnings)
        yield from with_names(self.plans, lambda plan: of_growth(_STREAM, family.growth(plan, self.late_by)))
        if self.request.event_id is not None and self.request.open_for is None:
            yield from of_growth(_STREAM, ["events that no row closes are stored for ever. Give open_for=…"])


def matchings(source: StreamSource, *, of_matches: bool = False) -> Matchings:
    """What the shards need."""
    request, each = source.request, dict[int, tuple[object, ...]]()
    of_query: dict[str, object] = {**source.placement.made_for, SESSION_ZONE: source.zone}
    if source.places.supervised:
        of_query["supervised"] = True
    elif request.named:
        of_query["patterns"] = request.names
    if source.divided_by:
        of_query[DIVIDED_BY] = [source.plans.values[side.column].sql for side in source.divided_by]
    made_for = [{**one.made_for, **of_query} for one in source.each]
    for one, place, own in zip(source.each, source.places.each, made_for, strict=True):
        fields = json.dumps(own), of_matches, request.named, packed_asked(one.asked), place.drains
        each[place.number] = (one.packed, one.columns, *fields)
    if source.together is None:
        return Matchings(each, None)
    of_all = shards_made_for(dict(zip(request.names, made_for, strict=True)))
    return Matchings(each, (source.together, source.columns, of_all, of_matches, request.named, ""))


def shards_made_for(made_for: Mapping[str, Mapping[str, object]]) -> str:
    """What shards are made for, as JSON; `made_for` has that of each of their patterns, by its name."""
    first = next(iter(made_for.values()))
    return json.dumps(first if len(made_for) == 1 else {"time_zone": first["time_zone"], "each": made_for})


def source_of(
    events: DataFrame, request: Request, late_by: LateBy, zone: str, places: Places | None = None
) -> StreamSource:
    """What the request's patterns need from the events; `zone` is the session's. `places` are those of the patterns,
    if these may come and go.

    Raises:
        PatternError, SchemaError: as `detect_on_stream`.
    """
    family = request.family
    endless = (asked._replace(pattern=family.endless(asked.pattern)) for asked in request.patterns)
    request = replace(request, patterns=tuple(endless))
    events = with_sequence(events, request.sequence)
    plans = plans_on_spark(events, replace(request, arrival=False), in_one_row=False)
    if problems := [*_never_certain(plans, request, late_by), *_without_copies(plans, request)]:
        raise PatternError(problems)
    times = Times.of_each(events, plans.schema.times, request.time_zone or zone)
    lift = lifting(plans, times)
    columns = batch_columns(plans, lift, zone)
    places, each = places or Places.of(request.names), []
    runners = [_runner(plans, number, request, late_by) for number in range(len(plans.each))]
    together = _together(plans, request, [runner for runner, _ in runners], columns) if places.together else None
    columns_of_each = _columns_of_each(plans, request, columns)
    for number, ((runner, marking), columns_of_one) in enumerate(zip(runners, columns_of_each, strict=True)):
        each.append(
            StreamPattern(
                packed(runner),  # first, because the next lines compile its pattern, which must not be packed with it
                columns_of_one,
                given_schema(runner.plan, runner.schema),
                marking,
                family.compatibility(runner, request.time_zone or zone),
                stored_request(
                    request, request.patterns[number], request.time_zone or zone, events.schema.jsonValue(), late_by
                ),
            )
        )
    divided_by = _divided_by(plans, request, places)
    return StreamSource(
        events, request, places, plans, tuple(each), times, late_by, lift, columns, divided_by, together, zone
    )


def _runner(
    plans: PlanSet[Any], number: int, request: Request, late_by: LateBy
) -> tuple[PatternRunner, Marking | None]:
    """The runner of the pattern with this number, and its marking, as in StreamPattern."""
    family, plan = request.family, plans.each[number]
    runner = family.runner(plan, late_by)
    if request.event_id is not None:
        with in_pattern(plan.pattern.name, named=plans.named):
            runner = family.opened_by_rows(runner, drops=request.nulls == "drop", open_for=request.open_for)
    if not request.standbys:
        return runner, None
    runner, may_start = family.marking_starts(runner)
    window = family.start_window(plan)
    assert isinstance(window, int), "a pattern that cannot be divided has been refused"
    return runner, Marking(may_start, window)


def _together(plans: PlanSet[Any], request: Request, runners: Sequence[PatternRunner], columns: pa.Schema) -> bytes:
    """As `StreamSource.together`; the runners have not compiled their patterns yet."""
    only_relevant = _only_relevant(plans, request)
    return packed(request.family.sharing(plans, runners, columns, only_relevant=only_relevant))


def _only_relevant(plans: PlanSet[Any], request: Request) -> bool:
    """Whether shards need only the events that can matter. Only a shard knows the watermark, and so which events are
    late; late events include some that cannot matter. A row that closes an event need not have the columns that say
    whether it matters.
    """
    with_late = any("late" in request.family.live_outputs(plan) for plan in plans.each)
    return not with_late and request.event_id is None


def _divided_by(plans: PlanSet[Any], request: Request, places: Places) -> tuple[Side, ...]:
    """See `StreamSource.divided_by`. Patterns that may come and go would divide the events anew each time. The
    checkpoints of earlier versions, whose placement is not even, have whole keys.
    """
    if places.supervised or (plans.schema.key and not places.even):
        return ()
    tiers = () if plans.schema.key else request.family.tiers(plans)
    if len(tiers) == 1:
        return tuple(link.value for link in tiers[0].links)
    return tuple(request.family.sub_keys(plans)) if places.even else ()


def _never_certain(plans: PlanSet[Any], request: Request, late_by: LateBy) -> list[Problem]:
    return [
        problem.of_pattern(plan.pattern.name) if plans.named else problem
        for plan in plans.each
        for problem in request.family.never_certain(plan, late_by)
    ]


def _without_copies(plans: PlanSet[Any], request: Request) -> Iterator[Problem]:
    """Why standbys cannot hold copies of the patterns' keys."""
    for plan in plans.each if request.standbys else ():
        reasons = request.family.start_window(plan)
        if isinstance(reasons, str):
            problem = Problem(f"standbys: a key cannot be divided by start, because {reasons}", "standbys")
            yield problem.of_pattern(plan.pattern.name) if plans.named else problem


def _columns_of_each(plans: PlanSet[Any], request: Request, columns: pa.Schema) -> list[pa.Schema]:
    """The columns of each pattern's events."""
    nothing = Batch(pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in columns], schema=columns))
    relevant_to = request.family.compile(plans).relevant_to
    return [own.of(nothing).data.schema for own in projections(plans, relevant_to)]


def batch_columns(plans: PlanSet[Any], lift: Lift, zone: str) -> pa.Schema:
    """The matchers' columns, in the order of the lift's layout. Functions see times in the session's zone."""
    events, schema = plans.schema.columns, plans.schema
    types: dict[str, Any] = {names.TIME: TIME_TYPE, names.END: TIME_TYPE}
    types |= {mask_column(word): pa.int64() for word in range(len(words_of(plans.bits)))}
    types |= {f"{names.KEY_PREFIX}{i}": events.field(name).type for i, name in enumerate(schema.key)}
    types |= {column: events.field(name).type for column, name in schema.ranking}
    if schema.event_id is not None:
        types[names.EVENT_ID] = events.field(schema.event_id).type
    types |= {names.EVENT_PREFIX + name: events.field(name).type for name in plans.columns}
    types |= {f"{names.VALUE_PREFIX}{i}": value.type for i, value in enumerate(plans.values)}
    if plans.functions:
        types |= {names.ROW_PREFIX + name: with_zone(events.field(name).type, zone) for name in events.names}
    return pa.schema([pa.field(name, types[name]) for name in lift.layout])
