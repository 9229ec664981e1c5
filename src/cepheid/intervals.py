"""Interval patterns: found in a table of events, or in events that go on coming, in order or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cepheid.arguments import time_of
from cepheid.detect import arrow_table, is_spark
from cepheid.errors import PatternError, SchemaError
from cepheid.events import microseconds
from cepheid.hosts.request import Nulls, instant_of
from cepheid.lang.duration import microseconds as length_of
from cepheid.lang.duration import parse_duration
from cepheid.lang.interval import IntervalPattern
from cepheid.lang.interval_text import interval_pattern, interval_text
from cepheid.lang.interval_values import Consistency, End, consistency_named
from cepheid.plan.interval_order import explain_intervals, join_diagram
from cepheid.plan.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.hosts.interval_request import IntervalCounts, IntervalRequest

__all__ = [
    "IntervalMatcher",
    "IntervalPattern",
    "detect_intervals",
    "interval_pattern",
    "interval_text",
]


def detect_intervals(
    events: object,
    pattern: IntervalPattern | str,
    *,
    start: str,
    end: str,
    type: str,  # noqa: A002 - what it is called everywhere
    key: str | Sequence[str] | None = None,
    kinds: Mapping[str, str | Sequence[str]] | None = None,
    columns: str | Sequence[str] | None = None,
    limits: Limits | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
) -> Any:
    """All matches of an interval pattern, as the kind of table that the events are: match_id, the key, match_start,
    match_end and a column per variable; in process in order of (match_end, match_start).


    Args:
        events: A Spark DataFrame that is no stream, a pandas, polars or pyarrow table, or anything that speaks Arrow.
        pattern: The pattern, or its query text.
        start: The column in which an event starts.
        end: The column in which it ends; an instant ends where it starts.
        type: The column that names an event's type.
        key: Columns; events of different keys have nothing to do with each other.
        kinds: Types and what they are kinds of: an event of a type is one of all that it is a kind of.
        columns: The event columns that come along; all by default.
        limits: max_matches_per_event.
        time_zone: How times without a zone are read; by default in that of the Spark session, in process in UTC.
        nulls: What is done about events without key or times, and about those that end before they start: "error", or
            "drop".

    Raises:
        PatternError, SchemaError: the pattern, the names or the types are wrong; all problems at once.
        EventError, ConditionError, LimitExceeded: an event cannot be processed, a condition fails, a limit is reached.
    """
    request = _request(
        pattern,
        start,
        end,
        type,
        key=key,
        kinds=kinds,
        columns=columns,
        limits=limits,
        time_zone=time_zone,
        nulls=nulls,
    )
    if is_spark(events):
        from cepheid.hosts.interval_on_spark import intervals_on_spark

        return intervals_on_spark(events, request)
    from cepheid.hosts.interval_tables import detect_in_table
    from cepheid.hosts.tables import to_arrow

    table, back = to_arrow(events)
    found, _ = detect_in_table(table, request)
    return back(found)


class IntervalMatcher:
    """Finds one interval pattern in events that go on coming, in any order. It has no clock and no threads: all its
    state is in its snapshots.

    The clock is the latest end of an accepted event. An event is late, and not matched, if its start (with
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
        type: str,  # noqa: A002
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
            delay: How far behind the clock an event may come; None: as far as it likes, and nothing is final before
                `finish`.
            lateness: "start" or "end": which time of an event must not be further behind.
            frequencies: For types how many of their events there are, in any unit: what the order of joins rests on.

        The others are as in `detect_intervals`, and so are the errors.
        """
        import pyarrow as pa

        from cepheid.hosts.interval_tables import IntervalTableMatcher

        request = _request(
            pattern,
            start,
            end,
            type,
            key=key,
            kinds=kinds,
            columns=columns,
            limits=limits,
            time_zone=time_zone,
            nulls=nulls,
            frequencies=frequencies,
        )
        known = schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema
        if lateness not in ("start", "end"):
            raise SchemaError(f"lateness is 'start' or 'end', got {lateness!r}")
        length = None if delay is None else length_of(_delay(delay))
        self._zone = time_zone or "UTC"
        self._host = IntervalTableMatcher(request, known, delay=length, lateness=End(lateness))
        self._frequencies = frequencies

    def process(self, events: object) -> pa.Table:
        """What the events, in the order in which they come, change: rows with `kind` insertion, retraction or late. A
        retraction has the match_id of the insertion that it takes back.
        """
        return self._host.process(arrow_table(events))

    def switch(self, consistency: str | Consistency) -> pa.Table:
        """Changes when matches are told; the rows that this makes."""
        return self._host.switch(consistency_named(consistency) if isinstance(consistency, str) else consistency)

    def advance_time(self, time: datetime | str) -> pa.Table:
        """The rows that are certain once the clock is at `time`, as if an event had ended then."""
        instant = instant_of(time_of("time", time), self._zone, argument="time")
        return self._host.advance_time(microseconds(instant))

    def finish(self) -> pa.Table:
        """The rows that are left: no event comes any more."""
        return self._host.finish()

    @property
    def counts(self) -> IntervalCounts:
        """What was seen so far, and what is open."""
        return self._host.counts

    def explain(self) -> str:
        """The plan as text: conditions, and the order in which events are looked for."""
        return explain_intervals(self._host.plan, self._frequencies)

    def diagram(self) -> str:
        """The joins as a Mermaid flowchart."""
        return join_diagram(self._host.plan, self._frequencies)

    def snapshot(self) -> bytes:
        """All that is held and open, to `restore` in a matcher made with the same arguments."""
        return self._host.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot; SnapshotError if it is of another pattern."""
        self._host.restore(snapshot)


def _delay(delay: str | timedelta) -> timedelta:
    try:
        return parse_duration(delay, or_zero=True)
    except PatternError as error:
        raise SchemaError(f"delay: {error}") from None


def _request(
    pattern: IntervalPattern | str,
    start: str,
    end: str,
    type_: str,
    *,
    key: str | Sequence[str] | None,
    kinds: Mapping[str, str | Sequence[str]] | None,
    columns: str | Sequence[str] | None,
    limits: Limits | None,
    time_zone: str | None,
    nulls: Nulls,
    frequencies: Mapping[str, float] | None = None,
) -> IntervalRequest:
    from cepheid.hosts.interval_request import IntervalRequest

    if nulls not in ("error", "drop"):
        raise SchemaError(f"nulls is 'error' or 'drop', got {nulls!r}")
    return IntervalRequest(
        interval_pattern(pattern) if isinstance(pattern, str) else pattern,
        start,
        end,
        type_,
        key=_names(key),
        kinds=kinds or {},
        columns=None if columns is None else _names(columns),
        limits=limits or Limits(),
        time_zone=time_zone,
        nulls=nulls,
        frequencies=frequencies,
    )


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)
