"""The Spark host for batches: one matcher for each pattern in each Spark partition.

Spark lifts the columns (`hosts/spark/lift.py`), brings each key's events together and in order, and hands them to the
matchers as Arrow batches (`worker.py`). Only public DataFrame methods are used, so that it works the same over Spark
Connect. Nothing runs before an action on the result.

One call for each key (applyInPandas) was tried and dropped: with 100 k keys it is twenty times slower than sorted
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType, VariantType

from cepheid.errors import SchemaError, warn
from cepheid.events.batch import KEY_PREFIX, MASK, TIME, Schema, mask_column
from cepheid.events.time import microseconds
from cepheid.families.family import Family
from cepheid.hosts.spark.batch.blocks.plan import WORK as WORK_ON_BLOCKS
from cepheid.hosts.spark.batch.blocks.plan import in_blocks
from cepheid.hosts.spark.batch.openings import RowsById, has_hash, rows_by_id
from cepheid.hosts.spark.batch.slices import asked_slices, in_slices
from cepheid.hosts.spark.batch.tiers import counted_before_sort, from_tiers
from cepheid.hosts.spark.batch.unmatched import WORK as WORK_WITH_UNMATCHED
from cepheid.hosts.spark.batch.unmatched import check_undivided, unread, with_unmatched
from cepheid.hosts.spark.batch.unmatched_worker import rows_of_events
from cepheid.hosts.spark.batch.worker import Task, output_schema, rows_of_all
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression, is_carried, quoted, sql_name
from cepheid.hosts.spark.lift import (
    Lift,
    Times,
    any_of,
    counts_read,
    in_direction,
    lifting,
    observed,
    raised,
    session_zone,
    usable,
)
from cepheid.hosts.spark.sequence import with_sequence
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.lang.parameters import string_literal
from cepheid.matchers.counts import MATCHER_COUNTS, counts_of
from cepheid.plan.lifted import Measure
from cepheid.plan.plan_set import PatternPlan, PlanSet, Words, relevant_to_any
from cepheid.plan.problems import AS_TEXT, beside
from cepheid.plan.used_columns import used_columns
from cepheid.requests.arrival import refuse_arrival
from cepheid.requests.request import COUNTS, ERROR, Request, last_instant, planned, repeated_names
from cepheid.requests.warnings import with_names

WORK = "cepheid.hosts.spark.batch.worker.find_matches"
_ESCAPED = "spark.sql.parser.escapedStringLiterals"
_ANSI = "spark.sql.ansi.enabled"


def detect_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The matches in `events`, in no particular order. The DataFrame is lazy: an action on it runs the detection.

    Ties and dropped events are counted, without warnings, because they are found only after this returns. The counts
    are those of the first action on the result. A `limit` or `show` may stop it before everything is counted.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.

    An action on the result raises Spark's exceptions, with our message first: events without key or time
    (`nulls="error"`), a local time that is ambiguous or does not exist, a condition that fails on an event.
    """
    if request.unmatched:
        check_undivided(request)
        request = replace(request, numbered=True)
    family, counts = request.family, None
    if request.report is not None:
        counts = read, of_matchers = Observation(), Observation()
        request.report.set(lambda: counts_of(family.counts, read.get | of_matchers.get), waits=True)
    ready = prepared_on_spark(events, request, None if counts is None else counts[0])
    plans, lift = ready.plans, ready.lift
    tiers = () if plans.schema.key or request.unmatched else family.tiers(plans)
    lift.add_sub_keys(plans, [link.value for link in tiers[0].links] if tiers else family.sub_keys(plans))
    shipped, width = ready.shipped(every=request.unmatched), None
    work, rows = WORK, rows_of_all(family, plans)
    if request.unmatched:
        work, rows = WORK_WITH_UNMATCHED, rows_of_events(family, plans)
    divided = bool(plans.schema.key or tiers or lift.sub_keys or request.unmatched)
    if not tiers and (slices := asked_slices(request, plans, divided=divided)) is not None:
        shipped, width = in_slices(shipped, ready.times[0], slices, lift)
    task = ready.task(width)
    if len(tiers) > 1:
        from_workers = from_tiers(shipped, tiers, lift, task)
    else:
        shipped, spark_rows = with_sub_keys(shipped, lift) if tiers else shipped, row_type(rows)
        if family.in_order and not request.unmatched and (key := key_columns(plans.schema, lift)):
            work, by_key = WORK_ON_BLOCKS, in_blocks(shipped, key)
        else:
            by_key = in_order(shipped, plans.schema, lift) if family.in_order else together(shipped, plans.schema, lift)
        from_workers = by_key.mapInArrow(mapped(work, tuple(task), spark_rows), spark_rows)
    columns = output_columns(plans, rows.names, family.last_columns, all_matched=not request.unmatched)
    found = without_worker_messages(from_workers, None if counts is None else counts[1]).selectExpr(*columns)
    others = _unread(events, request, ready) if request.unmatched else None
    return found if others is None else with_unmatched(found, others, plans)


def _unread(events: DataFrame, request: Request, ready: PreparedOnSpark) -> DataFrame | None:
    return unread(events, request, ready.times, ready.zone) if ready.by_id is None else ready.by_id.unread()


@dataclass(frozen=True)
class PreparedOnSpark:
    """What is shipped to the workers, and what they are told."""

    family: Family
    plans: PlanSet[Any]
    times: Sequence[Times]
    lift: Lift
    events: DataFrame
    """Those that have key and times, up to `until`."""
    until: int | None
    zone: str
    by_id: RowsById | None = None
    """All rows, where rows open and close events."""

    def shipped(self, *, every: bool = False) -> DataFrame:
        """The lifted columns of `every` event, or without the events that matter to no pattern."""
        relevant = None if every else relevant_to_any(self.family.compile(self.plans).relevant_to)
        return with_any(self.lift.select(self.events), self.lift, relevant)

    def task(self, width: int | None = None) -> Task:
        """Call it when the layout of the lifted columns is final."""
        layout = tuple(self.lift.layout.items())
        return Task(self.family.kind, packed(self.plans), layout, self.until, self.zone, width)


def prepared_on_spark(events: DataFrame, request: Request, read: Observation | None) -> PreparedOnSpark:
    """The request's patterns, and the events for them, which are counted in `read` once an action reads them. Warns of
    what is odd.

    Raises:
        PatternError, SchemaError: as `detect_on_spark`.
    """
    events = with_sequence(events, request.sequence)
    plans = plans_on_spark(events, request, in_one_row=True)
    for warning in with_names(plans, request.family.warnings):
        warn(warning)
    zone = request.time_zone or session_zone(events)
    until = last_instant(request, zone)
    times = Times.of_each(events, plans.schema.times, request.time_zone)
    by_id = None
    if request.event_id is not None:
        by_id = rows_by_id(events, request, times, until, used_columns(plans))
        read_rows = by_id.rows if read is None else observed(by_id.rows, read, by_id.counts())
        usable_events = by_id.usable(read_rows)
    else:
        read_events = events if until is None else events.where(times[-1].until(until))
        usable_events = counted(read_events, request, times, read)
    ended = None if until is None else microseconds(until)
    return PreparedOnSpark(request.family, plans, times, lifting(plans, times), usable_events, ended, zone, by_id)


def plans_on_spark(events: DataFrame, request: Request, *, in_one_row: bool) -> PlanSet[Any]:
    """The plans of the request's patterns. `in_one_row`: each event is in one row when SQL is computed, also where rows
    open and close events. Raises PatternError and SchemaError, as `detect_on_spark`.
    """
    refuse_arrival(arrival=request.arrival)
    events = with_sequence(events, request.sequence)
    if ambiguous := repeated_names(events.columns) or [*_alike(events, events.columns)]:
        raise SchemaError("\n".join(ambiguous))
    if events.sparkSession.conf.get(_ANSI) == "false":
        warn(
            "this session is not in ANSI mode: where a condition or a measure fails in process, as in a division by "
            f"zero, it gives NULL or another value here. spark.conf.set({_ANSI!r}, True)"
        )
    with beside([*_session_faults(events), *_column_faults(events, request)]):
        return planned(request, arrow_schema(events.schema), SparkEngine(events, computes_rows_alone=not in_one_row))


def _session_faults(events: DataFrame) -> Iterator[str]:
    """What makes the session read conditions differently from workers, which compute those across events."""
    if events.sparkSession.conf.get(_ESCAPED) == "true":
        how = f"spark.conf.set({_ESCAPED!r}, False)"
        yield f"backslashes in texts are escapes to Cepheid, but not to this session: {how}"


def _column_faults(events: DataFrame, request: Request) -> list[str]:
    """The faults that the events' columns have on Spark alone: there is no order, or a column cannot be sent to a
    worker.
    """
    names, faults = events.columns, list[str]()
    if request.time is None and not (request.sequence or request.in_row_order):
        faults.append("neither time nor sequence: a DataFrame has no order of its own. Name a column that orders it")
    if request.in_row_order:
        faults.append("sequence: ROW_ORDER is the order of a table, and a DataFrame has none. Name a column instead")
    chosen = names if request.columns is None else request.columns
    used = [("key", name) for name in request.key] + [("columns", name) for name in chosen]
    used += [("sequence", name) for name in request.sequence]
    used += [("event_id", name) for name in (request.event_id,) if name is not None]
    if any(request.family.names_of_functions(one.pattern) for one in request.patterns):
        used += [("functions see all columns", name) for name in names if name not in chosen]
    types = {field.name: field.dataType for field in events.schema}
    faults += [
        f"{what}: {name!r} is of type {sql_name(types[name])}, which cannot be sent to a worker. {_advice(what)}"
        for what, name in used
        if name in types and not is_carried(types[name])
    ]
    faults += [
        f"key: {name!r} is of type {sql_name(types[name])}; a key cannot be or hold a VARIANT. {AS_TEXT}"
        for name in request.key
        if name in types and _holds_variant(types[name])
    ]
    if request.event_id is not None and not events.isStreaming:  # in a stream, a worker compares ids, and not Spark
        faults += _id_faults(request.event_id, types)
    return faults


def _alike(events: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """The problems with names that Spark does not distinguish."""
    if events.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(name.lower(), name)) != name:
            yield f"Spark does not distinguish the columns {other!r} and {name!r} of the events: rename one"


def _holds_variant(type_: DataType) -> bool:
    """Whether the type is a VARIANT, which is a struct to a plan, or a struct with one. The plan refuses keys that are
    or hold a MAP or an ARRAY.
    """
    if isinstance(type_, StructType):
        return any(_holds_variant(field.dataType) for field in type_)
    return isinstance(type_, VariantType)


def _id_faults(name: str, types: Mapping[str, DataType]) -> Iterator[str]:
    """The problem with an id that a worker can receive, but that Spark cannot divide events by."""
    if name in types and is_carried(types[name]) and not has_hash(types[name]):
        what = "an id cannot be or hold a MAP or a VARIANT in a batch on Spark"
        yield f"event_id: {name!r} is of type {sql_name(types[name])}; {what}. {AS_TEXT}"


def _advice(what: str) -> str:
    match what:
        case "columns":
            return "Choose other columns with columns=[…], or cast it"
        case "functions see all columns":
            return "Drop it from the events, or cast it"
        case _:
            return AS_TEXT


def counted(events: DataFrame, request: Request, times: Sequence[Times], read: Observation | None) -> DataFrame:
    """The usable events. Events are counted before unusable ones are dropped, if anybody asks: to observe rows
    is a tenth of all processor time where little matches.
    """
    if read is not None:
        events = observed(events, read, counts_read(request.key, times, request.nulls))
    return usable(events, request.key, times, request.nulls)


def with_any(events: DataFrame, lift: Lift, relevant: Words | None) -> DataFrame:
    """The events that have at least one of the bits; None: all events."""
    if relevant is None:
        return events
    has_any = any_of(f"{lift[mask_column(word)]} & {bits}L != 0" for word, bits in enumerate(relevant))
    # Events that cannot matter must fail, too, where they are unusable. Where a column is constant, or divides files,
    # Spark would filter before it looks at them; it does not move what is not deterministic.
    return events.where(f"CASE WHEN monotonically_increasing_id() >= 0 THEN {has_any} END")


def with_sub_keys(events: DataFrame, lift: Lift) -> DataFrame:
    """The events that have all sub-keys. Others are in no match, as NULL equals nothing."""
    if not lift.sub_keys:
        return events
    known = " AND ".join(f"{column} IS NOT NULL" for column in lift.sub_keys)
    # Conditions that fail on an event must fail on these events, too. So Spark must not filter before it computes them:
    # that the mask is not -1 is always true, but Spark does not know it.
    computed = " AND ".join(f"{lift[name]} != -1" for name in lift.layout if name.startswith(MASK))
    return events.where(f"CASE WHEN {computed} THEN {known} END")


def in_order(shipped: DataFrame, schema: Schema, lift: Lift) -> DataFrame:
    """Each key's events in one partition, by time and sequence.

    At run time Spark may join partitions (adaptive execution), but does not split them here: it splits partitions only
    for joins and REBALANCE.
    """
    rank = [in_direction(lift[column], column) for column, _ in schema.ranking]
    return together(shipped, schema, lift).sortWithinPartitions(*key_columns(schema, lift), lift[TIME], *rank)


def together(shipped: DataFrame, schema: Schema, lift: Lift) -> DataFrame:
    """The events of each key and its sub-keys in one partition."""
    key = key_columns(schema, lift)
    if not key:
        warn("no key: all events are one sequence, which a single Spark task processes")
    return counted_before_sort(shipped.repartition(*key) if key else shipped.repartition(1))


def key_columns(schema: Schema, lift: Lift) -> list[str]:
    """The columns by which events are divided: the key and its sub-keys."""
    return [lift[f"{KEY_PREFIX}{i}"] for i in range(len(schema.key))] + lift.sub_keys


def row_type(rows: pa.Schema) -> StructType:
    """The type of the workers' rows: their messages, then the matchers' columns. Event columns have their own types:
    only types that come back from a worker unchanged are accepted.
    """
    return from_arrow_schema(output_schema(rows), prefer_timestamp_ntz=True)


def without_worker_messages(rows: DataFrame, matcher_counts: Observation | None) -> DataFrame:
    """Only the matcher's rows. The counts in the workers' messages go to the observation; an error fails the query.

    It fails in a filter, because Spark omits a column that raises if a later select does not need it.
    """
    if matcher_counts is not None:
        sums = {name: f"coalesce(sum({COUNTS}.{name}), 0)" for name in MATCHER_COUNTS}
        rows = observed(rows, matcher_counts, sums)
    return rows.where(f"CASE WHEN {ERROR} IS NOT NULL THEN {raised(ERROR)} ELSE {COUNTS} IS NULL END")


def output_columns(
    plans: PlanSet[Any], names: Sequence[str], last: Sequence[str], *, all_matched: bool = True
) -> Iterator[str]:
    """SQL of the output's columns, made from the matchers' rows: measures replace the columns that they are computed
    from. Unless rows are `all_matched`, those without a pattern have no measures.
    """
    slots = {name for plan in plans.each for name in plan.slots}
    last = [name for name in last if name in names and name not in plans.each[0].schema.key]
    yield from (quoted(name) for name in names if name not in slots and name not in last)
    yield from measure_columns(plans.each, all_matched=all_matched)
    yield from map(quoted, last)


def measure_columns(plans: Sequence[PatternPlan], *, all_matched: bool = True) -> Iterator[str]:
    """SQL of the measures, with their names. With several patterns, or rows without a pattern, each pattern's measures
    are computed only for its own rows: on the NULLs of other rows an expression might fail.
    """
    if len(plans) == 1 and all_matched:
        yield from (f"{_measured(measure)} AS {quoted(measure.name)}" for measure in plans[0].measures or ())
        return
    columns: dict[str, str] = {}
    for plan in plans:
        mine = f"pattern = {string_literal(plan.pattern.name)}"
        for measure in plan.measures or ():
            before = columns.get(measure.name, "CASE")
            columns[measure.name] = f"{before} WHEN {mine} THEN {_measured(measure)}"
    yield from (f"{column} END AS {quoted(name)}" for name, column in columns.items())


def _measured(measure: Measure) -> str:
    return expression(measure.sql, f"{measure.text!r} (measure {measure.name!r})")
