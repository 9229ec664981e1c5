"""The in-process host: a loop over pieces of an Arrow table. DuckDB computes the lifted columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import ConditionError, SchemaError, in_pattern, warn, with_noun
from cepheid.events.batch import Batch
from cepheid.events.time import microseconds
from cepheid.families.family import Family
from cepheid.hosts.duckdb.engine import DuckDbEngine, Evaluated
from cepheid.hosts.in_process import threads
from cepheid.hosts.in_process.given_types import Sources, sources
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.nanoseconds import with_nanoseconds
from cepheid.hosts.in_process.pandas_index import refuse_index
from cepheid.hosts.in_process.prefetch import prefetched
from cepheid.hosts.in_process.prepare import (
    Deferred,
    Read,
    TimedEvents,
    as_batch,
    deferred_columns,
    evaluated,
    in_order_of_arrival,
    joined_by_changes,
    joined_by_id,
    timed,
    usable,
    with_batch_columns,
    with_sequence,
)
from cepheid.hosts.in_process.read_warnings import (
    ByEnd,
    certain_by_end,
    empty_sequences,
    keys_of_one_event,
    none_by_then,
    unheld,
    unheld_warning,
)
from cepheid.hosts.in_process.sort import KeysInOrder, OrderedEvents, Ranked, is_ordered, order_of
from cepheid.hosts.in_process.source_rows import by_number, with_ends, with_numbers, with_source_columns, with_unmatched
from cepheid.hosts.in_process.tables import column_faults, plain_schema, without_views
from cepheid.hosts.in_process.workers.choose import matcher_for, number_of_workers
from cepheid.hosts.in_process.workers.division import Division
from cepheid.hosts.in_process.workers.in_place import can_be_found_in_place, found_in_place
from cepheid.hosts.meanwhile import Found, found_meanwhile
from cepheid.hosts.pace import in_portions
from cepheid.lang.expression import Name
from cepheid.matchers.counts import ReadCounts, counts_of
from cepheid.matchers.working_set import rows_with_any, with_any
from cepheid.output.common import filled, merged
from cepheid.output.events import own_columns
from cepheid.output.times import given_rows, repeated_hours
from cepheid.plan.lifted import Lifted, Measure
from cepheid.plan.plan_set import LiftedFor, PatternPlan, PlanSet, Words, relevant_to_any
from cepheid.plan.problems import beside
from cepheid.plan.taxonomy import unseen_types
from cepheid.plan.used_columns import used_columns
from cepheid.requests.arguments import cores
from cepheid.requests.arrival import refuse_arrival
from cepheid.requests.changes import faults_of_changes
from cepheid.requests.request import Request, last_instant, planned, repeated_names

PIECE = 1 << 19
"""The number of rows processed at once. With twice as many, sorted events take up to a quarter less processor time, and
half as much memory again as the events have: docs/performance.md, "Memory".
"""


PIECE_BYTES = 1 << 28
"""The most bytes of a piece, about: pieces of wide events have fewer rows, as a column of texts holds at most 2 GB."""

_MUCH = 1 << 26
"""So many bytes of events of equal time take a noticeable time to hash."""


class Detected(NamedTuple):
    """The result of a detection."""

    rows: pa.Table
    sources: Sources
    """The event columns that columns of the rows have their values from."""


class Prepared(NamedTuple):
    """What a finite matcher is made from, and what it is given."""

    request: Request
    """With the order of arrival as its sequence, in processing order."""
    plans: PlanSet[Any]
    compiled: Any
    source: pa.Table
    """All events, with the columns that are used."""
    events: TimedEvents
    """Those that have key and times, up to `until`."""
    read: Read
    until: int | None
    engine: DuckDbEngine
    warned: frozenset[str]
    """The names of the patterns that were warned of."""
    held: HeldBits
    """The bits of all plans that were set for an event of the batches so far."""
    closing: pa.Array | None = None
    """The numbers of the rows that are no events of their own; None where each row is an event."""

    def batches(self, *, ordered: bool, every: bool = False) -> Iterator[Batch]:
        """The events without those that matter to no pattern, or `every` event; if `ordered`, in the order of key, time
        and sequence.
        """
        relevant = None if every else relevant_to_any(self.compiled.relevant_to)
        batches = ordered_batches if ordered else batches_as_they_come
        return prefetched(batches(self.events, self.plans, relevant, self.engine, self.held))


def prepared(events: pa.Table, request: Request, *, warns: bool = True, fixed_types: bool = False) -> Prepared:
    """The request's patterns, compiled, and the events for them. With `warns`, warns of what is odd in the patterns.
    With `fixed_types` the types of the rows do not depend on the events: nanoseconds are an error in all columns.

    Raises:
        PatternError, SchemaError, EventError: as `detect_in_process`.
    """
    refuse_index(events.schema, request)
    events, request = in_order_of_arrival(events, request)
    request = by_number(events.schema, request)
    family, zone = request.family, request.time_zone or "UTC"
    until = None if (last := last_instant(request, zone)) is None else microseconds(last)
    engine = DuckDbEngine(time_zone=zone)
    events = with_sequence(events, request.sequence, engine)
    plans = plans_in_process(events.schema, request, engine)
    changes = None if request.changes is None else events.column(request.changes)
    events = without_views(events.select(used_columns(plans)))
    plans = plans if fixed_types else with_nanoseconds(plans, events)
    compiled = family.compile(plans)
    warned = frozenset[str]()
    if warns:
        warned = _warned(plans, family, events)
        for warning in empty_sequences(events, plans.schema):
            warn(warning)
    given = with_numbers(events) if request.numbered else events
    if changes is None:
        joined = joined_by_id(timed(given, request), plans.schema, request.nulls, until)
    else:
        joined = joined_by_changes(timed(given, request), plans.schema, request, changes)
    for warning in none_by_then(joined.events, request, until) if warns else ():
        warn(warning)
    usable_events, read = usable(joined.events, plans.schema, request.nulls, until)
    read |= joined.read
    if request.numbered and request.event_id is not None:
        events = with_ends(events, joined.events.events, str(request.end))
    return Prepared(
        request, plans, compiled, events, usable_events, read, until, engine, warned, HeldBits(), joined.closing
    )


def nothing_found(events: pa.Table, request: Request) -> Detected:
    """What `detect_in_process` returns for no events with the columns of `events`. Nothing is compiled.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
    """
    events, request = in_order_of_arrival(events.slice(0, 0), request)
    request = by_number(events.schema, request)
    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    plans = plans_in_process(events.schema, request, engine)
    rows = _output(plans, request, [], engine)
    if request.numbered:
        rows = with_source_columns(rows, without_views(events), own_columns(plans.each[0]))
    return Detected(rows, sources(plans))


def detect_in_process(events: pa.Table, request: Request, *, fixed_types: bool = False) -> Detected:
    """The matches in `events`, as rows in the order of patterns, key and emission. For interval patterns, rows are in
    the order of patterns and time. `fixed_types` is as in `prepared`.

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong.
        EventError: events without key or times (`nulls="error"`), a local time that is ambiguous or does not exist.
        ConditionError: a condition fails on an event.
    """
    ready = prepared(events, request, fixed_types=fixed_types)
    request, plans, until = ready.request, ready.plans, ready.until
    family = request.family
    workers = number_of_workers(family, plans, events=len(ready.events), asked=request.workers)
    results, counts = _found(ready, workers)
    by_end = None if until is not None else certain_by_end(plans, family, results, ready.events)
    missing = unheld(plans, family, ready.events.events, ready.held, ready.warned)
    report(counts_of(family.counts, ready.read | counts), request, by_end, missing)
    for warning in () if missing or ready.warned else keys_of_one_event(ready.events, plans, family, results):
        warn(warning)
    if family.ties_matter(plans):
        warn_of_ties(counts["ties"], request, width=_width(ready.events))
    rows = _output(plans, request, [tables for tables in results if tables], ready.engine)
    if request.numbered:
        rows = with_source_columns(rows, ready.source, own_columns(plans.each[0]))
    if request.unmatched:
        rows = with_unmatched(rows, ready.source, ready.closing)
    return Detected(rows, sources(plans))


def _found(ready: Prepared, workers: int) -> Found:
    family, in_order = ready.request.family, ready.request.family.in_order or workers > 1
    if workers == 1:
        meanwhile = found_meanwhile(family, ready.compiled, ready.until, ready.batches(ordered=in_order))
        if meanwhile is not None:
            return meanwhile
    in_threads = _may_use_threads(ready, workers)
    if in_threads and family.in_order and ready.plans.schema.key:
        relevant = relevant_to_any(ready.compiled.relevant_to)
        ordered = ordered_events(ready.events, ready.plans, relevant, ready.engine, ready.held)
        ends = threads.divided(ordered.keys, threads.THREADS)
        if len(ends) > 1:
            return _found_by_threads(ready, ordered, ends)
        if workers > 1 and can_be_found_in_place(ready.plans, ordered):
            division = Division(workers, ready.until)
            return found_in_place(family, ready.plans, ready.compiled, ordered, division=division, engine=ready.engine)
        batches = prefetched(ordered.batches(0, ordered.keys.length, ready.engine))
    else:
        batches = ready.batches(ordered=in_order)
    division = Division(workers, ready.until, memory=ready.request.worker_memory)
    size = ready.events.events.nbytes
    choice = matcher_for(family, ready.plans, ready.compiled, size=size, division=division, in_threads=in_threads)
    with choice as matcher:
        results = [matcher.process(batch) for batch in in_portions(batches)]
        results.append(matcher.finish())
        return Found(results, matcher.counts)


def _may_use_threads(ready: Prepared, workers: int) -> bool:
    """Whether so many workers may be threads: there are many events, and threads would not share what runs in Python.
    One worker may be two threads, too.
    """
    plans = ready.plans
    shares_python = plans.functions or any(plan.pattern.knowledge is not None for plan in plans.each)
    enough = len(ready.events) >= threads.LEAST and min(cores(), threads.THREADS) > 1
    few = workers <= threads.THREADS and ready.request.worker_memory is None
    return bool(few and enough and not shares_python)


def _found_by_threads(ready: Prepared, ordered: OrderedEvents, ends: Sequence[int]) -> Found:
    """What threads find, each in the events up to one of the `ends`."""
    engines = [ready.engine, *(DuckDbEngine(time_zone=ready.engine.time_zone) for _ in ends[1:])]
    parts = [ordered.batches(*part) for part in zip([0, *ends], ends, engines, strict=False)]
    matchers = [ready.request.family.finite(ready.compiled, ready.until) for _ in parts]
    return threads.found_by_threads(matchers, parts)


def plans_in_process(columns: pa.Schema, request: Request, engine: DuckDbEngine) -> PlanSet[Any]:
    """The plans of the request's patterns. Raises PatternError and SchemaError, as `detect_in_process`."""
    refuse_arrival(arrival=request.arrival)
    refuse_index(columns, request)
    events, request = in_order_of_arrival(pa.Table.from_batches([], columns), request)
    plain = plain_schema(with_sequence(events, request.sequence, engine).schema)
    check_columns(plain, request)
    with beside(_faults(plain, request)):
        plans = planned(request, plain, engine)
    if faults := column_faults(plain, used_columns(plans)):
        raise SchemaError("\n".join(faults))
    return plans


def check_columns(columns: pa.Schema, request: Request) -> None:
    """Raises SchemaError for what makes a plan impossible: two columns have one name, or Arrow cannot hold a column
    that is asked for.
    """
    chosen = columns.names if request.columns is None else request.columns
    named = {*request.key, request.time, request.end, *request.sequence, *chosen}
    if faults := repeated_names(columns.names) + column_faults(columns, named):
        raise SchemaError("\n".join(faults))


def _faults(columns: pa.Schema, request: Request) -> list[str]:
    """The faults of columns that a plan does not find: those of changes, and keys that cannot be keys in process."""
    changes = request.changes
    faults = [] if changes is None else [*faults_of_changes(changes, request.event_id, columns)]
    for name in request.key:
        at = columns.get_all_field_indices(name)
        if at and not _can_be_key(type_ := columns.field(at[0]).type):
            faults.append(
                f"key: {name!r} is of type {type_}, which cannot be a key in process. Cast it, for example to a string"
            )
    return faults


def _can_be_key(type_: pa.DataType) -> bool:
    """Whether values of the type can be keys in process. The plan refuses types that can be keys on no host."""
    if pa.types.is_struct(type_):
        return all(_can_be_key(field.type) for field in type_)
    return not (pa.types.is_interval(type_) or pa.types.is_decimal256(type_))


def _warned(plans: PlanSet[Any], family: Family, events: pa.Table) -> frozenset[str]:
    """Warns of what is odd in patterns. Returns the names of those patterns."""
    warned = set()
    for plan in plans.each:
        found = [*family.warnings(plan), *_unseen(plan.pattern, family, events)]
        for warning in found:
            warn(f"pattern {plan.pattern.name!r}: {warning}" if plans.named else warning)
            warned.add(plan.pattern.name)
    return frozenset(warned)


def _unseen(pattern: Any, family: Family, events: pa.Table) -> Iterable[str]:
    """Warnings for types of the pattern that no event has."""
    types = pattern.types
    return () if types is None else unseen_types(types, [*family.types(pattern)], events.column(types.column))


def report(counts: ReadCounts, request: Request, by_end: ByEnd | None, missing: Sequence[str]) -> None:
    """Puts in the report what was counted, and the parts of conditions that are `missing` in the events. Without a
    report, warns of what matters.
    """
    if request.report is not None:
        number = None if by_end is None else by_end.matches
        request.report.set(lambda: counts, certain_by_end=number, unheld=missing)
        return
    if missing:
        warn(unheld_warning(missing, request.family))
    if by_end is not None and by_end.warning is not None:
        warn(by_end.warning)
    if what := counts.unusable:
        warn(f"dropped: {what}. Give a Report, as in detect(…, report=report), to have the counts in it instead")
    if what := counts.over_limits:
        warn(f"dropped, as on_limit is 'drop': {what} over a limit")


def warn_of_ties(ties: int, request: Request, *, width: int = 0) -> None:
    """Warns of ties if there is no sequence to order them, and of what that costs if events have many bytes (`width`,
    on average).
    """
    if ties and not request.sequence:
        each = ", counted for each pattern" if len(request.patterns) > 1 else ""
        agree = "1 event agrees" if ties == 1 else f"{ties:,} events agree"
        message = f"{agree} in key and time with another{each}; their content orders them"
        advice = "Name a sequence column, or give sequence=cepheid.ROW_ORDER if the rows are in order"
        if ties * width >= _MUCH:
            advice += f". Events have {width:,} bytes on average, which take long to hash: choose columns=[…]"
        warn(f"{message}. {advice}")


def batches_as_they_come(
    events: TimedEvents, plans: LiftedFor, relevant: Words | None, engine: DuckDbEngine, held: HeldBits
) -> Iterator[Batch]:
    """The events in pieces, with the lifted columns of all patterns. Events that have none of the `relevant` bits are
    left out. The bits of all events are added to `held`.
    """
    rows = _rows_of_piece(events)
    for start in range(0, len(events), rows):
        piece = events.slice(start, start + rows)
        computed = evaluated(piece, plans, engine)
        held.add(computed.masks)
        yield with_any(as_batch(piece, computed, plans, engine.time_zone), relevant)


def ordered_batches(
    events: TimedEvents, plans: LiftedFor, relevant: Words | None, engine: DuckDbEngine, held: HeldBits
) -> Iterator[Batch]:
    """The events in the order of key, time and sequence, in pieces, with the lifted columns of all patterns. Events
    that have none of the `relevant` bits are left out. The bits of all events are added to `held`.
    """
    ordered = ordered_events(events, plans, relevant, engine, held)
    yield from ordered.batches(0, ordered.keys.length, engine)


def ordered_events(
    events: TimedEvents, plans: LiftedFor, relevant: Words | None, engine: DuckDbEngine, held: HeldBits
) -> OrderedEvents:
    """The events in the order of key, time and sequence, ready to be made into pieces."""
    ranked = Ranked.of(events, plans.schema)
    if is_ordered(ranked):

        def as_they_come(start: int, stop: int, engine: DuckDbEngine) -> Iterator[Batch]:
            return batches_as_they_come(events.slice(start, stop), plans, relevant, engine, held)

        return OrderedEvents(KeysInOrder(ranked.keys, None, len(events)), ranked.ranks[0], as_they_come)
    computed, rows = _evaluated_in_order(events, ranked, plans, relevant, engine)
    held.add(computed.masks)
    count = _rows_of_piece(events)
    whole, computed = events.in_one_piece(), computed.in_one_piece()
    deferred = deferred_columns(whole, plans)
    whole = with_batch_columns(whole, plans, deferred)

    def in_pieces(start: int, stop: int, engine: DuckDbEngine) -> Iterator[Batch]:
        for first in range(start, stop, count):
            piece = rows.slice(first, min(count, stop - first))
            own = None if deferred is None else Deferred(deferred, piece)
            yield as_batch(whole.take(piece), computed.take(piece), plans, engine.time_zone, own)

    return OrderedEvents(KeysInOrder(ranked.keys, rows, len(rows)), ranked.ranks[0], in_pieces)


def _rows_of_piece(events: TimedEvents) -> int:
    """How many events are processed at once."""
    return max(1, min(PIECE, PIECE_BYTES // max(1, _width(events))))


def _width(events: TimedEvents) -> int:
    """The bytes of an event, on average."""
    return int(events.events.nbytes) // max(1, len(events))


def _evaluated_in_order(
    events: TimedEvents, ranked: Ranked, plans: LiftedFor, relevant: Words | None, engine: DuckDbEngine
) -> tuple[Evaluated, pa.Array]:
    """The lifted columns of the events, and the numbers of the relevant ones in the order of key, time and sequence.
    Only these are sorted; if all are relevant, while the columns are computed.
    """
    if relevant is None:
        with ThreadPoolExecutor(1, thread_name_prefix="cepheid-order") as pool:
            order = threads.begun(partial(order_of, ranked), pool)
            return evaluated(events, plans, engine), pa.array(order())
    computed = evaluated(events, plans, engine)
    rows = rows_with_any(computed.masks, relevant)
    if len(rows) == len(events):
        return computed, pa.array(order_of(ranked))
    return computed, pa.array(rows[order_of(ranked.take(pa.array(rows)))])


def _output(plans: PlanSet[Any], request: Request, results: Sequence[list[pa.Table]], engine: DuckDbEngine) -> pa.Table:
    """The rows of all patterns, from results with one table for each pattern. Each row has its pattern's measures, and
    NULL in the measures of other patterns.
    """
    each = [
        pa.concat_tables([schema.empty_table(), *(result[i] for result in results)])
        for i, schema in enumerate(request.family.row_schemas(plans))
    ]
    rows = in_one_table(plans, request.family, each, engine)
    warn_of_repeated_hours(rows, engine.time_zone)
    return rows


def in_one_table(plans: PlanSet[Any], family: Family, each: Sequence[pa.Table], engine: DuckDbEngine) -> pa.Table:
    """The rows of all patterns in one table, from those of each matcher, with their measures and the times that users
    gave.
    """
    tables = []
    for plan, rows in zip(plans.each, each, strict=True):
        with in_pattern(plan.pattern.name, named=plans.named):
            tables.append(finished_rows(plan, rows, engine))
    if len(tables) == 1:
        return tables[0]
    schema = pa.schema(merged([list(table.schema) for table in tables], family.last_columns))
    return pa.concat_tables([filled(table, schema) for table in tables])


def finished_rows(plan: PatternPlan, rows: pa.Table, engine: DuckDbEngine) -> pa.Table:
    """The rows of a matcher with their measures, and with times in the form that users gave."""
    given = given_rows(plan, rows, engine.time_zone)
    return given if plan.measures is None else with_measures(given, plan.measures, engine)


def warn_of_repeated_hours(rows: pa.Table, zone: str, *, where: str = "") -> None:
    """Warns of local times that may mean either of two instants. `where` begins the message."""
    if count := repeated_hours(rows, zone):
        what = f"{where}in {with_noun(count, 'row')} detected_at is in an hour that clocks in {zone} show twice"
        warn(f"{what}. Give events with instants (a zone), which are unambiguous")


def with_measures(rows: pa.Table, measures: tuple[Measure, ...], engine: DuckDbEngine) -> pa.Table:
    """The rows, with the measures in place of their slots."""
    slots = {name for measure in measures for name in measure.slots}
    others = [name for name in rows.schema.names if name not in slots]
    last = [name for name in others if name == "event"]
    table = rows.select([name for name in others if name not in last])
    for measure in measures:
        if not rows.num_rows:  # as in most calls of a live matcher: no query is needed
            column = pa.chunked_array([], measure.type)
        elif isinstance(measure.expression, Name):
            column = rows.column(measure.expression.parts[0])
        else:
            lifted = Lifted(measure.text, measure.expression, measure.type)  # its text is used in messages
            try:
                column = engine.evaluate(rows, values=[lifted]).values[0]
            except ConditionError as error:
                raise ConditionError(f"measure {measure.name!r}: {error}") from error
        table = table.append_column(pa.field(measure.name, measure.type), column.cast(measure.type))
    for name in last:
        table = table.append_column(rows.schema.field(name), rows.column(name))
    return table
