"""Counts of the events read and of what was found in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from cepheid.errors import with_noun

MATCHER_COUNTS = (
    "ties",
    "matches",
    "timeouts",
    "dropped_partial_matches",
    "dropped_matches",
    "inconsistent",
    "dropped_facts",
)
"""The counts of every matcher."""

LIVE_COUNTS = (*MATCHER_COUNTS, "late")
"""The counts of a matcher for unbounded input."""

READ_COUNTS = frozenset({"events", "null_keys", "null_times", "null_ids", "reversed", "repeated", "unclosed"})
"""The counts of events read, which matchers of the same events have alike."""

_MATCHES = ("match", "matches")

C = TypeVar("C", bound="ReadCounts")


def counts_of(kind: type[C], values: Mapping[str, int]) -> C:
    """Counts of this kind, from those of the values that it has a field for."""
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})


def in_words(*counted: tuple[int, str, str]) -> str:
    """The counts that are not 0, each with what is counted, as one and as several; empty if all are 0."""
    return " and ".join(with_noun(count, one, plural=several) for count, one, several in counted if count)


def sum_of(each: Sequence[C], once: Collection[str]) -> C:
    """The counts of several matchers of the same events. Those named in `once` are of the events, and equal."""
    names = [field.name for field in fields(each[0])]
    return type(each[0])(
        **{name: getattr(each[0], name) if name in once else sum(getattr(one, name) for one in each) for name in names}
    )


@dataclass(frozen=True)
class Found:
    """The numbers of matches and timeouts, and of what was dropped because of limits (`Limits.on_limit` "drop")."""

    matches: int = 0
    timeouts: int = 0
    dropped_partial_matches: int = 0
    dropped_matches: int = 0
    inconsistent: int = 0
    """Sessions whose events contradict what is known."""
    dropped_facts: int = 0
    """Facts that events say."""


@dataclass(frozen=True)
class ReadCounts:
    """Numbers of events read, of events that a matcher cannot use, and of matches."""

    events: int = 0
    """Events read, up to `as_of`. With `event_id` these are rows: one may open an event and another close it."""
    null_keys: int = 0
    """Events with a NULL in the key, dropped."""
    null_times: int = 0
    """Events with a key but without a time, dropped."""
    matches: int = 0
    dropped_matches: int = 0
    """Matches dropped because of `Limits.max_matches_per_event`."""

    @property
    def unusable(self) -> str:
        """Which events were dropped, as text; empty if none was."""
        return in_words(
            (self.null_keys, "event without key", "events without key"),
            (self.null_times, "event without time", "events without time"),
        )

    @property
    def over_limits(self) -> str:
        """What was dropped because of limits, as text; empty if nothing was."""
        return in_words((self.dropped_matches, *_MATCHES))


@dataclass(frozen=True)
class EventCounts(ReadCounts):
    """ReadCounts, and the further counts of patterns of stages or of occurrences."""

    ties: int = 0
    """Events with the same key, time and sequence as another event, so that their content orders them."""
    timeouts: int = 0
    """Partial matches that ran out of time, where timeouts are among the outputs."""
    dropped_partial_matches: int = 0
    """Open partial matches dropped because of `Limits.max_partial_matches`."""
    inconsistent: int = 0
    """Sessions whose events contradict what is known, for patterns with knowledge."""
    dropped_facts: int = 0
    """What events say (facts) that was not taken because of `Limits.max_facts` or `Limits.max_same_as`."""

    @property
    def over_limits(self) -> str:
        return in_words(
            (self.dropped_partial_matches, "partial match", "partial matches"),
            (self.dropped_matches, *_MATCHES),
            (self.dropped_facts, "fact of an event", "facts of events"),
        )


@dataclass(frozen=True)
class MatcherCounts(EventCounts):
    """What a matcher has seen so far, and what is open."""

    late: int = 0
    """Events whose time was up to the watermark when they came; they are not matched."""
    waiting: int = 0
    """Events that wait for the watermark."""
    open_partial_matches: int = 0
    withheld: int = 0
    """Matches that have all their events but are withheld: an earlier match may come that the skip strategy prefers,
    the loop of `longest` may go on, or the time of a last `not_followed_by` is not over.
    """


@dataclass(frozen=True)
class IntervalCounts(ReadCounts):
    """ReadCounts, and the number of events that are no intervals."""

    reversed: int = 0
    """Events with key and times whose end is before their start, dropped."""
    unclosed: int = 0
    """With `event_id`: opened events that no row has closed in time, dropped."""
    null_ids: int = 0
    """With `event_id`: rows without an id, dropped."""
    repeated: int = 0
    """With `event_id`: further rows of an id, and rows that close no open event, dropped."""

    @property
    def unusable(self) -> str:
        by_id = in_words(
            (self.reversed, "event that ends before it starts", "events that end before they start"),
            (self.unclosed, "event that no row closes", "events that no row closes"),
            (self.null_ids, "row without an id", "rows without an id"),
            (self.repeated, "row whose id is repeated or not open", "rows whose ids are repeated or not open"),
        )
        return " and ".join(filter(None, [super().unusable, by_id]))


@dataclass(frozen=True)
class IntervalMatcherCounts(IntervalCounts):
    """What an interval matcher has seen so far, and what is open. `matches` are those emitted and not retracted."""

    late: int = 0
    """Events that came later than the lateness allows; they are not matched."""
    open_matches: int = 0
    """Matches that are not final."""
    held: int = 0
    """Events in memory."""
