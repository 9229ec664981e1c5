"""What a host is asked for: the arguments of `detect`, checked and in one value; and what it reports back."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cepheid.errors import CepheidWarning, SchemaError
from cepheid.events.batch import Schema
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.build import AskedOccurrences, build_occurrence_plans
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.plan_set import Plans, build_plans
from cepheid.plan.stages.build import Asked
from cepheid.plan.stages.plan import OutputName
from cepheid.plan.taxonomy import taxonomy_warnings

ERROR, COUNTS = "_error", "_counts"
"""Columns of a Spark worker's rows beside the matcher's: what it tells besides."""

MATCHER_COUNTS = ("ties", "matches", "timeouts", "dropped_partial_matches", "dropped_matches")
"""The fields of EventCounts that a matcher knows."""

OPENED = "opened"
"""How many more partial matches are open than before."""

STREAM_COUNTS = (*MATCHER_COUNTS, "late", OPENED)
"""What is counted of each batch of a stream."""

STREAM_TIMES = ("matching_us", "state_us")
"""Microseconds of all shards together: in matchers, and for what they keep (not Spark's commit)."""

SHARDS = 16
"""Of a pattern on a stream: a call of one costs some milliseconds, and those of a partition run one after the other."""
MOST_SHARDS = 65_536

MOST_LISTED = 1000
"""Open partial matches of a key: a set may stand for more than there is room for."""

Nulls: TypeAlias = Literal["error", "drop"]
"""What happens to events without a key or a time: an error, or they are dropped and counted."""


@dataclass(frozen=True)
class ReadCounts:
    """How many events were read, what became of those that a matcher cannot use, and how many matches came of all."""

    events: int = 0
    """Events read, up to `as_of`."""
    null_keys: int = 0
    """Events with a NULL in the key, dropped."""
    null_times: int = 0
    """Events with a key but without a time, dropped."""
    matches: int = 0
    dropped_matches: int = 0
    """Matches dropped because of `Limits.max_matches_per_event`."""

    @property
    def unusable(self) -> str:
        """Which events were dropped, in words; empty if none was."""
        if not (self.null_keys or self.null_times):
            return ""
        return f"{self.null_keys:,} events without key and {self.null_times:,} without time"

    @property
    def over_limits(self) -> str:
        """What was dropped because of limits, in words; empty if nothing was."""
        return f"{self.dropped_matches:,} matches" if self.dropped_matches else ""


@dataclass(frozen=True)
class EventCounts(ReadCounts):
    """The same, and what else is counted of patterns of stages or of occurrences."""

    ties: int = 0
    """Events that agree with another of their key in time and sequence, so that their content orders them."""
    timeouts: int = 0
    """Partial matches that ran out of time, where timeouts are among the outputs."""
    dropped_partial_matches: int = 0
    """Open partial matches dropped because of `Limits.max_partial_matches`."""

    @property
    def over_limits(self) -> str:
        if not (self.dropped_partial_matches or self.dropped_matches):
            return ""
        return f"{self.dropped_partial_matches:,} partial matches and {self.dropped_matches:,} matches"


@dataclass(frozen=True)
class MatcherCounts(EventCounts):
    """What a matcher has seen so far, and what is open."""

    late: int = 0
    """Events that came after time had passed theirs; they are not matched."""
    waiting: int = 0
    """Events that wait for time to pass them."""
    open_partial_matches: int = 0
    withheld: int = 0
    """Matches that have all their events and wait: for an earlier one that a skip strategy may prefer, for the loop of
    `longest` to end, or for the time of a last `not_followed_by` to pass.
    """


class Report:
    """Filled by `detect`: counts of what it read, dropped and found.

    In process the counts are there when `detect` returns. On Spark work starts with an action on the result: `counts`
    waits for it.
    """

    def __init__(self) -> None:
        self._read: Callable[[], ReadCounts] | None = None

    def set(self, read: Callable[[], ReadCounts]) -> None:
        """For hosts: how to read the counts."""
        self._read = read

    @property
    def counts(self) -> ReadCounts:
        """An EventCounts, or of interval patterns an IntervalCounts."""
        if self._read is None:
            raise RuntimeError("this report was not given to detect(…, report=…) yet")
        return self._read()


class AskedIntervals(NamedTuple):
    """Interval patterns, and the columns of the events' times."""

    patterns: tuple[IntervalPattern, ...]
    """Each with its taxonomy."""
    start: str
    end: str


@dataclass(frozen=True)
class Request:
    """One detection."""

    asked: tuple[Asked, ...]
    """Patterns of stages; empty where occurrences or `intervals` are asked for."""
    key: tuple[str, ...]
    time: str | None
    """None: processing order, or interval patterns, whose events have two times; on a stream that of them which its
    watermark is of.
    """
    named: bool = False
    """Whether the patterns were given by name; then `outputs` are, too, but of intervals."""
    sequence: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    outputs: tuple[OutputName, ...] | None = None
    """None: matches alone, in columns of their own."""
    limits: Limits = field(default_factory=Limits)
    as_of: datetime | None = None
    """One without a zone is read as times without one are."""
    time_zone: str | None = None
    """How times without a zone are read; None: the host's default."""
    nulls: Nulls = "error"
    report: Report | None = None
    lateness: timedelta | None = None
    """None: the stream has a watermark of its own, if it is one."""
    shards: int = SHARDS
    """Into how many parts a stream's keys are divided."""
    each_occurrences: tuple[AskedOccurrences, ...] = ()
    """The patterns of occurrences that are asked for."""
    intervals: AskedIntervals | None = None

    @property
    def names(self) -> list[str]:
        """Those of all patterns."""
        if self.intervals is not None:
            return [pattern.name for pattern in self.intervals.patterns]
        return [asked.pattern.name for asked in self.each_occurrences or self.asked]

    @property
    def occurrences(self) -> AskedOccurrences | None:
        """The pattern of occurrences, where there is one, or the first."""
        return self.each_occurrences[0] if self.each_occurrences else None

    @property
    def pattern(self) -> Pattern:
        """The pattern, where there is one."""
        ((pattern, _),) = self.asked
        return pattern

    @property
    def measures(self) -> Mapping[str, str] | None:
        """Those of the pattern, where there is one."""
        ((_, measures),) = self.asked
        return measures


def planned(request: Request, schema: Schema, engine: SqlEngine) -> Plans:
    """The request's patterns as plans; raises as `build_plans` does, and warns."""
    plans = build_plans(
        request.asked,
        schema,
        engine,
        named=request.named,
        columns=request.columns,
        outputs=request.outputs,
        limits=request.limits,
    )
    for pattern, _ in request.asked:
        for warning in taxonomy_warnings(pattern):
            warn(f"pattern {pattern.name!r}: {warning}" if request.named else warning)
    return plans


def planned_occurrences(request: Request, schema: Schema, engine: SqlEngine) -> OccurrencePlans:
    """The request's patterns of occurrences as plans; raises as `build_occurrence_plans` does."""
    return build_occurrence_plans(
        request.each_occurrences,
        schema,
        engine,
        named=request.named,
        columns=request.columns,
        outputs=request.outputs,
        limits=request.limits,
    )


def warn_of(plans: OccurrencePlans) -> None:
    """What works, but perhaps not as meant."""
    for plan in plans.each:
        for warning in plan.warnings:
            warn(f"pattern {plan.pattern.name!r}: {warning}" if plans.named else warning)


def instant_of(as_of: datetime, zone: str, *, argument: str = "as_of") -> datetime:
    """`as_of` in UTC; without a zone of its own it is a local time of `zone`. Messages call it `argument`.

    Raises:
        SchemaError: there are two such instants or none.
    """
    local = as_of if as_of.tzinfo is not None else as_of.replace(tzinfo=_zone(zone, argument))
    try:
        if local is as_of:
            return as_of.astimezone(UTC)
        early, late = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        raise SchemaError(f"{argument}: {local} is before the year 1 or behind 9999 in UTC") from None
    if early == late:
        return early
    what = "does not exist" if early.astimezone(local.tzinfo).replace(tzinfo=None) != as_of else "is ambiguous"
    raise SchemaError(f"{argument}: the local time {as_of} {what} in {zone}. Give it with its offset, as in '{late}'")


def _zone(name: str, argument: str) -> tzinfo:
    """Spark's zones may be offsets too, such as +05:30."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        pass
    try:
        offset = datetime.strptime(name.removeprefix("GMT").removeprefix("UTC"), "%z").tzinfo
    except ValueError as error:
        raise SchemaError(f"{argument}: the time zone {name!r} is not known here. Give it with its offset") from error
    assert offset is not None
    return offset


def checked_most(most: object) -> int:
    """How many open partial matches of a key are to be listed.

    Raises:
        SchemaError: it is none.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise SchemaError(f"most: a whole number from 1 is expected, got {most!r}")
    return most


def repeated_names(names: Sequence[str]) -> list[str]:
    """What is wrong with events that have several columns of one name."""
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [f"two columns of the events are named {name!r}: rename one" for name in repeated]


def warn(message: str) -> None:
    """Warns, at the caller's line: the nearest one outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CepheidWarning, stacklevel=level)
