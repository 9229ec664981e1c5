"""A call of a shard, on its matcher: from new events and the watermark to rows and to what is to be stored.

It needs no access to the stored state, so the worker that Spark has called need not be the one that has the matcher.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa

from cepheid.hosts.shards.arrow_stream import events_of, joined, to_passing_stream
from cepheid.hosts.shards.log import ReadyMatcher, counts_of, first_head, next_head, open_of_each, snapshot_of
from cepheid.hosts.shards.store import Entry, Head
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.matchers.protocols import LiveMatcher, ShardMatcher
from cepheid.matchers.watermark import Reached
from cepheid.output.common import nullable
from cepheid.output.times import given_rows

_OF_ORIGINALS = ("late", "ties")
"""The counts that standbys leave to the original shards."""

_LONG_LOG = 4
"""How many times as large as the snapshot a log may become, about. A longer log needs fewer snapshots, but a restart
takes longer: it matches the events of the log again.
"""


class Call(NamedTuple):
    """What a shard is called with."""

    values: Sequence[bytes]
    """The packed events."""
    watermark: int
    """Milliseconds."""
    made_for: str
    """What the checkpoint must have been written for, as JSON."""
    of_matches: bool
    """Whether the events are matches of another pattern in the same query."""
    is_standby: bool
    """Whether the shard has copies of keys. Late events and ties are then those of the original shards, which report
    them.
    """


class NewEntry(NamedTuple):
    """An entry of the log without its events, which the worker that stores it has."""

    passed: int
    digest: bytes

    def of(self, values: Sequence[bytes]) -> Entry:
        """The entry; `values` are those of the call."""
        return Entry(self.passed, _as_one(values), self.digest)


class Made(NamedTuple):
    """What a call makes of one pattern."""

    rows: bytes | None
    counts: dict[str, int]
    open: int
    """The number of open partial matches."""


class Advanced(NamedTuple):
    """What comes of a call."""

    each: tuple[Made, ...]
    """For each pattern of the shard."""
    head: Head | None
    """The new head; None if nothing is open and nothing waits, so that nothing is to be stored."""
    entry: NewEntry | None
    """What is to be appended to the log."""
    snapshot: bytes | None
    """What replaces the stored snapshot and its log."""
    snapshot_bytes: int
    """The size of the stored snapshot after the call."""
    timer: int | None
    """The watermark, in milliseconds, at which there is something to do."""
    events: int
    microseconds: int
    """The time that it took, without making what is stored."""


def advance(ready: ReadyMatcher[ShardMatcher], head: Head | None, call: Call) -> Advanced:
    """Advances time to the watermark, then processes the events: those with an earlier time are late. `head` is the
    stored one.

    The order matters: if the events came first, whether one is late would depend on when its shard was last called.
    Events that are matches of another pattern do come first: they arrive as soon as the watermark is past their times.

    Raises:
        ConditionError, LimitExceeded, SkipError: as `detect`.
    """
    began, matcher, made_for = perf_counter_ns(), ready.matcher, json.loads(call.made_for)
    rows = [*ready.rows]
    if not call.of_matches:
        rows.append(_pass_time(matcher, call.watermark))
    passed, events = matcher.now, events_of(call.values)
    if events is not None:
        late = matcher.process(events)  # a pattern whose keys have copies emits nothing else at once
        rows.append(late.slice(0, 0) if call.is_standby else late)
    if call.of_matches:
        rows.append(_pass_time(matcher, call.watermark))
    own = matcher.of_each(pa.concat_tables(rows))
    given = [_given(one, found, made_for["time_zone"]) for one, found in zip(matcher.each, own, strict=True)]
    took = perf_counter_ns() - began
    entry = None if events is None else Entry.of(Reached(passed), _as_one(call.values))
    each = zip(matcher.each, given, ready.counts, strict=True)
    made = tuple(_made(one, value, before, is_standby=call.is_standby) for one, value, before in each)
    timer = timer_of(matcher)
    following, snapshot = _state_after(ready, head, entry, made_for)
    return Advanced(
        each=made,
        head=following,
        entry=None if entry is None or snapshot is not None else NewEntry(entry.passed, entry.digest),
        snapshot=snapshot,
        snapshot_bytes=ready.snapshot_bytes if snapshot is None else len(snapshot),
        timer=timer,
        events=0 if events is None else len(events),
        microseconds=took // 1000,
    )


def _made(matcher: LiveMatcher, rows: bytes | None, before: Mapping[str, int], *, is_standby: bool) -> Made:
    """What the call has made of the matcher's pattern; `before` has the counts before it."""
    found = {name: count - before[name] for name, count in counts_of(matcher).items()}
    if is_standby:
        found |= dict.fromkeys(_OF_ORIGINALS, 0)
    return Made(rows, found, matcher.open)


def _given(matcher: LiveMatcher, rows: pa.Table, zone: str) -> bytes | None:
    """The rows of the matcher's pattern as users get them, in an Arrow stream; None if there are no rows."""
    return _as_value(given_rows(matcher.pattern.plan, matcher.net(rows), zone))


def timer_of(matcher: ShardMatcher) -> int | None:
    """The first watermark after the next due time, in milliseconds; at least 1, as Spark's first watermark is 1970."""
    return None if matcher.due == FOREVER else max(1, matcher.due // 1000 + 1)


def _state_after(
    ready: ReadyMatcher[ShardMatcher], head: Head | None, entry: Entry | None, made_for: Mapping[str, object]
) -> tuple[Head | None, bytes | None]:
    """The head after the call, and the new snapshot if one is due."""
    matcher = ready.matcher
    if matcher.is_idle:
        return None, None
    reached, timer, snapshot = Reached(matcher.now), timer_of(matcher), None
    following = next_head(head if ready.continues_log else None, entry, reached, matcher.open, timer)
    if following is None:
        snapshot = snapshot_of(matcher, dict(made_for))
        following = first_head(len(snapshot), reached, matcher.open, timer, long=_LONG_LOG)
    return following._replace(open_of_each=open_of_each(matcher)), snapshot


def _pass_time(matcher: ShardMatcher, watermark: int) -> pa.Table:
    """Advances time; returns the rows. At Spark's first watermark, 1970, no time has passed, even for older events."""
    return matcher.advance_time(watermark * 1000 - 1 if watermark > 0 else NO_TIME)


def _as_one(values: Sequence[bytes]) -> bytes:
    return joined([value for value in values if value])


def _as_value(rows: pa.Table) -> bytes | None:
    if not rows.num_rows:
        return None
    return to_passing_stream(pa.Table.from_arrays(rows.columns, schema=nullable(rows.schema)))
