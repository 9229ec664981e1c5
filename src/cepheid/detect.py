"""detect: finds a pattern in events, in process or on Spark; and columns of answers for events."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, TypeVar, cast

from cepheid.errors import PatternError, SchemaError
from cepheid.families import family_of, known_family_of
from cepheid.families.family import Explanation
from cepheid.lang.argument_advice import FORMER
from cepheid.lang.arguments import shown
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.known_arguments import known_arguments
from cepheid.lang.occurrences.expression import event
from cepheid.lang.occurrences.expression import leaf_types as named_types
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import checked_names
from cepheid.requests.arrival import Arrival
from cepheid.requests.patterns import Measures, asked_patterns
from cepheid.requests.report import Report
from cepheid.requests.request import SHARDS, Nulls, Request, Resolution
from cepheid.requests.request_of import request_of
from cepheid.requests.row_order import RowOrder
from cepheid.requests.warnings import for_streams

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from cepheid.knowledge.column import AnswerColumn
    from cepheid.output.why import Why

Events = TypeVar("Events")

AnyPattern: TypeAlias = (
    Pattern
    | OccurrencePattern
    | IntervalPattern
    | Mapping[str, Pattern]
    | Mapping[str, OccurrencePattern]
    | Mapping[str, IntervalPattern]
)
"""The patterns that `detect` accepts: one, or several of one kind by name."""


@known_arguments(FORMER)
def detect(
    events: Events,
    pattern: AnyPattern,
    *,
    key: str | Sequence[str] | None = None,
    time: str | Sequence[str] | Arrival | EllipsisType | None = ...,
    event_id: str | None = None,
    open_for: timedelta | str | None = None,
    changes: str | None = None,
    sequence: str | Sequence[str] | RowOrder | None = None,
    columns: str | Sequence[str] | None = None,
    measures: Measures | None = None,
    outputs: OutputName | Sequence[OutputName] | None = None,
    rows_per: RowsPer = "match",
    unmatched: bool = False,
    limits: Limits | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    time_resolution: Resolution | None = None,
    nulls: Nulls = "error",
    report: Report | None = None,
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
    standbys: int = 0,
    workers: int | Literal["auto"] = 1,
    worker_memory: int | str | None = None,
    slices: bool = False,
    show_keys: bool = False,
    checkpoint: str | PathLike[str] | None = None,
) -> Events:
    """The matches of `pattern` in `events`: a table of the same kind, with one row per match.

    Args:
        events: A Spark DataFrame, also a streaming one, or a table of pandas, polars, pyarrow, DuckDB or anything that
            speaks Arrow's C stream interface.
        pattern: What to find: stages, occurrences of the event algebra, or intervals; or several patterns of one kind
            by name, as in {"late": …, "lost": …}, which are found in one pass over the events. These names replace the
            patterns' own names.
        key: Column or columns; the events of each key are a separate sequence. None: all events are one sequence.
        time: The column of event times; for intervals the columns of start and end, as in ("opened", "closed"). Times
            without a zone are read in `time_zone`; a date is the start of the day. None: processing order; events have
            the order of `sequence` or, in process, of the rows, and no time passes. On a stream also `cepheid.ARRIVAL`:
            the time of an event is that of its micro-batch.
        event_id: For intervals: the column that identifies an event. A row whose end is NULL then opens an event, and
            another row with the same id closes it.
        open_for: For a stream with `event_id`: how long an event may be open. A longer one is an error or, with
            nulls="drop", dropped, and its matches are retracted. None: any time.
        changes: For a table in process with `event_id`: the column that says what a row does. "insertion" (or
            "completion") inserts, closes or revises its event, "retraction" withdraws it; matches are those of the
            events that are left. The rows of an event are read in the order in which they stand.
        sequence: Column or columns that order events of equal time, or items of ORDER BY such as "priority DESC";
            without one their content does. An exact name of a column is this column, with NULL last. For a table in
            process also `cepheid.ROW_ORDER`: they are in the order of their rows.
        columns: Event column or columns to include in the output (default: all).
        measures: Output column → SQL over the match, as in {"legs": "count(legs)"}, in place of the events. With
            several patterns, the measures of each by its name: {"late": {"legs": "count(legs)"}}.
        outputs: What to return: "matches", "timeouts" (partial matches that ran out of time), "no_match" (those that a
            negation has ended without a match), "inconsistent" (for patterns with knowledge: the first event of a key
            that contradicts what is known), "late" (events that came too late; finite input has none), or several of
            them, in one table.
        rows_per: "match": one row per match. "event": one row per event of each match, with its stage, its position in
            the match and among the events of the stage, its columns, and the measures, which are running unless FINAL
            comes before them. In process it has the number of its row in the table; in pandas, its index.
        unmatched: With rows_per="event", for finite input: events that are in no row have one, too, in which the
            columns about a match and the measures are NULL.
        limits: Bounds on what one key may have open and on what one event may complete.
        as_of: Only events up to this instant count, and time stops there: matches that may still grow are not emitted.
            Without it the input is complete: every deadline expires, and open partial matches end.
        time_zone: The zone of times without one, including `as_of` (default: the Spark session's; in process UTC).
        time_resolution: "us": times in nanoseconds are cut to microseconds, and what is cut orders events of the same
            microsecond. None: such times are an error if they are no whole number of microseconds.
        nulls: What happens to events without key or time, and to those that end before they start: "error" or "drop".
            Dropped events are counted in `report`; without a report, in a warning.
        report: Is filled with the counts of events read and dropped, and of matches and timeouts.
        lateness: For a stream: how much earlier than the latest event an event may be without being late. It sets the
            watermark of the first time column, and is not needed if a time column has one. Finite input ignores it.
        shards: For a stream: the number of parts that its keys are divided into. It is fixed in the checkpoint. Finite
            input ignores it.
        standbys: For a stream: the number of further shards that may hold copies of hot keys, which divide the partial
            matches of such a key by their first events. It is fixed in the checkpoint, which must be named. Finite
            input ignores it.
        workers: For tables in process: the number of workers that find matches, processes or two threads. They divide
            the keys, and a key with many events by time where the pattern allows it. "auto": all cores if there are
            enough events to pay.
        worker_memory: The memory that each of several workers may use for its part, as in "2 GB" or a number of bytes.
            None: as much as there is.
        slices: For batches on Spark: whether the events of each key are divided by time, for a few keys that have most
            of the events. Without a key they are, where the pattern allows it.
        show_keys: For a stream: whether `progress` names its hottest keys, which are often personal data. Otherwise it
            has hashes of them.
        checkpoint: For a stream: its checkpointLocation. It is needed only for `standbys`, and to continue from a
            checkpoint that an earlier version of Cepheid has written: its shards keep their numbers, which Spark
            spreads less evenly over partitions. Finite input ignores it.

    Returns:
        match_id (128-bit hex), the key columns, match_start, match_end, detected_at (the time of the event or deadline
        that made the match certain; NULL if only the end of the input did), then the match's events in one column per
        stage or variable, or the measures. With `outputs`, or several patterns, kind and pattern come first; see the
        reference.

    Raises:
        PatternError: the pattern, a condition or a measure is wrong; the message has all problems.
        SchemaError: a named column does not exist or has an unsuitable type, or an argument is of the wrong kind; the
            message has all such faults.
        EventError: events cannot be ordered, as they have no key, no time, or an ambiguous local time.
        SkipError: a match has no event to skip to, where the skip strategy has error_on_miss.
        ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
        LimitExceeded: a key has more open partial matches, or an event completes more matches, than `limits` allows; or
            a worker needs more than `worker_memory`, or this process more memory than it can allocate.
        WorkerFailed: a worker process ended, also because a library could allocate no more within `worker_memory`.
    """
    if family_of(events) is not None:
        raise PatternError("the events come first, then the pattern: write detect(events, pattern)")
    request = request_of(
        pattern,
        key=key,
        time=time,
        event_id=event_id,
        open_for=open_for,
        changes=changes,
        sequence=sequence,
        columns=columns,
        measures=measures,
        outputs=outputs,
        rows_per=rows_per,
        unmatched=unmatched,
        limits=limits,
        as_of=as_of,
        time_zone=time_zone,
        time_resolution=time_resolution,
        nulls=nulls,
        report=report,
        lateness=lateness,
        shards=shards,
        standbys=standbys,
        workers=workers,
        worker_memory=worker_memory,
        slices=slices,
        show_keys=show_keys,
        checkpoint=checkpoint,
        endless=is_spark(events) and events.isStreaming,
    )
    return cast("Events", _run(events, request))


@known_arguments(FORMER)
def why(
    events: object,
    pattern: Pattern,
    *,
    key: str | Sequence[str] | None = None,
    time: str | EllipsisType | None = ...,
    sequence: str | Sequence[str] | RowOrder | None = None,
    columns: str | Sequence[str] | None = None,
    limits: Limits | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    time_resolution: Resolution | None = None,
    nulls: Nulls = "error",
) -> Why:
    """Why events did not match a pattern of stages: how far its partial matches came, and what ended those that became
    no match.

    It takes about as long as `detect`. On Spark it runs at once, where the events are.

    Args:
        events: A table of pandas, polars, pyarrow, DuckDB or anything that speaks Arrow's C stream interface, or a
            Spark DataFrame, which is not a streaming one.
        pattern: One pattern of stages.
        key, time, sequence, columns, limits, as_of, time_zone, time_resolution, nulls: As for `detect`.

    Returns:
        A `Why`: printed, it is a readable text; `funnel` has its numbers, `near_misses` are the starts that would match
        with one change of the pattern, and `trace` shows one key step by step.

    Raises:
        PatternError, SchemaError, EventError, SkipError, ConditionError, LimitExceeded: as `detect`. SchemaError also
            for events of a stream, and for a pattern that is not one of stages. Without `limits` no limit holds where
            partial matches are in sets, because no match is listed then. On Spark, errors that events cause are
            EventErrors.
    """
    family = family_of(pattern)
    if isinstance(pattern, Mapping) or (family is not None and not family.explains_misses):
        given = "several patterns" if family is None else family.noun
        raise SchemaError(f"why explains one pattern of stages, made with Pattern.begin(…); it was given {given}")
    request = request_of(
        pattern,
        key=key,
        time=time,
        sequence=sequence,
        columns=columns,
        limits=limits,
        as_of=as_of,
        time_zone=time_zone,
        time_resolution=time_resolution,
        nulls=nulls,
    )
    if is_spark(events):
        if events.isStreaming:
            raise SchemaError("why reads finite events: give it a batch of them, as in spark.read")
        from cepheid.hosts.spark.batch.why import why_on_spark

        return why_on_spark(events, request)
    from cepheid.hosts.in_process.tables import to_arrow
    from cepheid.hosts.in_process.why import why_in_process
    from cepheid.hosts.worker_memory import memory_as_limit

    with memory_as_limit():
        table, from_arrow = to_arrow(events)
        return why_in_process(table, request, from_arrow)


@known_arguments()
def match_events(matches: Events, *, time: str | None = None, sequence: str | Sequence[str] | None = None) -> Events:
    """The events of matches that are there already, with one row for each: their stage columns, unnested.

    `detect(…, rows_per="event")` gives more: the events' own types, the numbers of their rows, and running measures.

    Args:
        matches: What `detect` has returned for patterns of stages or intervals, with the events of the stages.
        time: The column of event times among those of the events, which orders the events of a match. None: they are in
            the order of the stages' columns, as they are in time unless a group is a loop.
        sequence: Column or columns that order events of equal time, as `detect` had them; items of ORDER BY are not
            taken. None: their content orders them, as in `detect`.

    Returns:
        A table of the same kind: the columns of the matches without those of stages, `stage`, `position` and
        `stage_position` (from 1), and the columns of the events. On Spark it is lazy, also for a stream. An empty
        frame of pandas does not have the columns of the events.

    Raises:
        SchemaError: these are no matches, or they have no events, as with measures, or the events have a column of a
            name that the result has itself, such as `stage`.
    """
    faults: list[str] = []
    order = () if sequence is None else checked_names("sequence", sequence, faults)
    if order and time is None:
        faults.append("sequence: it orders events of equal time; name the column of the times with time=…")
    if faults:
        raise SchemaError("\n".join(faults))
    if is_spark(matches):
        from cepheid.hosts.spark.batch.unnest import match_events_on_spark

        return cast("Events", match_events_on_spark(matches, time, order))
    from cepheid.hosts.in_process.of_matches.matched_events import with_plain_maps
    from cepheid.hosts.in_process.of_matches.unnest import match_events_of
    from cepheid.hosts.in_process.tables import to_arrow

    table, from_arrow = to_arrow(with_plain_maps(matches))
    rows = match_events_of(table, time, order)
    return cast("Events", from_arrow(rows, {name: name for name in table.column_names if name in rows.column_names}))


@known_arguments(FORMER)
def leaf_types(
    events: Events,
    pattern: OccurrencePattern,
    *,
    key: str | Sequence[str] | None = None,
    time: str,
    sequence: str | Sequence[str] | RowOrder | None = None,
    columns: str | Sequence[str] | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
) -> Events:
    """Which events are of which of the types that a pattern names, each at its own time: in its leaves, its restricted
    types, and what these restrict.

    Returns:
        A table of the same kind, as from `detect` for several patterns, with one row for each event and type: `pattern`
        is the type, `match_start` the time, and `events` has the event with its columns.

    Raises:
        As `detect`.
    """
    if not isinstance(pattern, OccurrencePattern):
        raise PatternError(f"leaf_types is about an OccurrencePattern, got {shown(pattern)}")
    names = [*named_types(pattern.expression), *(name for one in pattern.restricted for name in (one.name, one.base))]
    each = {name: replace(pattern, expression=event(name), chosen=Policy.UNRESTRICTED) for name in names}
    options: dict[str, Any] = {"sequence": sequence, "columns": columns, "time_zone": time_zone, "nulls": nulls}
    return detect(events, each, key=key, time=time, **options)


@known_arguments()
def add_column(events: Events, column: AnswerColumn, *, name: str | None = None) -> Events:
    """The events with one more column: what the knowledge answers for each of them. An event with several answers has
    several rows, one with none has NULL.

    Args:
        events: As for `detect`.
        column: What to ask, from `Knowledge.column`.
        name: The name of the new column (default: that of the variable).

    Returns:
        A table of the same kind, with the new column as the last. For individuals it has their names (IRIs), of several
        for one individual the least; for literals their values. In process the events are in the same order. A Spark
        DataFrame, also a streaming one, is joined with the answers; nothing runs before the query does, unless the
        filter must be asked for values that events have.

    Raises:
        SchemaError: the events have a column of the name, or not the columns that the answers depend on.
        KnowledgeError: the answers are of several types.
    """
    from cepheid.knowledge.column import AnswerColumn

    if not isinstance(column, AnswerColumn):
        raise SchemaError(f"column: a column that knowledge.column(…) makes is expected, got {shown(column)}")
    if is_spark(events):
        from cepheid.hosts.spark.answers import with_answers_on_spark

        return cast("Events", with_answers_on_spark(events, column, name))
    from cepheid.hosts.in_process.answers import with_answers

    return cast("Events", with_answers(events, column, name))


@known_arguments(FORMER)
def explain(
    pattern: Pattern | OccurrencePattern | IntervalPattern,
    *,
    events: object = None,
    key: str | Sequence[str] | None = None,
    time: str | Sequence[str] | EllipsisType | None = ...,
    event_id: str | None = None,
    sequence: str | Sequence[str] | RowOrder | None = None,
    columns: str | Sequence[str] | None = None,
    measures: Measures | None = None,
    outputs: OutputName | Sequence[OutputName] | None = None,
    rows_per: RowsPer = "match",
    limits: Limits | None = None,
    time_zone: str | None = None,
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
) -> Explanation:
    """What the pattern looks for and how, as `cepheid explain` prints it; with a picture in notebooks.

    Args:
        pattern: One pattern of any kind.
        events: As for `detect`; only the columns are read. With events the explanation has the plan: the columns that
            the host's SQL engine computes, what is left to scripts, all types, and the events that are dropped.
        key: This and the other arguments are those of `detect`. Without events only `measures` may be given.
        lateness, shards: If the events are finite, the explanation says that these are ignored.

    Raises:
        PatternError, SchemaError: as in `detect`; values of parameters that are not given yet are no error without
            events.
    """
    plan, ignored = None, list[str]()
    if events is None:
        given: dict[str, object] = {
            "key": key,
            "event_id": event_id,
            "sequence": sequence,
            "columns": columns,
            "outputs": outputs,
            "limits": limits,
        }
        given |= {"time_zone": time_zone, "lateness": lateness}
        named = [name for name, value in given.items() if value is not None]
        others = {"time": time is not ..., "rows_per": rows_per != "match", "shards": shards != SHARDS}
        named += [name for name, is_given in others.items() if is_given]
        _check_alone(pattern, measures, named)
    else:
        endless = is_spark(events) and events.isStreaming
        request = request_of(
            pattern,
            key=key,
            time=time,
            event_id=event_id,
            sequence=sequence,
            columns=columns,
            measures=measures,
            outputs=outputs,
            rows_per=rows_per,
            limits=limits,
            time_zone=time_zone,
            lateness=lateness,
            shards=shards,
            endless=endless,
        )
        _check_one(pattern)
        pattern, plan = request.only.pattern, plan_of(events, request)
        ignored = [] if endless else [*for_streams(request)]
    explained = known_family_of(pattern).explain(pattern, plan)
    return replace(explained, text="".join([explained.text, *(f"Warning: {one}\n" for one in ignored)]))


def _check_alone(pattern: Any, measures: Any, named: Sequence[str]) -> None:
    """Raises PatternError or SchemaError for what is wrong with a pattern without events."""
    from cepheid.plan.conditions.parameters import with_nulls

    faults = [f"{name}: it is about events; give events=… with it, or leave it out" for name in named]
    (asked, *_) = asked_patterns(pattern, measures, faults)
    _check_one(pattern)
    if faults:
        raise SchemaError("\n".join(faults))
    if problems := known_family_of(pattern).check(with_nulls(pattern), asked.measures):
        raise PatternError(problems)


def _check_one(pattern: object) -> None:
    if isinstance(pattern, Mapping):
        raise PatternError(f"explain is about one pattern: call it for each of {', '.join(map(repr, pattern))}")


def plan_of(events: object, request: Request) -> Any:
    """The plan that `detect` would run for the first pattern; of the events, only the columns are read.

    Raises:
        PatternError, SchemaError: as in `detect`.
    """
    if is_spark(events):
        from cepheid.hosts.spark.batch.detect import plans_on_spark

        _check_unchanged(request)
        return plans_on_spark(events, request, in_one_row=not events.isStreaming).each[0]
    from cepheid.hosts.duckdb.engine import DuckDbEngine
    from cepheid.hosts.in_process.detect import plans_in_process
    from cepheid.hosts.in_process.tables import columns_of

    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    return plans_in_process(columns_of(events), request, engine).each[0]


def _check_unchanged(request: Request) -> None:
    """Raises SchemaError if events on Spark have rows that change them."""
    if request.changes is not None:
        raise SchemaError(
            "changes: rows revise and withdraw events in tables in process and for an IntervalMatcher. On Spark give "
            "the final events, and leave it out"
        )


def _run(events: object, request: Request) -> object:
    if is_spark(events):
        _check_unchanged(request)
        if request.workers != 1:
            raise SchemaError("workers: Spark divides the work of its DataFrames itself; leave it out")
        if events.isStreaming:
            if request.slices:
                raise SchemaError("slices: they divide finite input; standbys=… divide the hot keys of a stream")
            if request.unmatched:
                raise SchemaError(
                    "unmatched: on a stream a later match may still take an event. Store the events and the rows, and "
                    "join them (left_anti) by what identifies an event"
                )
            from cepheid.hosts.spark.stream.detect import detect_on_stream

            return detect_on_stream(events, request)
        from cepheid.hosts.spark.batch.detect import detect_on_spark

        return detect_on_spark(events, request)
    if request.slices:
        raise SchemaError("slices: they are for batches on Spark; workers=n divides large keys in process")
    from cepheid.hosts.in_process.detect import detect_in_process
    from cepheid.hosts.in_process.lazy import detect_lazily, is_lazy
    from cepheid.hosts.in_process.tables import to_arrow
    from cepheid.hosts.worker_memory import memory_as_limit

    with memory_as_limit():
        if is_lazy(events):
            return detect_lazily(events, request)
        table, from_arrow = to_arrow(events)
        return from_arrow(*detect_in_process(table, request))


def is_spark(events: object) -> TypeGuard[DataFrame]:
    """Whether `events` is a Spark DataFrame. Does not import pyspark: a DataFrame exists only if it is imported."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(events, module.DataFrame)


def arrow_table(events: object) -> pa.Table:
    """A table of any supported kind except Spark's, as an Arrow table; SchemaError for anything else."""
    from cepheid.hosts.in_process.tables import to_arrow

    if is_spark(events):
        raise SchemaError("events are a Spark DataFrame, which is not read into this process: use detect, or toArrow()")

    return to_arrow(events)[0]
