"""Matcher: finds a pattern in unbounded events, in the user's own service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from cepheid.detect import arrow_table
from cepheid.errors import PatternError, SchemaError
from cepheid.lang.argument_advice import FORMER
from cepheid.lang.consistency import Consistency
from cepheid.lang.duration import parse_duration
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.counts import MatcherCounts
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import checked_snapshot, time_of
from cepheid.requests.arrival import ARRIVAL, Arrival
from cepheid.requests.request import MOST_LISTED, Nulls, Resolution, checked_most
from cepheid.requests.request_of import request_of

if TYPE_CHECKING:
    import pyarrow as pa


@known_calls
class Matcher:
    """Finds one pattern in unbounded events, without Spark. It has no clock and no threads: the caller passes events
    and time, and all its state is in its snapshots.

    Events come in any order of keys. `lateness` says in which order of time they come:

    - None: events wait until `advance_time` moves time past them; an event that comes after that is late.
    - a length: time is this much before the latest event; an event before that time is late.
    - "0 seconds": events come in order. With a `sequence` each is matched when it comes; without one, when the first
      event with a later time comes, as others of the same time may come until then.

    With `time=cepheid.ARRIVAL` the time of an event is that of its arrival, which `process(…, at=…)` gives or else this
    machine's clock; where the clock goes back, time stands. No event is late. The events of one call arrive together,
    in the order of `sequence` or, without one, of their rows. The column `arrived_at` of the events has their times.

    Late events are not matched; they are counted and, with "late" among `outputs`, returned.

    With a `consistency`, rows are changes, named in the column `kind`: "insertion", "retraction" or "late". A
    retraction has the match_id of the insertion that it retracts. The consistency says when a match is emitted:

    - "conservative": when only late events could change it.
    - "realtime": as soon as it holds for the events so far, as if no others came up to the latest of them; it is
      retracted if a later call brings an event with which it does not hold. After each call, the matches emitted and
      not retracted are those that `detect` finds in all events that were not late. `as_of` is then the latest of their
      times, or the time of `advance_time` if that is later; after `finish` there is no `as_of`.
    """

    @known_arguments(FORMER)
    def __init__(
        self,
        pattern: Pattern | OccurrencePattern,
        schema: object,
        *,
        time: str | Arrival | None,
        key: str | Sequence[str] | None = None,
        sequence: str | Sequence[str] | None = None,
        lateness: timedelta | str | None = None,
        columns: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | None = None,
        outputs: OutputName | Sequence[OutputName] | None = None,
        rows_per: RowsPer = "match",
        limits: Limits | None = None,
        time_zone: str | None = None,
        time_resolution: Resolution | None = None,
        nulls: Nulls = "error",
        consistency: Consistency | str | None = None,
    ) -> None:
        """
        Args:
            pattern: What to find. A pattern of occurrences without a policy gets the policy RECENT.
            schema: The events' columns: a pyarrow schema, or any table that `process` takes, whose rows are ignored.
            lateness, consistency: See above. With a consistency, `outputs` are by default matches and late events.

        The other arguments and the errors are as in `detect`.
        """
        import pyarrow as pa

        if isinstance(pattern, Mapping):
            raise PatternError("a Matcher finds one pattern: make one for each of several")
        if isinstance(pattern, IntervalPattern):
            raise PatternError(f"pattern {pattern.name!r} is a pattern of intervals: use an IntervalMatcher")
        from cepheid.families.family import ServiceOptions
        from cepheid.hosts.in_process.service import TableMatcher

        changes = None if consistency is None else _consistency(consistency, time)
        request = request_of(
            pattern,
            time=time,
            key=key,
            sequence=sequence,
            columns=columns,
            measures=measures,
            outputs=outputs if outputs is not None or changes is None else ("matches", "late"),
            rows_per=rows_per,
            limits=limits,
            time_zone=time_zone,
            time_resolution=time_resolution,
            nulls=nulls,
        )
        if request.in_row_order:
            raise SchemaError("sequence: ROW_ORDER is for whole tables; a matcher gets events in calls. Name a column")
        if changes is not None and "no_match" in (request.outputs or ()):
            raise SchemaError("outputs: a matcher with a consistency has no no_match, as what ends may come back")
        asked = request.only
        endless = asked._replace(pattern=request.family.endless(asked.pattern))
        columns_of = schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema
        length = _length(lateness, time)
        allowed = timedelta(0) if time is None or time is ARRIVAL else length
        options = ServiceOptions(columns_of, allowed, consistency=changes, time_resolution=request.time_resolution)
        self._host = TableMatcher(replace(request, patterns=(endless,)), columns_of, options)

    def process(self, events: object, *, at: datetime | str | None = None) -> pa.Table:
        """The rows that these events make certain, with the columns of `detect`. Rows come key by key; the rows of a
        key are in the order of emission. `events` is any table that `detect` takes in process. `at` is the time of
        their arrival, for a matcher with `time=cepheid.ARRIVAL`; without it, this machine's clock gives the time.

        Raises:
            SchemaError: a column is missing or has another type.
            EventError: an event has no key or no time (`nulls="error"`), or `at` is before the time reached.
            ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
            SkipError, LimitExceeded: as in `detect`.
            MatcherFailed: an earlier call failed in the middle: with a SkipError or LimitExceeded, or with a
                ConditionError in a condition across events, a function or a measure. Only `restore` may be called.
        """
        return self._host.process(arrow_table(events), None if at is None else time_of("at", at))

    def advance_time(self, time: datetime | str | None = None) -> pa.Table:
        """Advances time to `time`: events up to it are late from now on, and deadlines up to it expire. Returns the
        rows that this makes certain. Without a zone it is a local time of `time_zone`. An earlier time than before has
        no effect. With times of arrival it may be left out: then it is the time of this machine's clock.

        Raises:
            EventError: with times of arrival, `time` is earlier than the time reached.
        """
        return self._host.advance_time(None if time is None else time_of("time", time))

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows: every deadline expires, and open partial matches end. Later
        events are late.
        """
        return self._host.finish()

    def switch(self, consistency: Consistency | str) -> pa.Table:
        """Changes when matches are emitted, and returns the rows that result. On a change to real time, all matches
        that hold now are emitted. On a change from it, emitted matches stay, and are still retracted if they prove
        wrong.

        Raises:
            SchemaError: the matcher was made without a consistency.
        """
        return self._host.switch(_consistency(consistency))

    def partial_matches(self, *, most: int = MOST_LISTED) -> pa.Table:
        """The open partial matches, key by key in order of their start: the pattern's name, the key, the last stage
        that took an event, match_start, the deadline (NULL if none is set) and the events so far, as in `stages` of
        rows with `outputs`. Events still waiting for time to advance are not part of any partial match. Complete
        matches that are being withheld are not listed. The call changes nothing.

        Args:
            most: The maximum number of partial matches to list per key: those that started last. A few events may make
                very many.

        Raises:
            PatternError: the pattern is a pattern of occurrences, which has no stages.
            SchemaError: a key column has the name of one of these columns.
        """
        return self._host.partial_matches(checked_most(most))

    def explain(self) -> str:
        """What the pattern looks for and how it runs, as text: what `cepheid explain --events` prints."""
        return self._host.explain()

    def snapshot(self) -> bytes:
        """The whole state: waiting events, open partial matches with their events, the time and the counts."""
        return self._host.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continues where the writer of the snapshot stopped. Both matchers must be made with the same arguments; only
        limits, lateness, and measures that need no other columns may differ.

        Raises:
            SnapshotError: the bytes are damaged, or were written for another pattern, key, columns or outputs; the
                message says what differs.
        """
        self._host.restore(checked_snapshot(snapshot))

    @property
    def counts(self) -> MatcherCounts:
        """Counts of the events so far, of what was found, and of what is open."""
        return cast("MatcherCounts", self._host.counts)


def _consistency(given: Consistency | str, time: str | Arrival | None = "") -> Consistency:
    known = {it.value: it for it in (Consistency.CONSERVATIVE, Consistency.REALTIME)}
    if time is ARRIVAL:
        raise SchemaError("consistency: with time=ARRIVAL events come in order, so that no match changes; leave it out")
    if time is None:
        raise SchemaError("consistency needs event times: name the column with time=…")
    found = known.get(given.value if isinstance(given, Consistency) else given)
    if found is None:
        raise SchemaError(f"consistency is {' or '.join(map(repr, known))}, got {given!r}")
    return found


def _length(lateness: timedelta | str | None, time: str | Arrival | None) -> timedelta | None:
    if lateness is None:
        return None
    if time is ARRIVAL:
        raise SchemaError("lateness: with time=ARRIVAL no event is late; leave it out")
    if time is None:
        raise SchemaError("lateness needs event times: name the column with time=…")
    try:
        return parse_duration(lateness, or_zero=True)
    except PatternError as error:
        raise SchemaError(f"lateness: {error}") from None
