"""The Spark host for batches: one matcher for each pattern in each Spark partition.

Spark lifts the columns (`spark_lift`), brings each key's events together and in order, and hands them to the matchers
as Arrow batches (`worker`). Only public DataFrame methods are used, so that it is the same over Spark Connect; nothing
runs before an action on the result.

One call for each key (applyInPandas) was tried and dropped: with 100 k keys it is twenty times slower than sorted
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StringType, StructField, StructType, TimestampType

from cepheid.compile.stages.compiled_plans import compile_plans
from cepheid.errors import SchemaError
from cepheid.events.batch import KEY_PREFIX, SEQUENCE_PREFIX, TIME, Schema, mask_column, microseconds
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression, is_carried, sql_name
from cepheid.hosts.spark.lift import Lift, Times, lifting, named, raised, session_zone, usable, without_key
from cepheid.hosts.spark.shipping import mapped, packed
from cepheid.output.stages import merged
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.plan_set import Plans
from cepheid.plan.stages.plan import Plan
from cepheid.requests.request import (
    COUNTS,
    ERROR,
    MATCHER_COUNTS,
    EventCounts,
    Request,
    instant_of,
    planned,
    repeated_names,
    warn,
)

WORK = "cepheid.hosts.spark.batch.worker.find_matches"


def detect_on_spark(events: DataFrame, request: Request) -> DataFrame:
    """The matches in `events`, in no order: a plan that runs with an action on it.

    Ties and dropped events are counted, not warned of, as they are met after this returns. The counts are those of the
    first action on the result; a `limit` or `show` may stop it before all is counted.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.

    An action on the result raises Spark's exceptions, with our message first: events without key or time
    (`nulls="error"`), a local time that is ambiguous or does not exist, a condition that fails on an event.
    """
    plans = plans_on_spark(events, request)
    if request.as_of is not None:
        request = replace(request, as_of=instant_of(request.as_of, request.time_zone or session_zone(events)))
    relevant = compile_plans(plans).relevant
    read, found = Observation(), Observation()
    if request.report is not None:
        request.report.set(lambda: EventCounts(**read.get, **found.get))
    times = Times.of(events, request.time, request.time_zone)
    lift = lifting(plans, times)
    shipped = counted(events, request, times, read).select(*lift.shipped)
    if relevant is not None:
        words = [lift[mask_column(word)].bitwiseAND(F.lit(bits)) != 0 for word, bits in enumerate(relevant)]
        shipped = shipped.where(reduce(Column.__or__, words))
    spark_rows = StructType(merged([row_type(plan, events.schema).fields for plan in plans.each]))
    until = None if request.as_of is None else microseconds(request.as_of)
    task = (packed(plans), tuple(lift.layout.items()), until)
    rows = in_order(shipped, plans.schema, lift).mapInArrow(mapped(WORK, task, spark_rows), spark_rows)
    return told_rows(rows, found).select(*output_columns(*plans.each))


def plan_on_spark(events: DataFrame, request: Request) -> Plan:
    """The plan of the request's one pattern; raises PatternError and SchemaError, as `detect_on_spark` does."""
    return plans_on_spark(events, request).only


def plans_on_spark(events: DataFrame, request: Request) -> Plans:
    """Raises PatternError and SchemaError, as `detect_on_spark` does."""
    check_columns(events, request)
    schema = Schema(arrow_schema(events.schema), request.key, request.time, request.sequence)
    engine = SparkEngine(events)
    return planned(request, schema, engine)


def check_columns(events: DataFrame, request: Request) -> None:
    """Raises SchemaError where names are ambiguous, or a column cannot be sent to a worker."""
    names = events.columns
    faults = repeated_names(names) or [*_alike(events, names)]
    if request.intervals is None and request.time is None and not request.sequence:
        faults.append("neither time nor sequence: a DataFrame has no order of its own. Name a column that has it")
    chosen = names if request.columns is None else request.columns
    used = [("key", name) for name in request.key] + [("columns", name) for name in chosen]
    used += [("sequence", name) for name in request.sequence]
    if any(pattern.functions for pattern, _ in request.asked):
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
    """What is wrong with names that Spark does not tell apart."""
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


def counted(events: DataFrame, request: Request, times: Times, read: Observation) -> DataFrame:
    """The usable events up to `as_of`, the counts taken before those without key or time are dropped."""
    if request.as_of is not None:
        events = events.where(times.until(request.as_of))
    no_key = without_key(request.key)
    no_time = ~no_key & times.missing
    counts = {"events": F.lit(1), "null_keys": F.when(no_key, 1), "null_times": F.when(no_time, 1)}
    events = events.observe(read, *(F.count(column).alias(name) for name, column in counts.items()))
    return usable(events, request.key, times, request.nulls)


def in_order(shipped: DataFrame, schema: Schema, lift: Lift) -> DataFrame:
    """Each key's events in one partition, by time and sequence.

    Spark may join partitions when it runs (adaptive execution), but splits none: it does so for joins and REBALANCE
    only.
    """
    key = [lift[f"{KEY_PREFIX}{i}"] for i in range(len(schema.key))]
    rank = [lift[TIME].asc()]
    rank += [lift[f"{SEQUENCE_PREFIX}{i}"].asc_nulls_last() for i in range(len(schema.sequence))]
    return together(shipped, key).sortWithinPartitions(*key, *rank)


def together(shipped: DataFrame, key: Sequence[Column]) -> DataFrame:
    """Each key's events in one partition."""
    if not key:
        warn("no key: all events are one sequence, which one Spark task works through alone")
    by_key = shipped.repartition(*key) if key else shipped.repartition(1)
    # Where no event is left to sort, Spark's adaptive execution replaces the sort and all that comes before it by an
    # empty relation, and with it the counts of what was read. It does not see through an observation.
    return by_key.observe(Observation(), F.count(F.lit(1)).alias("shipped"))


def row_type(plan: Plan, events: StructType) -> StructType:
    """The workers' rows: what they tell, then the matcher's columns, in the events' own types."""
    counts = StructType([StructField(name, LongType()) for name in MATCHER_COUNTS])
    fields: list[tuple[str, DataType]] = [(ERROR, StringType()), (COUNTS, counts)]
    if plan.outputs is not None:
        fields += [(name, StringType()) for name in ("kind", "pattern")]
    fields += [("match_id", StringType())]
    fields += [(name, events[name].dataType) for name in plan.schema.key]
    fields += [(name, TimestampType()) for name in ("match_start", "match_end", "detected_at")]
    event = StructType([StructField(name, events[name].dataType) for name in plan.columns])
    if plan.measures is not None:
        slots = plan.slots.items()
        fields += [(name, from_arrow_type(slot.type, prefer_timestamp_ntz=True)) for name, slot in slots]
    elif plan.outputs is None:
        fields += [(c.name, ArrayType(event) if c.repeats else event) for c in plan.stage_columns]
    else:
        fields.append(("stages", MapType(StringType(), ArrayType(event))))
    if plan.outputs is not None:
        fields.append(("event", event))
    return StructType([StructField(name, type_) for name, type_ in fields])


def told_rows(rows: DataFrame, found: Observation) -> DataFrame:
    """The matcher's rows alone. What workers tell besides is counted, or fails the query.

    It fails in a filter, because a column that raises is left out where a later select does not need it.
    """
    sums = [F.coalesce(F.sum(named(COUNTS)[name]), F.lit(0)).alias(name) for name in MATCHER_COUNTS]
    counted = rows.observe(found, *sums)
    return counted.where(F.when(named(ERROR).isNotNull(), raised(named(ERROR))).otherwise(named(COUNTS).isNull()))


def output_columns(plan: Plan, *others: Plan) -> Iterator[Column]:
    """The output's columns, made of the rows of the plans."""
    told = () if plan.outputs is None else ("kind", "pattern")
    for name in (*told, "match_id", *plan.schema.key, "match_start", "match_end", "detected_at"):
        yield named(name)
    if plan.measures is not None:
        yield from measure_columns(plan, *others)
    elif plan.outputs is None:
        yield from (named(column.name) for column in plan.stage_columns)
    else:
        yield named("stages")
    if plan.outputs is not None:
        yield named("event")


def measure_columns(plan: Plan | OccurrencePlan, *others: Plan | OccurrencePlan) -> Iterator[Column]:
    """Of several patterns each measures its own rows: what it computes might fail on NULLs."""
    if not others:
        yield from (expression(measure.sql).alias(measure.name) for measure in plan.measures or ())
        return
    columns: dict[str, Column] = {}
    for one in (plan, *others):
        mine = named("pattern") == one.pattern.name
        for measure in one.measures or ():
            value = expression(measure.sql)
            before = columns.get(measure.name)
            columns[measure.name] = F.when(mine, value) if before is None else before.when(mine, value)
    yield from (column.alias(name) for name, column in columns.items())
