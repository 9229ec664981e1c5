"""detect: find a pattern in events, wherever they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar, cast

from cepheid.errors import PatternError, Problem, SchemaError
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.occurrences.expression import Occurrence, OccurrencePattern
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.build import AskedOccurrences
from cepheid.plan.stages.build import Asked
from cepheid.plan.stages.plan import OutputName
from cepheid.requests.arguments import (
    checked_as_of,
    checked_key,
    checked_lateness,
    checked_limits,
    checked_measures,
    checked_name,
    checked_names,
    checked_nulls,
    checked_outputs,
    checked_shards,
    checked_zone,
    faults_of_intervals,
    faults_of_others,
    measures_of_each,
)
from cepheid.requests.request import SHARDS, AskedIntervals, Nulls, Report, Request

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from cepheid.plan.intervals.plan import IntervalPlan
    from cepheid.plan.occurrences.plan import OccurrencePlan
    from cepheid.plan.stages.plan import Plan

Events = TypeVar("Events")
P = TypeVar("P", Pattern, OccurrencePattern, IntervalPattern)

AnyPattern: TypeAlias = (
    Pattern
    | OccurrencePattern
    | IntervalPattern
    | Mapping[str, Pattern]
    | Mapping[str, OccurrencePattern]
    | Mapping[str, IntervalPattern]
)
"""What can be looked for: a pattern, or several by name."""

Measures: TypeAlias = Mapping[str, str] | Mapping[str, Mapping[str, str]]
"""Output column → SQL; with several patterns so for each of them, by its name."""


def detect(
    events: Events,
    pattern: AnyPattern,
    *,
    key: str | Sequence[str] | None = None,
    time: str | EllipsisType | None = ...,
    start: str | None = None,
    end: str | None = None,
    type: str | None = None,  # noqa: A002 - what it is called everywhere
    kinds: Mapping[str, str | Sequence[str]] | None = None,
    sequence: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    measures: Measures | None = None,
    outputs: OutputName | Sequence[OutputName] | None = None,
    limits: Limits | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
    report: Report | None = None,
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
) -> Events:
    """The matches of `pattern` in `events`: a table of the same kind, with one row a match.

    Args:
        events: A Spark DataFrame, also a streaming one, or a table of pandas, polars, pyarrow, DuckDB or anything that
            speaks Arrow's C stream interface.
        pattern: What to find: stages, occurrences of the event algebra, or intervals; or several patterns of one kind
            by name, as in {"late": …, "lost": …}, which one pass over the events finds. These names take the place of
            the patterns' own. What patterns of occurrences have in common is looked for once, but on streams, whose
            occurrences are the recent ones if the pattern has no policy.
        key: Column or columns; each key's events are a sequence of their own. None: all events are one sequence, which
            on Spark one task works through alone (a warning says so).
        time: The column of event times, but of interval patterns. Times without a zone are read in `time_zone`. None:
            processing order; events count in the order of `sequence` or, in process, in that of the rows, and no time
            passes: a window is an error, and the times in the output are NULL. Of interval patterns on a stream that of
            `start` and `end` which the watermark is of: `start`, unless it is said or `end` alone has a watermark.
        start: Of interval patterns: the column in which an event starts.
        end: Of interval patterns: the column in which it ends; an instant ends where it starts.
        type: Of interval patterns that have no taxonomy: the column that holds the type of each event.
        kinds: Of interval patterns, with `type`: types and what they are kinds of.
        sequence: A column, or several, that order events of equal time; without one their content does.
        columns: Event column or columns that come along in the stage columns (default: all).
        measures: Output column → SQL over the match's stages, as in {"legs": "count(legs)"}; these replace the stage
            columns. With several patterns the measures of each by its name: {"late": {"legs": "count(legs)"}}.
        outputs: What to give: "matches", "timeouts" (partial matches that ran out of time) and "late" (events that came
            too late, of which a finite input has none), or several of them; then all is in one table, whose shape
            does not depend on the pattern. Default: matches alone, in columns of their own; with several patterns
            of stages "matches", in that table. Of occurrences there are "matches" and "late"; so there are of
            intervals on a stream, which are in such a table in any case, by default with both; in a finite input they
            have matches alone.
        limits: Bounds on what one key may keep open and one event complete.
        as_of: Only events up to this instant count, and time stands there: what may still grow is not emitted. Without
            it the input is complete: every deadline passes and what is still open ends.
        time_zone: Of times without one, `as_of` included (default: the Spark session's; in process UTC).
        nulls: What happens to events without key or time, and to those that end before they start: "error", or "drop".
            They are counted in `report`; without one a warning has the counts, in process only, as Spark finds them
            when it runs.
        report: Filled with counts of events read, dropped and found.
        lateness: Of a stream: how long after the latest event an earlier one may come; what comes later is late. Not
            needed where the time column has a watermark already. Finite input has no late events.
        shards: Of a stream: the parts that its keys are divided into, each with one state. It belongs to the
            checkpoint.

    Returns:
        match_id (128-bit hex), the key columns, match_start, match_end, detected_at (the time of the event or
        deadline that made the match certain; NULL if only the end of the input did), then a column a stage: a struct,
        NULL where the stage is absent, or an array of structs for a loop; or the measures. With `outputs` a row has
        kind ("match", "timeout" or "late") and pattern (its name) in front; the stages are one map from each stage's
        name to its events; and event is the late event. Of intervals there is a column a variable, and no detected_at;
        on a stream there is, and kind is "insertion", "retraction" (of a match that is taken back, in real time) or
        "late".
        Several patterns of occurrences or intervals have pattern in front, and NULL in the columns of others.

    Raises:
        PatternError: the pattern, a condition or a measure is wrong; the message has all problems.
        SchemaError: a column that is named does not exist or has a type that does not serve; an argument is not of the
            kind that it must be. All such faults are in the message.
        EventError: events that cannot be ordered: without key or time, with an ambiguous local time.
        SkipError: a match has no event to skip to, where the skip strategy has error_on_miss.
        ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
        LimitExceeded: a key keeps more open, or an event completes more, than `limits` allows.
    """
    request = request_of(
        pattern,
        key=key,
        time=time,
        start=start,
        end=end,
        type=type,
        kinds=kinds,
        sequence=sequence,
        columns=columns,
        measures=measures,
        outputs=outputs,
        limits=limits,
        as_of=as_of,
        time_zone=time_zone,
        nulls=nulls,
        report=report,
        lateness=lateness,
        shards=shards,
        stream=is_spark(events) and events.isStreaming,
    )
    return cast("Events", _run(events, request))


def plan_of(events: object, request: Request) -> Plan | OccurrencePlan | IntervalPlan:
    """What `detect` would run for these events, of which only the columns count.

    Raises:
        PatternError, SchemaError: as `detect`.
    """
    if is_spark(events):
        if request.intervals is not None:
            from cepheid.hosts.spark.batch.intervals import interval_plans_on_spark

            return interval_plans_on_spark(events, request).each[0]
        if request.occurrences is not None:
            from cepheid.hosts.spark.batch.occurrences import occurrence_plans_on_spark

            return occurrence_plans_on_spark(events, request).each[0]
        from cepheid.hosts.spark.batch.detect import plan_on_spark

        return plan_on_spark(events, request)
    from cepheid.hosts.duckdb.engine import DuckDbEngine
    from cepheid.hosts.in_process.detect import plan_in_process

    engine = DuckDbEngine(time_zone=request.time_zone or "UTC")
    if request.intervals is not None:
        from cepheid.hosts.in_process.intervals import interval_plans

        return interval_plans(arrow_table(events).schema, request, engine).each[0]
    if request.occurrences is not None:
        from cepheid.hosts.in_process.occurrences import occurrence_plans

        return occurrence_plans(arrow_table(events).schema, request, engine).each[0]
    return plan_in_process(arrow_table(events).schema, request, engine)


def request_of(
    pattern: AnyPattern,
    *,
    time: str | EllipsisType | None = ...,
    start: str | None = None,
    end: str | None = None,
    type: str | None = None,  # noqa: A002
    kinds: Mapping[str, str | Sequence[str]] | None = None,
    key: str | Sequence[str] | None = None,
    sequence: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    measures: Measures | None = None,
    outputs: OutputName | Sequence[OutputName] | None = None,
    limits: Limits | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
    report: Report | None = None,
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
    stream: bool = False,
) -> Request:
    """The arguments of `detect`, checked; SchemaError with all that is wrong with them. A `stream` is given some that
    finite events are not.
    """
    faults: list[str] = []
    named = isinstance(pattern, Mapping)
    asked: tuple[Asked, ...] = ()
    occurrences: tuple[AskedOccurrences, ...] = ()
    intervals = None
    of_intervals = {"start": start, "end": end, "type": type, "kinds": kinds}
    of_others = {"sequence": sequence, "measures": measures, "as_of": as_of}
    of_streams = {"outputs": outputs, "lateness": lateness, "shards": None if shards == SHARDS else shards}
    if patterns := _intervals(pattern):
        times, others = ((start, end), of_others) if stream else (None, of_others | of_streams)
        faults += faults_of_intervals(time, times, others, limits)
        intervals = _asked_intervals(patterns, of_intervals, faults)
        time = None if time is ... or not stream else time
        outputs = _of_trees(outputs, "intervals", faults) if stream else None
    else:
        faults += faults_of_others(time, of_intervals)
        time = None if time is ... else time
        if isinstance(pattern, OccurrencePattern) or has_occurrences(pattern):
            outputs = _of_trees(outputs, "occurrences", faults)
            occurrences = _asked_occurrences(pattern, measures, faults)
        else:
            if named and outputs is None:
                outputs = "matches"
            asked = _asked(pattern, measures, faults)
    request = Request(
        asked=asked,
        each_occurrences=occurrences,
        intervals=intervals,
        named=named,
        key=checked_key(key, faults, with_outputs=named or outputs is not None or (intervals is not None and stream)),
        time=None if time is None else checked_name("time", time, faults),
        sequence=() if sequence is None else checked_names("sequence", sequence, faults),
        columns=None if columns is None else checked_names("columns", columns, faults),
        outputs=None if outputs is None else checked_outputs(outputs, faults),
        limits=Limits() if limits is None else checked_limits(limits, faults),
        as_of=None if as_of is None else checked_as_of(as_of, faults),
        time_zone=checked_zone(time_zone, faults),
        nulls=checked_nulls(nulls, faults),
        report=report,
        lateness=None if lateness is None else checked_lateness(lateness, faults),
        shards=checked_shards(shards, faults),
    )
    if time is None and as_of is not None and intervals is None:
        faults.append("as_of needs event times: name the column with time=…")
    if report is not None and not isinstance(report, Report):
        faults.append(f"report: a Report() is expected, got {report!r}")
    if faults:
        raise SchemaError("\n".join(faults))
    return request


def _run(events: object, request: Request) -> object:
    if is_spark(events):
        if events.isStreaming:
            from cepheid.hosts.spark.stream.detect import detect_on_stream

            return detect_on_stream(events, request)
        if request.intervals is not None:
            from cepheid.hosts.spark.batch.intervals import intervals_on_spark

            return intervals_on_spark(events, request)
        if request.occurrences is not None:
            from cepheid.hosts.spark.batch.occurrences import occurrences_on_spark

            return occurrences_on_spark(events, request)
        from cepheid.hosts.spark.batch.detect import detect_on_spark

        return detect_on_spark(events, request)
    from cepheid.hosts.in_process.tables import to_arrow

    table, from_arrow = to_arrow(events)
    if request.intervals is not None:
        from cepheid.hosts.in_process.intervals import detect_intervals

        return from_arrow(detect_intervals(table, request))
    if request.occurrences is not None:
        from cepheid.hosts.in_process.occurrences import detect_occurrences

        return from_arrow(detect_occurrences(table, request))
    from cepheid.hosts.in_process.detect import detect_in_process

    return from_arrow(detect_in_process(table, request))


def is_spark(events: object) -> TypeGuard[DataFrame]:
    """Without importing pyspark: a Spark DataFrame exists only where it is imported already."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(events, module.DataFrame)


def _asked(pattern: object, measures: object, faults: list[str]) -> tuple[Asked, ...]:
    if isinstance(pattern, Mapping):
        named = _named(pattern, Pattern)
        wanted = None if measures is None else measures_of_each(measures, [*pattern], faults)
        return tuple(Asked(one, None if wanted is None else wanted.get(one.name, {})) for one in named)
    if not isinstance(pattern, Pattern):
        raise PatternError(_not_a_pattern(pattern, Pattern))
    return (Asked(pattern, None if measures is None else checked_measures(measures, faults)),)


def has_occurrences(pattern: object) -> bool:
    """Whether several patterns are given, one of them at least of occurrences."""
    return isinstance(pattern, Mapping) and any(isinstance(one, OccurrencePattern) for one in pattern.values())


def _asked_occurrences(pattern: object, measures: object, faults: list[str]) -> tuple[AskedOccurrences, ...]:
    if isinstance(pattern, OccurrencePattern):
        return (AskedOccurrences(pattern, None if measures is None else checked_measures(measures, faults)),)
    assert isinstance(pattern, Mapping)
    wanted = None if measures is None else measures_of_each(measures, [*pattern], faults)
    return tuple(
        AskedOccurrences(one, None if wanted is None else wanted.get(one.name, {}))
        for one in _named(pattern, OccurrencePattern)
    )


def _of_trees(
    outputs: OutputName | Sequence[OutputName] | None, kind: str, faults: list[str]
) -> OutputName | Sequence[OutputName] | None:
    """What of occurrences and of intervals can be asked for: nothing of them runs out of time."""
    if outputs is not None and "timeouts" in checked_outputs(outputs, []):
        faults.append(f"outputs: {kind} have no timeouts; ask for 'matches', 'late' or both")
    return outputs


def _intervals(pattern: object) -> list[IntervalPattern]:
    """The interval patterns that are given; of several that one is makes all be."""
    if isinstance(pattern, IntervalPattern):
        return [pattern]
    if isinstance(pattern, Mapping) and any(isinstance(one, IntervalPattern) for one in pattern.values()):
        return _named(pattern, IntervalPattern)
    return []


def _asked_intervals(
    patterns: Sequence[IntervalPattern], given: Mapping[str, Any], faults: list[str]
) -> AskedIntervals:
    start, end = (checked_name(name, given[name], faults) for name in ("start", "end"))
    type_, kinds = given["type"], given["kinds"]
    if type_ is None:
        if kinds is not None:
            faults.append("kinds: they are those of the column type=…, or stand in the pattern's taxonomy(…)")
        if any(pattern.types is None for pattern in patterns):
            faults.append("type: name the column that holds the types, here or with taxonomy(…) of the pattern")
    elif told := [pattern.name for pattern in patterns if pattern.types is not None]:
        faults.append(f"type: pattern {told[0]!r} has a taxonomy, which names the column; leave type and kinds out")
    else:
        patterns = [pattern.taxonomy(type_, kinds) for pattern in patterns]
    return AskedIntervals(tuple(patterns), start, end)


def _named(patterns: Mapping[object, object], kind: type[P]) -> list[P]:
    """The patterns under the names that they are given."""
    if not patterns:
        raise PatternError("no pattern is given: name one at least, as in {'late': Pattern.begin('departure')}")
    problems, named = [], []
    for name, pattern in patterns.items():
        if not isinstance(name, str) or not name:
            problems.append(Problem(f"a pattern's name is text that is not empty, got {name!r}"))
        elif not isinstance(pattern, kind):
            problems.append(Problem(_not_a_pattern(pattern, kind)).of_pattern(name))
        else:
            named.append(replace(pattern, name=name))
    if problems:
        raise PatternError(problems)
    return named


def _not_a_pattern(given: object, kind: type[P]) -> str:
    if isinstance(given, Occurrence):
        return f"an expression is no pattern yet: make one of it with OccurrencePattern.of(…), got {given!r}"
    if kind is not Pattern:
        what = "intervals" if kind is IntervalPattern else "occurrences"
        return f"where one of several patterns is of {what} all are: an {kind.__name__} is expected, got {given!r}"
    made = "Pattern.begin(…), OccurrencePattern.of(…) or interval_pattern(…)"
    return f"a pattern is made with {made}, or read with read_pattern(path), got {given!r}"


def arrow_table(events: object) -> pa.Table:
    """A table of any kind that is known, but Spark's, as Arrow; else SchemaError."""
    from cepheid.hosts.in_process.tables import to_arrow

    if is_spark(events):
        raise SchemaError("events are a Spark DataFrame, which is not read into this process: use detect, or toArrow()")

    return to_arrow(events)[0]
