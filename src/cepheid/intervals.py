"""Interval patterns in events that go on coming, in order or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cepheid.detect import arrow_table, request_of
from cepheid.errors import PatternError, SchemaError
from cepheid.events.batch import microseconds
from cepheid.lang.arguments import shown
from cepheid.lang.duration import microseconds as length_of
from cepheid.lang.duration import parse_duration
from cepheid.lang.intervals.parser import interval_pattern
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.intervals.values import Consistency, End, consistency_named
from cepheid.lang.occurrences.expression import OccurrencePattern
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.intervals.explain import explain_intervals, join_diagram
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import time_of
from cepheid.requests.request import Nulls, instant_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.requests.counts import IntervalMatcherCounts

__all__ = [
    "IntervalMatcher",
    "IntervalPattern",
    "interval_pattern",
    "interval_text",
]


class IntervalMatcher:
    """Finds one interval pattern in events that go on coming, in any order. It has no clock and no threads: all its
    state is in its snapshots.

    The clock is the latest end of an event that was not late. An event is late, and not matched, if its start (with
    `lateness="end"` its end) is more than `delay` behind the clock; with lateness by start the delay must cover the
    longest duration.
    """

    def __init__(
        self,
        pattern: IntervalPattern | str,
        schema: object,
        *,
        start: str,
        end: str,
        type: str | None = None,  # noqa: A002
        delay: str | timedelta | None,
        lateness: str = "start",
        key: str | Sequence[str] | None = None,
        kinds: Mapping[str, str | Sequence[str]] | None = None,
        columns: str | Sequence[str] | None = None,
        limits: Limits | None = None,
        time_zone: str | None = None,
        nulls: Nulls = "error",
        frequencies: Mapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            pattern: What to find; its consistency says when matches are told.
            schema: The events' columns: a pyarrow schema, or a table of any kind that `process` takes.
            delay: How far behind the clock an event may come; None: as far as it likes, and nothing is final, nor
                forgotten, before `finish`.
            lateness: "start" or "end": which time of an event must not be further behind.
            frequencies: For types how many of their events there are, in any unit: what the order of joins rests on.

        The others are as in `detect`, and so are the errors.

        Raises:
            PatternError: also where no match would be certain before `finish`, as nothing bounds when an event of a
                negation may come.
        """
        import pyarrow as pa

        from cepheid.hosts.in_process.intervals import IntervalTableMatcher

        request = request_of(
            _one(pattern),
            start=start,
            end=end,
            type=type,
            key=key,
            kinds=kinds,
            columns=columns,
            limits=limits,
            time_zone=time_zone,
            nulls=nulls,
        )
        known = schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema
        if lateness not in ("start", "end"):
            raise SchemaError(f"lateness is 'start' or 'end', got {lateness!r}")
        length = None if delay is None else length_of(_delay(delay))
        self._zone = time_zone or "UTC"
        self._host = IntervalTableMatcher(request, known, delay=length, lateness=End(lateness), frequencies=frequencies)
        self._frequencies = frequencies

    def process(self, events: object) -> pa.Table:
        """What the events change: rows with `kind` insertion, retraction or late. A retraction has the match_id of the
        insertion that it takes back.

        The events of a call come in the order of their ends, whatever that of their rows: none is late because of how
        the table is sorted.

        Raises:
            SchemaError: a column is missing or has another type.
            EventError: an event without key or times, or that ends before it starts (`nulls="error"`).
            ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
            LimitExceeded: as `detect`.
            MatcherFailed: one of these was raised half-way before. The matcher takes `restore` alone.
        """
        return self._host.process(arrow_table(events))

    def switch(self, consistency: str | Consistency) -> pa.Table:
        """Changes when matches are told; the rows that this makes.

        Raises:
            PatternError: no match would be certain before `finish`.
        """
        return self._host.switch(consistency_named(consistency) if isinstance(consistency, str) else consistency)

    def advance_time(self, time: datetime | str) -> pa.Table:
        """The rows that are certain once the clock is at `time`, as if an event had ended then."""
        instant = instant_of(time_of("time", time), self._zone, argument="time")
        return self._host.advance_time(microseconds(instant))

    def finish(self) -> pa.Table:
        """The rows that are left as no event comes any more. Events that come behind it are late."""
        return self._host.finish()

    @property
    def counts(self) -> IntervalMatcherCounts:
        """What was seen so far, and what is open."""
        return self._host.counts

    def explain(self) -> str:
        """The plan as text: conditions, and the order in which events are looked for."""
        return explain_intervals(self._host.plan_now, self._frequencies, self._host.growth)

    def diagram(self) -> str:
        """The joins as a Mermaid flowchart."""
        return join_diagram(self._host.plan, self._frequencies)

    def snapshot(self) -> bytes:
        """All that is held and open, to `restore` in a matcher made with the same arguments."""
        return self._host.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot; SnapshotError if it is of another pattern."""
        self._host.restore(snapshot)


def _one(pattern: object) -> IntervalPattern:
    """The pattern, or that of the query text."""
    if isinstance(pattern, str):
        return interval_pattern(pattern)
    if isinstance(pattern, Mapping):
        raise PatternError("an IntervalMatcher finds one interval pattern: make one for each of several")
    if isinstance(pattern, Pattern | OccurrencePattern):
        kind = "stages" if isinstance(pattern, Pattern) else "occurrences"
        raise PatternError(f"pattern {pattern.name!r} is one of {kind}, which a Matcher finds")
    if not isinstance(pattern, IntervalPattern):
        raise PatternError(f"an IntervalMatcher finds an interval pattern, or its query text, got {shown(pattern)}")
    return pattern


def _delay(delay: str | timedelta) -> timedelta:
    try:
        return parse_duration(delay, or_zero=True)
    except PatternError as error:
        raise SchemaError(f"delay: {error}") from None
