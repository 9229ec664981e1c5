"""One call of a shard of a stream: from its previous state, new events and the watermark to rows and the next state.

All keys of a shard are in one matcher.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import SnapshotError, in_pattern
from cepheid.events.batch import Batch
from cepheid.hosts.shards.arrow_stream import events_of, to_passing_stream, to_stream
from cepheid.hosts.shards.log import (
    MatcherCache,
    ReadyMatcher,
    catch_up,
    first_head,
    next_head,
    restored,
    snapshot_of,
)
from cepheid.hosts.shards.store import PUT_BACK, Entry, Head, Store, check_format
from cepheid.hosts.spark.batch.worker import output_schema
from cepheid.hosts.spark.stream.ledger import from_ledger, ledger_bytes
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.hosts.spark.stream.placement import NUMBERED_OTHERWISE, PLACEMENT
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.matchers.protocols import LiveMatcher, PatternRunner
from cepheid.matchers.snapshot import AnotherMatcher, differences
from cepheid.matchers.watermark import Reached
from cepheid.output.times import given_rows
from cepheid.requests.counts import OPENED, STREAM_TIMES

ANEW = (
    "To continue from the checkpoint, call detect with the former arguments; otherwise give the query a new checkpoint"
)
MORE_SHARDS = "it has more shards or patterns"
RESCALED = (
    "A query that is stopped can get another number of shards and go on: cepheid.streams.rebalance(checkpoint, "
    "shards=…), or cepheid stream rebalance CHECKPOINT --shards N"
)


class Matching(NamedTuple):
    """What the shards of a pattern need to run."""

    runner: bytes
    """The pattern's runner, as `unpacked_runner` takes it."""
    columns: pa.Schema
    """The columns of the events, as the matcher takes them."""
    made_for: str
    """What the checkpoint must have been written for, as JSON."""
    of_matches: bool
    """Whether the events are matches of another pattern in the same query."""
    named: bool
    """Whether the pattern was given by name: errors then name it."""
    asked: str
    """What the plan is made from (`packed_asked`). It is stored for `partial_matches`, which reads checkpoints."""
    drains: bool = False
    """Whether the pattern starts nothing more, and goes on with what is open."""


class Shard(NamedTuple):
    """The shard that is called."""

    store: Store
    cache: MatcherCache
    """This worker's matchers of earlier calls."""
    place: tuple[str, int]
    """The query, and the shard's number in it."""
    is_standby: bool = False
    """Whether it has copies of keys. Late events and ties are then those of the original shards, which report them."""


class Stepped(NamedTuple):
    """What a call of a shard returns."""

    rows: bytes | None
    timer: int | None
    """The watermark, in milliseconds, at which there is something to do."""
    former_timer: int | None
    """The timer of the previous state."""
    counts: dict[str, int]
    times: dict[str, int]
    events: int
    state_bytes: int
    open: int
    """The number of open partial matches."""


_OF_ORIGINALS = ("late", "ties")
"""The counts that standbys leave to the original shards."""

_FEW_ENTRIES = 8
"""A new snapshot costs more than these many entries of a log: a worker that has had the shard before replays only the
entries that it has not seen, and after a snapshot it restores the whole shard.
"""

CACHE = MatcherCache()
"""This worker's matchers of earlier calls."""


def step(matching: Matching, shard: Shard, values: Sequence[bytes], watermark: int) -> Stepped:
    """Advances time to the watermark (milliseconds), then processes the events: those with an earlier time are late.

    The order matters: if the events came first, whether one is late would depend on when its shard was last called.
    Events that are matches of another pattern do come first: they arrive as soon as the watermark is past their times.

    Raises:
        ConditionError, LimitExceeded, SkipError: as `detect`.
        SnapshotError: the state is damaged, or belongs to another query.
    """
    with in_pattern(unpacked_runner(matching.runner).plan.pattern.name, named=matching.named):
        return _step(matching, shard, values, watermark)


def _step(matching: Matching, shard: Shard, values: Sequence[bytes], watermark: int) -> Stepped:
    runner, store = unpacked_runner(matching.runner), shard.store
    began = perf_counter_ns()
    head = store.head()
    ready = _matcher(matching, shard, head)
    matcher = ready.matcher
    called = perf_counter_ns()
    rows = [*ready.rows]
    if not matching.of_matches:
        rows.append(_pass_time(matcher, watermark))
    passed, events = matcher.now, events_of(values)
    if events is not None:
        late = matcher.process(events)  # a pattern whose keys have copies emits nothing else at once
        rows.append(late.slice(0, 0) if shard.is_standby else late)
    if matching.of_matches:
        rows.append(_pass_time(matcher, watermark))
    timer, open_ = timer_of(matcher), matcher.open
    made_for = json.loads(matching.made_for)
    net = given_rows(runner.plan, matcher.net(pa.concat_tables(rows)), made_for["time_zone"])
    given = _as_value(net, output_schema(net.schema))
    matched = perf_counter_ns()
    entry = None if events is None else Entry.of(Reached(passed), _as_one(values, events))
    state_bytes = _store(matching, shard, head, ready, entry)
    in_state = called - began + perf_counter_ns() - matched
    found = {name: count - ready.counts[name] for name, count in matcher.counts.items()}
    if shard.is_standby:
        found |= dict.fromkeys(_OF_ORIGINALS, 0)
    return Stepped(
        rows=given,
        timer=timer,
        former_timer=None if head is None else head.timer,
        counts=found | {OPENED: open_ - (0 if head is None else head.open)},
        times=dict(zip(STREAM_TIMES, ((matched - called) // 1000, in_state // 1000), strict=True)),
        events=0 if events is None else len(events),
        state_bytes=state_bytes,
        open=open_,
    )


def _store(matching: Matching, shard: Shard, head: Head | None, ready: ReadyMatcher, entry: Entry | None) -> int:
    """Stores the state after a call; returns its size in bytes, without the head."""
    store, matcher = shard.store, ready.matcher
    if matcher.is_idle:
        if head is not None:
            store.clear(head)
        return 0
    reached, timer, size = Reached(matcher.now), timer_of(matcher), ready.snapshot_bytes
    continued = head if ready.continues_log else None
    following = next_head(continued, entry, reached, matcher.open, timer, few=_FEW_ENTRIES)
    if following is not None:
        store.append(following, entry)
    else:
        snapshot = snapshot_of(matcher, json.loads(matching.made_for))
        size = len(snapshot)
        following = first_head(size, reached, matcher.open, timer)
        store.write(following, snapshot, head)
    shard.cache.put(shard.place, following, matcher, size)
    return size + following.log_bytes


def check_ledger(matching: Matching, known: bytes | None) -> bytes:
    """The ledger to store: what the checkpoint is written for, and what its plan is made from.

    Raises:
        SnapshotError: the checkpoint belongs to another query, or has an unknown format.
    """
    made_for = json.loads(matching.made_for)
    with in_pattern(unpacked_runner(matching.runner).plan.pattern.name, named=matching.named):
        if known is not None and (changed := differences(from_ledger(known)[0], made_for)):
            raise of_another_query(changed)
    return ledger_bytes(made_for, matching.asked)


def of_another_query(changed: Sequence[str]) -> SnapshotError:
    """The error of a checkpoint from which this query cannot continue, with what has changed."""
    others = [text for text in changed if not text.startswith(PLACEMENT)]
    changed = [*others, *[NUMBERED_OTHERWISE] * (len(others) < len(changed))]
    advice = f"{ANEW}. {RESCALED}" if any(text.startswith(("shards ", MORE_SHARDS)) for text in changed) else ANEW
    return SnapshotError(f"the checkpoint belongs to another query: {'; '.join(changed)}. {advice}")


def _matcher(matching: Matching, shard: Shard, head: Head | None) -> ReadyMatcher:
    """The matcher in the shard's state. If the pattern drains since this call, nothing in the stored log is repeated by
    a matcher that starts nothing: a new snapshot replaces it.
    """
    runner = unpacked_runner(matching.runner)
    ready = _unchanged(runner.matcher()) if head is None else _continued(matching, shard, head, runner)
    if not matching.drains or ready.matcher.drains:
        return ready
    ready.matcher.drain(waiting=True)
    return ready._replace(continues_log=False)


def _continued(matching: Matching, shard: Shard, head: Head, runner: PatternRunner) -> ReadyMatcher:
    """The matcher in the stored state."""
    check_format(head.format)
    try:
        known = shard.cache.take(shard.place, runner)
        if known is not None and catch_up(known, shard.store, head, matching.columns):
            return _unchanged(known.matcher)._replace(snapshot_bytes=known.snapshot_bytes)
        return restored(runner, shard.store, head, json.loads(matching.made_for), matching.columns)
    except AnotherMatcher as error:
        raise of_another_query(error.changed) from error
    except SnapshotError as error:
        raise SnapshotError(f"the checkpoint's state does not fit: {error}. {PUT_BACK}") from error


def _unchanged(matcher: LiveMatcher) -> ReadyMatcher:
    return ReadyMatcher(matcher, continues_log=True, counts=matcher.counts)


def _pass_time(matcher: LiveMatcher, watermark: int) -> pa.Table:
    """Advances time; returns the rows. At Spark's first watermark, 1970, no time has passed, even for older events."""
    return matcher.advance_time(watermark * 1000 - 1 if watermark > 0 else NO_TIME)


def _as_one(values: Sequence[bytes], events: Batch) -> bytes:
    return values[0] if len(values) == 1 else to_stream(events.data)


def timer_of(matcher: LiveMatcher) -> int | None:
    """The first watermark after the next due time, in milliseconds; at least 1, as Spark's first watermark is 1970."""
    return None if matcher.due == FOREVER else max(1, matcher.due // 1000 + 1)


def _as_value(rows: pa.Table, schema: pa.Schema) -> bytes | None:
    if not rows.num_rows:
        return None
    nothing = [pa.nulls(rows.num_rows, field.type) for field in schema if field.name not in rows.schema.names]
    return to_passing_stream(pa.Table.from_arrays([*nothing, *rows.columns], schema=schema))
