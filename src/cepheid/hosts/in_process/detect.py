"""The in-process host: a loop over pieces of an Arrow table. DuckDB computes the lifted columns and, where needed,
the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from cepheid.compile.stages.compiled_plans import Words, compile_plans
from cepheid.errors import ConditionError, SchemaError
from cepheid.events.batch import (
    Batch,
    Schema,
    microseconds,
)
from cepheid.hosts.duckdb.engine import DuckDbEngine, Evaluated
from cepheid.hosts.in_process.prefetch import ahead
from cepheid.hosts.in_process.prepare import (
    Timed,
    evaluated,
    in_order_of_arrival,
    lifted,
    placed,
    timed,
    usable,
    used_columns,
)
from cepheid.hosts.in_process.sort import Ranked, is_ordered, order_of
from cepheid.hosts.in_process.tables import plain_schema, without_views
from cepheid.lang.expression import Name
from cepheid.matchers.finite import SortedMatchers
from cepheid.matchers.working_set import matters, with_any
from cepheid.output.stages import filled, merged
from cepheid.plan.intervals.plan import IntervalSchema
from cepheid.plan.plan_set import LiftedFor, Plans, naming
from cepheid.plan.stages.plan import Lifted, Measure, Plan
from cepheid.requests.request import EventCounts, ReadCounts, Request, instant_of, planned, repeated_names, warn

PIECE = 1 << 18
"""Rows handled at once: large enough that calls cost nothing, small enough that what is made of them stays in the
cache.
"""


def detect_in_process(events: pa.Table, request: Request) -> pa.Table:
    """The matches in `events`, as rows in the order of patterns, key and emission.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or time (`nulls="error"`), a local time that is ambiguous or does not exist.
        ConditionError: a condition fails on an event.
    """
    events, request = in_order_of_arrival(events, request)
    zone = request.time_zone or "UTC"
    until = None if request.as_of is None else microseconds(instant_of(request.as_of, zone))
    engine = DuckDbEngine(time_zone=zone)
    plans = plans_in_process(events.schema, request, engine)
    patterns = compile_plans(plans)
    events = without_views(events.select(used_columns(plans)))
    usable_events, counts = usable(timed(events, request), plans, request, until)
    matchers = SortedMatchers(patterns, until=until)
    found = [
        matchers.process(batch) for batch in ahead(ordered_batches(usable_events, plans, patterns.relevant, engine))
    ]
    found.append(matchers.finish())
    counts = replace(counts, **matchers.counts)
    tell(counts, request)
    tell_ties(counts, request)
    return _output(plans, [pa.concat_tables(rows) for rows in zip(*found, strict=True)], engine)


def plan_in_process(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> Plan:
    """The plan of the request's one pattern; raises PatternError and SchemaError, as `detect_in_process` does."""
    return plans_in_process(columns, request, engine).only


def plans_in_process(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> Plans:
    """Raises PatternError and SchemaError, as `detect_in_process` does."""
    events, request = in_order_of_arrival(pa.Table.from_batches([], columns), request)
    columns = events.schema
    schema = Schema(plain_schema(columns), request.key, request.time, request.sequence)
    check_columns(schema)
    return planned(request, schema, engine)


def check_columns(schema: Schema | IntervalSchema) -> None:
    """Raises SchemaError where names are ambiguous or keys have no order here."""
    faults = repeated_names(schema.columns.names)
    for name in schema.key:
        at = schema.columns.get_all_field_indices(name)
        if at and not _groups(type_ := schema.columns.field(at[0]).type):
            faults.append(
                f"key: {name!r} is of type {type_}, which is no key in process. Cast it, for example to a string"
            )
    if faults:
        raise SchemaError("\n".join(faults))


def _groups(type_: pa.DataType) -> bool:
    """Whether values of the type are told apart here; types that are no key on any host are left to the plan."""
    if pa.types.is_struct(type_):
        return all(_groups(field.type) for field in type_)
    return not (pa.types.is_interval(type_) or pa.types.is_decimal256(type_))


def tell(counts: ReadCounts, request: Request) -> None:
    """The counts, in the report or, where they matter, as warnings."""
    if request.report is not None:
        request.report.set(lambda: counts)
        return
    if what := counts.unusable:
        warn(f"{what} were dropped. Give a Report, as in detect(…, report=report), to have the counts in it instead")
    if what := counts.over_limits:
        warn(f"{what} were over a limit and dropped, as on_limit says")


def tell_ties(counts: EventCounts, request: Request) -> None:
    """Warns of them where no sequence orders them."""
    if counts.ties and not request.sequence:
        each = ", counted for each pattern" if len(request.asked) > 1 else ""
        message = f"{counts.ties} events agree in key and time with another{each}; their content orders them"
        warn(f"{message}. Name a sequence column")


def ordered_batches(events: Timed, plans: LiftedFor, relevant: Words | None, engine: DuckDbEngine) -> Iterator[Batch]:
    """The events in the order of key, time and sequence, in pieces, with the lifted columns of all patterns, without
    those that have none of the `relevant` bits.
    """
    ranked = Ranked.of(events, plans.schema)
    if is_ordered(ranked):
        for start in range(0, len(events), PIECE):
            yield with_any(lifted(events.slice(start, PIECE), plans, engine), relevant)
        return
    found = evaluated(events, plans, engine)
    rows = _ordered_rows(ranked, found, relevant)
    events = events.in_one_piece()
    for start in range(0, len(rows), PIECE):
        piece = rows.slice(start, PIECE)
        yield placed(events.take(piece), found.take(piece), plans, engine.time_zone)


def _ordered_rows(events: Ranked, found: Evaluated, relevant: Words | None) -> pa.Array:
    """The numbers of the events that matter, in the order of key, time and sequence: only these need to be ordered."""
    if relevant is None:
        return pa.array(order_of(events))
    rows = matters(found.masks, relevant)
    return pa.array(rows[order_of(events.take(pa.array(rows)))])


def _output(plans: Plans, found: list[pa.Table], engine: DuckDbEngine) -> pa.Table:
    """The rows of all patterns, each pattern's with its measures and NULL in those of others."""
    tables = []
    for plan, rows in zip(plans.each, found, strict=True):
        with naming(plans, plan):
            tables.append(rows if plan.measures is None else with_measures(rows, plan.measures, engine))
    schema = pa.schema(merged([list(table.schema) for table in tables]))
    return pa.concat_tables([filled(table, schema) for table in tables])


def with_measures(rows: pa.Table, measures: tuple[Measure, ...], engine: DuckDbEngine) -> pa.Table:
    """The rows with the measures in the place of their slots."""
    slots = {name for measure in measures for name in measure.slots}
    others = [name for name in rows.schema.names if name not in slots]
    behind = [name for name in others if name == "event"]
    table = rows.select([name for name in others if name not in behind])
    for measure in measures:
        if not rows.num_rows:  # as of most calls of a live matcher: no query for nothing
            column = pa.chunked_array([], measure.type)
        elif isinstance(measure.expression, Name):
            column = rows.column(measure.expression.parts[0])
        else:
            lifted = Lifted(measure.text, measure.expression, measure.type)  # its text is for the message
            try:
                column = engine.evaluate(rows, values=[lifted]).values[0]
            except ConditionError as error:
                raise ConditionError(f"measure {measure.name!r}: {error}") from error
        table = table.append_column(pa.field(measure.name, measure.type), column.cast(measure.type))
    for name in behind:
        table = table.append_column(rows.schema.field(name), rows.column(name))
    return table
