"""The Spark host for batches: one matcher for each pattern in each Spark partition.

Spark lifts the columns (`hosts/spark/lift.py`), brings each key's events together and in order, and hands them to the
matchers as Arrow batches (`worker.py`). Only public DataFrame methods are used, so that it works the same over Spark
Connect. Nothing runs before an action on the result.

One call for each key (applyInPandas) was tried and dropped: with 100 k keys it is twenty times slower than sorted
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cepheid.errors import SchemaError
from cepheid.events.batch import KEY_PREFIX, SEQUENCE_PREFIX, TIME, Schema, mask_column
from cepheid.events.time import microseconds
from cepheid.hosts.spark.batch.worker import output_schema, rows_of_all
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression, is_carried, sql_name
from cepheid.hosts.spark.lift import Lift, Times, counts_read, lifting, named, raised, session_zone, usable
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.matchers.counts import MATCHER_COUNTS, counts_of
from cepheid.plan.plan_set import PatternPlan, PlanSet, Words, relevant_to_any
from cepheid.requests.request import COUNTS, ERROR, Request, instant_of, planned, repeated_names
from cepheid.requests.warnings import of_each, warn

WORK = "cepheid.hosts.spark.batch.worker.find_matches"


def detect_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The matches in `events`, in no order, as a plan: an action on it runs it.

    Ties and dropped events are counted, without warnings, as they are found after this returns. The counts are those of
    the first action on the result; a `limit` or `show` may stop it before everything is counted.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.

    An action on the result raises Spark's exceptions, with our message first: events without key or time
    (`nulls="error"`), a local time that is ambiguous or does not exist, a condition that fails on an event.
    """
    family = request.family
    plans = plans_on_spark(events, request)
    for warning in of_each(plans, family.warnings):
        warn(warning)
    zone = request.time_zone or session_zone(events)
    until = None if request.as_of is None else instant_of(request.as_of, zone)
    read, found = Observation(), Observation()
    if request.report is not None:
        request.report.set(lambda: counts_of(family.counts, read.get | found.get))
    times = Times.of_each(events, plans.schema.times, request.time_zone)
    lift = lifting(plans, times)
    usable_events = counted(events if until is None else events.where(times[0].until(until)), request, times, read)
    shipped = with_any(usable_events.select(*lift.shipped), lift, relevant_to_any(family.compile(plans).relevant_to))
    rows = rows_of_all(family, plans)
    spark_rows = row_type(rows)
    task = (family.kind, packed(plans), tuple(lift.layout.items()), until and microseconds(until), zone)
    by_key = in_order(shipped, plans.schema, lift) if family.in_order else together(shipped, plans.schema, lift)
    found_rows = without_worker_messages(by_key.mapInArrow(mapped(WORK, task, spark_rows), spark_rows), found)
    return found_rows.select(*output_columns(plans, rows.names, family.last_columns))


def plans_on_spark(events: DataFrame, request: Request) -> PlanSet[Any]:
    """Raises PatternError and SchemaError, as `detect_on_spark` does."""
    check_columns(events, request)
    return planned(request, arrow_schema(events.schema), SparkEngine(events))


def check_columns(events: DataFrame, request: Request) -> None:
    """Raises SchemaError if names are ambiguous or a column cannot be sent to a worker."""
    names = events.columns
    faults = repeated_names(names) or [*_alike(events, names)]
    if request.time is None and not request.sequence:
        faults.append("neither time nor sequence: a DataFrame has no order of its own. Name a column that has it")
    chosen = names if request.columns is None else request.columns
    used = [("key", name) for name in request.key] + [("columns", name) for name in chosen]
    used += [("sequence", name) for name in request.sequence]
    if any(request.family.names_of_functions(pattern) for pattern, _ in request.patterns):
        used += [("functions see all columns", name) for name in names if name not in chosen]
    types = {field.name: field.dataType for field in events.schema}
    faults += [
        f"{what}: {name!r} is of type {sql_name(types[name])}, which a worker cannot be sent. {_advice(what)}"
        for what, name in used
        if name in types and not is_carried(types[name])
    ]
    if faults:
        raise SchemaError("\n".join(faults))


def _alike(events: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """The problems with names that Spark does not distinguish."""
    if events.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(name.lower(), name)) != name:
            yield f"Spark does not tell the columns {other!r} and {name!r} of the events apart: rename one"


def _advice(what: str) -> str:
    match what:
        case "columns":
            return "Choose other columns with columns=[…], or cast it"
        case "functions see all columns":
            return "Drop it from the events, or cast it"
        case _:
            return "Cast it, for example to STRING"


def counted(events: DataFrame, request: Request, times: Sequence[Times], read: Observation) -> DataFrame:
    """The usable events. The counts are taken before the others are dropped."""
    counts = counts_read(request.key, times)
    events = events.observe(read, *(F.count(column).alias(name) for name, column in counts.items()))
    return usable(events, request.key, times, request.nulls)


def with_any(events: DataFrame, lift: Lift, relevant: Words | None) -> DataFrame:
    """The events that have one of the bits; None: all of them."""
    if relevant is None:
        return events
    words = [lift[mask_column(word)].bitwiseAND(F.lit(bits)) != 0 for word, bits in enumerate(relevant)]
    return events.where(reduce(Column.__or__, words))


def in_order(shipped: DataFrame, schema: Schema, lift: Lift) -> DataFrame:
    """Each key's events in one partition, by time and sequence.

    At run time Spark may join partitions (adaptive execution), but does not split them here: it splits partitions only
    for joins and REBALANCE.
    """
    rank = [lift[TIME].asc()]
    rank += [lift[f"{SEQUENCE_PREFIX}{i}"].asc_nulls_last() for i in range(len(schema.sequence))]
    return together(shipped, schema, lift).sortWithinPartitions(*_key(schema, lift), *rank)


def together(shipped: DataFrame, schema: Schema, lift: Lift) -> DataFrame:
    """Each key's events in one partition."""
    key = _key(schema, lift)
    if not key:
        warn("no key: all events are one sequence, which one Spark task works through alone")
    by_key = shipped.repartition(*key) if key else shipped.repartition(1)
    # If no event is left to sort, Spark's adaptive execution replaces the sort and everything before it by an empty
    # relation, and the counts of what was read would be lost. It does not see through an observation.
    return by_key.observe(Observation(), F.count(F.lit(1)).alias("shipped"))


def _key(schema: Schema, lift: Lift) -> list[Column]:
    return [lift[f"{KEY_PREFIX}{i}"] for i in range(len(schema.key))]


def row_type(rows: pa.Schema) -> StructType:
    """The type of the workers' rows: their messages, then the matchers' columns. Event columns have their own types, as
    only those are accepted that come back from a worker unchanged.
    """
    return from_arrow_schema(output_schema(rows), prefer_timestamp_ntz=True)


def without_worker_messages(rows: DataFrame, found: Observation) -> DataFrame:
    """The matcher's rows alone. The workers' messages are counted, or fail the query.

    It fails in a filter, because a column that raises is left out where a later select does not need it.
    """
    sums = [F.coalesce(F.sum(named(COUNTS)[name]), F.lit(0)).alias(name) for name in MATCHER_COUNTS]
    counted = rows.observe(found, *sums)
    return counted.where(F.when(named(ERROR).isNotNull(), raised(named(ERROR))).otherwise(named(COUNTS).isNull()))


def output_columns(plans: PlanSet[Any], names: Sequence[str], last: Sequence[str]) -> Iterator[Column]:
    """The output's columns, made from the rows of the plans: measures replace what they are computed from."""
    slots = {name for plan in plans.each for name in plan.slots}
    yield from (named(name) for name in names if name not in slots and name not in last)
    yield from measure_columns(plans.each)
    yield from (named(name) for name in last if name in names)


def measure_columns(plans: Sequence[PatternPlan]) -> Iterator[Column]:
    """The measures. Each of several patterns measures only its own rows: its expressions might fail on NULLs."""
    if len(plans) == 1:
        yield from (expression(measure.sql).alias(measure.name) for measure in plans[0].measures or ())
        return
    columns: dict[str, Column] = {}
    for plan in plans:
        mine = named("pattern") == plan.pattern.name
        for measure in plan.measures or ():
            value = expression(measure.sql)
            before = columns.get(measure.name)
            columns[measure.name] = F.when(mine, value) if before is None else before.when(mine, value)
    yield from (column.alias(name) for name, column in columns.items())
