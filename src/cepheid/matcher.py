"""Matcher: a pattern found in events that go on coming, in a service of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cepheid.detect import arrow_table, request_of
from cepheid.errors import PatternError, SchemaError, SnapshotError
from cepheid.lang.duration import parse_duration
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import Consistency
from cepheid.lang.occurrences.expression import OccurrencePattern, Policy
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import OutputName
from cepheid.requests.arguments import time_of
from cepheid.requests.request import MOST_LISTED, MatcherCounts, Nulls, checked_most

if TYPE_CHECKING:
    import pyarrow as pa


class Matcher:
    """Finds one pattern in events that go on coming, without Spark. It has no clock and no threads: events and time
    are what it is told, and all its state is in its snapshots.

    Events come in any order of keys. How they come in time says `lateness`:

    - None: events wait until `advance_time` passes them; what comes behind the time told is late.
    - a length: time follows the events, so far behind the latest; what comes later than that is late.
    - "0 seconds": events come in order. With a `sequence` each is matched when it comes, without one when the first
      with a later time does, as until then others of the same time may come.

    Late events are not matched; they are counted and, with "late" among `outputs`, given back.

    With a `consistency` rows say what changes, in the column `kind`: "insertion", "retraction" or "late". A retraction
    has the match_id of the insertion that it takes back. The consistency says when a match is told:

    - "conservative": when no event that is not late can change it.
    - "realtime": as soon as it holds for the events that came, as if no others came up to the latest of them; it is
      taken back when an event comes that lets it hold no more. Behind each call the matches told and not taken back are
      those that `detect` finds in all events that were not late, with `as_of` the latest of their times, or the time
      told; behind `finish`, without.
    """

    def __init__(
        self,
        pattern: Pattern | OccurrencePattern,
        schema: object,
        *,
        time: str | None,
        key: str | Sequence[str] | None = None,
        sequence: str | Sequence[str] | None = None,
        lateness: timedelta | str | None = None,
        columns: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | None = None,
        outputs: OutputName | Sequence[OutputName] | None = None,
        limits: Limits | None = None,
        time_zone: str | None = None,
        nulls: Nulls = "error",
        consistency: Consistency | str | None = None,
    ) -> None:
        """
        Args:
            pattern: What to find. Of occurrences the recent ones, if the pattern has no policy.
            schema: The events' columns: a pyarrow schema, or a table of any kind that `process` takes, of which only
                the columns count.
            lateness, consistency: See above. With a consistency `outputs` are by default matches and late events.

        The others are as in `detect`, and so are the errors.
        """
        import pyarrow as pa

        if isinstance(pattern, Mapping):
            raise PatternError("a Matcher finds one pattern: make one for each of several")
        if isinstance(pattern, IntervalPattern):
            raise PatternError(f"pattern {pattern.name!r} is one of intervals, which an IntervalMatcher finds")
        from cepheid.hosts.in_process.service import TableMatcher

        told = None if consistency is None else _consistency(consistency, time)
        request = request_of(
            pattern,
            time=time,
            key=key,
            sequence=sequence,
            columns=columns,
            measures=measures,
            outputs=outputs if outputs is not None or told is None else ("matches", "late"),
            limits=limits,
            time_zone=time_zone,
            nulls=nulls,
        )
        if request.occurrences is not None and request.occurrences.pattern.chosen is None:
            recent = request.occurrences.pattern.policy(Policy.RECENT)  # of events that go on coming, all are too many
            request = replace(request, each_occurrences=(request.occurrences._replace(pattern=recent),))
        columns_of = schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema
        self._host = TableMatcher(request, columns_of, _length(lateness, time), told)

    def process(self, events: object) -> pa.Table:
        """The rows that these events make certain, as `detect` gives them; key by key, each key's in the order of
        emission. `events` is a table as `detect` takes in process.

        Raises:
            SchemaError: a column is missing or has another type.
            EventError: an event without key or time (`nulls="error"`).
            ConditionError: a condition fails on an event, as SQL fails in ANSI mode.
            SkipError, LimitExceeded: as `detect`.
            MatcherFailed: one of these, or a ConditionError of a condition across events, a function or a measure, was
                raised before: what the matcher would find would not be right. It takes `restore` alone.
        """
        return self._host.process(arrow_table(events))

    def advance_time(self, time: datetime | str) -> pa.Table:
        """The rows that are certain once no event up to `time` comes any more: deadlines up to it have passed. Without
        a zone it is a local time of `time_zone`. Time that was passed before does not pass again.
        """
        return self._host.advance_time(time_of("time", time))

    def finish(self) -> pa.Table:
        """The rows that are certain as no event comes any more: every deadline passes and what is open ends. Events
        that come behind it are late.
        """
        return self._host.finish()

    def switch(self, consistency: Consistency | str) -> pa.Table:
        """Changes when matches are told, and gives the rows that this makes. To real time, all matches that hold for
        now are told. From it, what was told stays, and is still taken back if it proves wrong.

        Raises:
            SchemaError: the matcher was made without a consistency.
        """
        return self._host.switch(_consistency(consistency))

    def partial_matches(self, *, most: int = MOST_LISTED) -> pa.Table:
        """The open partial matches, key by key in order of their start: the pattern's name, the key, the last stage
        that took an event, match_start, the deadline (NULL where none is set) and the events so far, as `stages` has
        them in rows with `outputs`. Events that wait for time to pass them are in none, and matches that are found and
        wait are none any more. Nothing changes by it.

        Args:
            most: Of each key, list no more than so many: those that started last. A few events may make very many.

        Raises:
            PatternError: the pattern is one of occurrences, which has no stages.
            SchemaError: a column of the key has the name of one of these columns.
        """
        return self._host.partial_matches(checked_most(most))

    def snapshot(self) -> bytes:
        """All its state: what waits, open partial matches with their events, the time and the counts."""
        return self._host.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot; it was made with the same arguments, but limits,
        lateness, and measures that need no other columns.

        Raises:
            SnapshotError: the bytes are damaged, or of another pattern, key, columns or outputs; the message says what
                differs.
        """
        if not isinstance(snapshot, bytes | bytearray | memoryview):
            raise SnapshotError(f"a snapshot is bytes, as snapshot() gives them, got {type(snapshot).__name__}")
        self._host.restore(bytes(snapshot))

    @property
    def counts(self) -> MatcherCounts:
        """What it has seen so far, and what is open."""
        return self._host.counts


def _consistency(given: Consistency | str, time: str | None = "") -> Consistency:
    known = {it.value: it for it in (Consistency.CONSERVATIVE, Consistency.REALTIME)}
    if time is None:
        raise SchemaError("consistency needs event times: name the column with time=…")
    found = known.get(given.value if isinstance(given, Consistency) else given)
    if found is None:
        raise SchemaError(f"consistency is {' or '.join(map(repr, known))}, got {given!r}")
    return found


def _length(lateness: timedelta | str | None, time: str | None) -> timedelta | None:
    if lateness is None:
        return None
    if time is None:
        raise SchemaError("lateness needs event times: name the column with time=…")
    try:
        return parse_duration(lateness, or_zero=True)
    except PatternError as error:
        raise SchemaError(f"lateness: {error}") from None
