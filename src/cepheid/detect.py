"""detect: find a pattern in events, wherever they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeGuard, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cepheid.errors import PatternError, SchemaError
from cepheid.hosts.request import Nulls, Report, Request
from cepheid.lang.pattern import Pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Events = TypeVar("Events")


def detect(
    events: Events,
    pattern: Pattern,
    *,
    key: str | Sequence[str] = (),
    time: str,
    sequence: str | None = None,
    columns: Sequence[str] | None = None,
    measures: Mapping[str, str] | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
    report: Report | None = None,
) -> Events:
    """The matches of `pattern` in `events`: a table of the same kind, with one row a match.

    Args:
        events: A Spark DataFrame, or a table of pandas, polars, pyarrow, DuckDB or anything that speaks Arrow's C
            stream interface.
        pattern: What to find.
        key: Column or columns; each key's events are a sequence of their own. None: all events are one.
        time: The column of event times. Times without a zone are read in `time_zone`.
        sequence: A column that orders events of equal time; without one their content does.
        columns: Event columns that come along in the stage columns (default: all).
        measures: Output column → SQL over the match's stages, as in {"legs": "count(legs)"}; these replace the stage
            columns.
        as_of: Only events up to this instant count, and time stands there: what may still grow is not emitted. Without
            it the input is complete: every deadline passes and what is still open ends.
        time_zone: Of times without one (default: the Spark session's; in process UTC).
        nulls: What happens to events without key or time: "error", or "drop" (they are counted in `report`).
        report: Filled with counts of events read, dropped and found.

    Returns:
        match_id (128-bit hex), the key columns, match_start, match_end, detected_at (the time of the event or
        deadline that made the match certain; NULL if only the end of the input did), then a column a stage: a struct,
        NULL where the stage is absent, or an array of structs for a loop; or the measures.

    Raises:
        PatternError: the pattern, a condition or a measure is wrong; the message has all problems.
        SchemaError: a column that is named does not exist or has a type that does not serve.
        EventError: events that cannot be ordered: without key or time, with an ambiguous local time.
        ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
    """
    request = Request(
        pattern=_checked(pattern),
        key=(key,) if isinstance(key, str) else tuple(key),
        time=time,
        sequence=sequence,
        columns=None if columns is None else tuple(columns),
        measures=None if measures is None else dict(measures),
        time_zone=_checked_zone(time_zone),
        nulls=_checked_nulls(nulls),
        report=report or Report(),
    )
    if as_of is not None:
        request = replace(request, as_of=_instant(as_of, time_zone))
    return cast("Events", _run(events, request))


def _run(events: object, request: Request) -> object:
    if _is_spark(events):
        from cepheid.hosts.spark_batch import detect_on_spark

        return detect_on_spark(events, request)
    from cepheid.hosts.in_process import detect_in_process
    from cepheid.hosts.tables import to_arrow

    table, from_arrow = to_arrow(events)
    return from_arrow(detect_in_process(table, request))


def _is_spark(events: object) -> TypeGuard[DataFrame]:
    """Without importing pyspark: a Spark DataFrame exists only where it is imported already."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(events, module.DataFrame)


def _checked(pattern: Pattern) -> Pattern:
    if not isinstance(pattern, Pattern):
        raise PatternError(f"a pattern is made with Pattern.begin(…) or read with read_pattern(path), got {pattern!r}")
    return pattern


def _checked_zone(time_zone: str | None) -> str | None:
    if time_zone is not None:
        try:
            ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise SchemaError(
                f"time_zone: {time_zone!r} is not known; use a name such as 'Europe/Berlin' or 'UTC'"
            ) from error
    return time_zone


def _checked_nulls(nulls: Nulls) -> Nulls:
    if nulls not in get_args(Nulls):
        raise SchemaError(f"nulls: {nulls!r} is not one of {', '.join(map(repr, get_args(Nulls)))}")
    return nulls


def _instant(as_of: datetime | str, time_zone: str | None) -> datetime:
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of)
        except ValueError as error:
            raise SchemaError(f"as_of: {as_of!r} is not a time; write it as '2026-01-31 12:00:00'") from error
    if as_of.tzinfo is None:
        as_of = as_of.replace(tzinfo=ZoneInfo(time_zone or "UTC"))
    return as_of.astimezone(UTC)
