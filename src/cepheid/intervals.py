"""Interval patterns in unbounded events, in any order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

from cepheid.detect import arrow_table
from cepheid.errors import PatternError, SchemaError
from cepheid.lang.argument_advice import FORMER
from cepheid.lang.arguments import brief, shown
from cepheid.lang.consistency import Consistency, given_consistency
from cepheid.lang.duration import parse_duration
from cepheid.lang.intervals.pattern import IntervalPattern, interval_pattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import checked_snapshot, time_of
from cepheid.requests.changes import faults_of_changes
from cepheid.requests.request import Nulls, Resolution
from cepheid.requests.request_of import request_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.matchers.counts import IntervalMatcherCounts
    from cepheid.matchers.intervals.service import IntervalServiceMatcher
    from cepheid.plan.intervals.plan import IntervalPlan

MOST_BUFFERED = 100_000_000
"""The most events of a lateness; each takes eight bytes."""

__all__ = [
    "IntervalMatcher",
    "IntervalPattern",
    "interval_pattern",
    "interval_text",
]


@known_calls
class IntervalMatcher:
    """Finds interval patterns in unbounded events, in any order. It has no system clock and no threads: all its state
    is in its snapshots.

    Its clock is the latest end of an event that was not late. An event is late, and not matched, if its start (with
    `late_by="end"` its end) is more than `lateness` before the clock. With `late_by="start"` the lateness must cover
    the longest duration.
    """

    @known_arguments(FORMER)
    def __init__(
        self,
        pattern: IntervalPattern | str | Mapping[str, IntervalPattern | str],
        schema: object,
        *,
        time: Sequence[str],
        event_id: str | None = None,
        open_for: str | timedelta | None = None,
        changes: str | None = None,
        lateness: str | timedelta | None,
        late_by: Literal["start", "end"] = "start",
        key: str | Sequence[str] | None = None,
        sequence: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | Mapping[str, Mapping[str, str]] | None = None,
        limits: Limits | None = None,
        time_zone: str | None = None,
        time_resolution: Resolution | None = None,
        nulls: Nulls = "error",
        frequencies: Mapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            pattern: What to find, or its query text; its consistency says when matches are emitted. Several patterns
                are given by name, as in `detect`. Each has its own consistency.
            schema: The events' columns: a pyarrow schema, or a table of any kind that `process` takes.
            time: The columns in which events start and end, as in ("start", "end").
            lateness: How far before the clock an event may be without being late. As "500 events": so many of the
                latest events are not late; an event is if more than 500 that were not late start (with `late_by="end"`
                end) after it. None: no event is late, and nothing is final or forgotten before `finish`.
            late_by: The time of an event that is compared with the clock.
            event_id: The column that identifies an event. Then a row whose end is NULL opens an event, and a later row
                with the same id closes it. An opening row is late by its start, a closing row by its end.
            open_for: With `event_id`: how long an event may be open. A longer one is an error or, with nulls="drop",
                dropped and counted, and its matches are retracted. None: any time.
            changes: With `event_id`: the column that says what a row does. "insertion" inserts, closes or revises: the
                id of an event that has ended, with another end, gives the event this end. "retraction" withdraws the
                event. "completion" is another word for "insertion". A revision is late if the earlier of both ends is,
                a withdrawal if the event itself would be.
            frequencies: Type → how often it occurs, in any unit. The order of joins depends on it.

        The other arguments and the errors are as in `detect`.

        Raises:
            PatternError: also if no match would be certain before `finish`, because an event of a negation may come at
                any time.
        """
        import pyarrow as pa

        from cepheid.families.family import ServiceOptions
        from cepheid.hosts.in_process.service import TableMatcher

        request = request_of(
            _patterns(pattern),
            time=time,
            event_id=event_id,
            key=key,
            sequence=sequence,
            columns=columns,
            measures=measures,
            limits=limits,
            time_zone=time_zone,
            time_resolution=time_resolution,
            nulls=nulls,
            endless=True,
        )
        known = schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema
        if late_by not in ("start", "end"):
            raise SchemaError(f"late_by is 'start' or 'end', got {late_by!r}")
        buffer = _number_of_events(lateness)
        length = None if lateness is None or buffer is not None else _length(lateness)
        if buffer is not None and event_id is not None:
            what = "a number of events is not possible with event_id, as an event arrives in several rows"
            raise SchemaError(f"lateness: {what}; give a length of time")
        if open_for is not None and event_id is None:
            raise SchemaError("open_for: events are open only where rows open them: name their id with event_id=…")
        if event_id is not None and limits is not None and limits.on_limit == "drop":
            raise SchemaError("limits: on_limit='drop' is not possible with event_id; a limit is an error there")
        options = ServiceOptions(
            known,
            length,
            late_by,
            buffer=buffer,
            open_for=None if open_for is None else _length(open_for, "open_for", or_zero=False),
            changes=None if changes is None else _changes(changes, event_id, known),
            drops=nulls == "drop",
            frequencies=None if frequencies is None else _checked_frequencies(frequencies),
            time_resolution=request.time_resolution,
        )
        self._host = TableMatcher(request, known, options)
        self._frequencies = frequencies

    def process(self, events: object) -> pa.Table:
        """The changes that the events make: rows with `kind` insertion, retraction or late. A retraction has the
        match_id of the insertion that it retracts. With `event_id` also completion: an end that was not known when the
        match with this match_id was inserted.

        The events of a call are processed in the order of their ends, not of the rows: none is late because of how the
        table is sorted.

        Raises:
            SchemaError: a column is missing or has another type.
            EventError: an event has no key or lacks a time, or ends before it starts (`nulls="error"`).
            ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
            LimitExceeded: as in `detect`.
            MatcherFailed: an earlier call failed in the middle. Only `restore` may be called.

        One event that cannot be used makes the call an error. Without `event_id` nothing has changed then, and the
        matcher goes on with the next call. With `event_id` the rows before it are processed, so that only `restore`
        goes on.
        """
        return self._host.process(arrow_table(events))

    def switch(self, consistency: str | Consistency, *, pattern: str | None = None) -> pa.Table:
        """Changes when matches are emitted; returns the rows of those that the new consistency lets be emitted at
        once. Of several patterns, `pattern` names one.

        Raises:
            PatternError: no match would be certain before `finish`, or no pattern has this name.
        """
        return self._host.switch(given_consistency(consistency), pattern)

    def advance_time(self, time: datetime | str) -> pa.Table:
        """Moves the clock to `time`, as if an event had ended then; returns the rows that this makes certain."""
        return self._host.advance_time(time_of("time", time))

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows. Later events are late."""
        return self._host.finish()

    @property
    def counts(self) -> IntervalMatcherCounts:
        """Counts of the events so far, of what was found, and of what is open. Of several patterns, these are sums over
        the patterns, except the counts of events read and the number of events held.
        """
        return cast("IntervalMatcherCounts", self._host.counts)

    def explain(self) -> str:
        """The plans as text: conditions, and the order of joins."""
        from cepheid.plan.intervals.explain import explain_intervals

        matchers = cast("tuple[IntervalServiceMatcher, ...]", self._host.matchers)
        return "\n\n".join(
            explain_intervals(one.plan_now, self._frequencies, warnings=one.warnings) for one in matchers
        )

    def diagram(self, *, pattern: str | None = None) -> str:
        """The joins as a Mermaid flowchart. Of several patterns, `pattern` names one."""
        from cepheid.plan.intervals.explain import join_diagram

        plan = self._host.plans.each[self._host.number_of(pattern)]
        return join_diagram(cast("IntervalPlan", plan), self._frequencies)

    def snapshot(self) -> bytes:
        """The complete state (held events, open matches, clock, counts), for `restore` in a matcher made with the same
        arguments.
        """
        return self._host.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continues where the writer of the snapshot stopped; SnapshotError if it had another pattern."""
        self._host.restore(checked_snapshot(snapshot))


def _checked_frequencies(given: object) -> Mapping[str, float]:
    """How often each type occurs; SchemaError if these are no numbers above zero by type."""
    if not isinstance(given, Mapping):
        raise SchemaError(f"frequencies: a number by type is expected, as in {{'login': 100}}, got {brief(given)}")
    wrong = {name: one for name, one in given.items() if not (isinstance(one, int | float) and 0 < one < math.inf)}
    if wrong:
        shown = ", ".join(f"{name!r}: {brief(one)}" for name, one in wrong.items())
        raise SchemaError(f"frequencies: numbers above zero are expected, got {shown}")
    return given


def _patterns(given: object) -> IntervalPattern | dict[str, IntervalPattern]:
    """The pattern, or the patterns by name; each may be given as query text."""
    return {name: _one(one) for name, one in given.items()} if isinstance(given, Mapping) else _one(given)


def _one(pattern: object) -> IntervalPattern:
    """The pattern, which may be given as query text."""
    if isinstance(pattern, str):
        return interval_pattern(pattern)
    if isinstance(pattern, Pattern | OccurrencePattern):
        kind = "stages" if isinstance(pattern, Pattern) else "occurrences"
        raise PatternError(f"pattern {pattern.name!r} is a pattern of {kind}: use a Matcher")
    if not isinstance(pattern, IntervalPattern):
        raise PatternError(f"an IntervalMatcher finds an interval pattern, or its query text, got {shown(pattern)}")
    return pattern


def _changes(changes: object, event_id: str | None, columns: pa.Schema) -> str:
    """The column of changes."""
    for fault in faults_of_changes(changes, event_id, columns):
        raise SchemaError(fault)
    return str(changes)


def _number_of_events(lateness: object) -> int | None:
    """The number in a text such as "500 events"; None if it is something else."""
    found = re.fullmatch(r"\s*(\d[\d_,]*)\s*events?\s*", lateness, re.IGNORECASE) if isinstance(lateness, str) else None
    if found is None:
        return None
    count = int(found[1].replace(",", "").replace("_", ""))
    if not 0 <= count <= MOST_BUFFERED:
        raise SchemaError(f"lateness: a number of events is at most {MOST_BUFFERED:,}, got {shown(lateness)}")
    return count


def _length(length: str | timedelta, argument: str = "lateness", *, or_zero: bool = True) -> timedelta:
    try:
        return parse_duration(length, or_zero=or_zero)
    except PatternError as error:
        raise SchemaError(f"{argument}: {error}") from None
