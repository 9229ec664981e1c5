"""One call of a shard of a stream: from its previous state, new events and the watermark to rows and the next state.

All keys of a shard are in one matcher.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa
from pyspark.core.files import SparkFiles

from cepheid.errors import SnapshotError, in_pattern
from cepheid.hosts.shards.log import CachedMatcher, MatcherCache, ReadyMatcher, catch_up, counts_of_each, restored
from cepheid.hosts.shards.store import PUT_BACK, Head, Store, check_format
from cepheid.hosts.spark.stream.advance import Advanced, Call, Made, advance
from cepheid.hosts.spark.stream.keepers import Keepers, Place
from cepheid.hosts.spark.stream.ledger import from_ledger, ledger_bytes
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.hosts.spark.stream.placement import NUMBERED_OTHERWISE, PLACEMENT, STANDBYS, TOGETHER
from cepheid.matchers.protocols import ShardMatcher
from cepheid.matchers.snapshot import AnotherMatcher, differences
from cepheid.requests.counts import STREAM_TIMES

ANEW = (
    "To continue from the checkpoint, call detect with the former arguments; otherwise give the query a new checkpoint"
)
MORE_SHARDS = "it has more shards or patterns"
RESCALED = (
    "A query that is stopped can get another number of shards and go on: cepheid.streams.rebalance(checkpoint, "
    "shards=…), or cepheid stream rebalance CHECKPOINT --shards N"
)


SESSION_ZONE, DIVIDED_BY = "session.time_zone", "divided by"
"""Keys of `made_for` that only streams have. The second one is there only if values extend the key."""
OF_QUERY = ("patterns", "supervised", "shards", SESSION_ZONE, DIVIDED_BY, PLACEMENT, STANDBYS, TOGETHER)
"""The keys of `made_for` that are about all patterns of the query."""


class Matching(NamedTuple):
    """What the shards of a pattern need to run, or those of several patterns that share them."""

    runner: bytes
    """The runner of the shards, as `unpacked_runner` takes it."""
    columns: pa.Schema
    """The columns of the events, as the matcher takes them."""
    made_for: str
    """What the checkpoint must have been written for, as JSON."""
    of_matches: bool
    """Whether the events are matches of another pattern in the same query."""
    named: bool
    """Whether patterns were given by name: errors then name them."""
    asked: str
    """What the plan is made from (`packed_asked`). It is stored for `partial_matches`, which reads checkpoints."""
    drains: bool = False
    """Whether the pattern starts nothing more, and goes on with what is open."""


class Stepped(NamedTuple):
    """What a call of a shard returns."""

    each: tuple[Made, ...]
    """For each pattern of the shard."""
    timer: int | None
    """The watermark, in milliseconds, at which there is something to do."""
    former_timer: int | None
    """The timer of the previous state."""
    times: dict[str, int]
    events: int
    state_bytes: int


class Shard(NamedTuple):
    """The shard that is called."""

    store: Store
    cache: MatcherCache
    """This worker's matchers of earlier calls."""
    place: Place
    """The query, and the shard's number in it."""
    is_standby: bool = False
    """As in Call."""
    keepers: Keepers[Call, Advanced] | None = None
    """The workers of this executor; None to restore what is not in the cache."""


def done_for_another(cache: MatcherCache, place: Place, head: Head, call: Call) -> Advanced | None:
    """What comes of a call that another worker asks for; None if the matcher is not here, if it has not reached this
    head, or if the call fails: the worker that asked then restores the shard, and finds and reports the same failure.

    While this worker itself has work, it does none for others. So the shards do not gather in few workers.
    """
    if not cache.at_work.acquire(blocking=False):
        return None
    try:
        known = cache.take_at(place, head)
        return None if known is None else _advance(cache, place, known.ready, head, call)
    except Exception:  # noqa: BLE001 - see above
        return None
    finally:
        cache.at_work.release()


CACHE = MatcherCache()
"""This worker's matchers of earlier calls."""
KEEPERS = Keepers(partial(done_for_another, CACHE), lambda: Path(SparkFiles.getRootDirectory()) / "cepheid-workers")
"""The workers of this executor."""


def step(matching: Matching, shard: Shard, values: Sequence[bytes], watermark: int) -> Stepped:
    """Calls the shard with these events, at this watermark (milliseconds); see `advance`.

    Raises:
        ConditionError, LimitExceeded, SkipError: as `detect`.
        SnapshotError: the state is damaged, or belongs to another query.
    """
    began, head = perf_counter_ns(), shard.store.head()
    call = Call(values, watermark, matching.made_for, matching.of_matches, shard.is_standby)
    with _in_its_pattern(matching):
        advanced = _advanced(matching, shard, head, call)
    _store(shard.store, head, advanced, values)
    took = (perf_counter_ns() - began) // 1000
    state_bytes = 0 if advanced.head is None else advanced.snapshot_bytes + advanced.head.log_bytes
    return Stepped(
        each=advanced.each,
        timer=advanced.timer,
        former_timer=None if head is None else head.timer,
        times=dict(zip(STREAM_TIMES, (advanced.microseconds, took - advanced.microseconds), strict=True)),
        events=advanced.events,
        state_bytes=state_bytes,
    )


def _in_its_pattern(matching: Matching) -> AbstractContextManager[None]:
    """Errors get the pattern's name. If the shard has several patterns, errors of one have its name already, and others
    concern all.
    """
    plans = unpacked_runner(matching.runner).plans
    return nullcontext() if len(plans) > 1 else in_pattern(plans[0].pattern.name, named=matching.named)


def _advanced(matching: Matching, shard: Shard, head: Head | None, call: Call) -> Advanced:
    """What comes of the call, in the worker that has the matcher. If none has, it is restored here."""
    known = shard.cache.take(shard.place, unpacked_runner(matching.runner))
    if shard.keepers is not None:
        shard.keepers.open()
        if head is not None and (known is None or known.head != head):
            answer = shard.keepers.ask(shard.place, head, call)
            if answer is not None:
                return answer
    with shard.cache.at_work:
        ready = _matcher(matching, shard.store, head, known)
        return _advance(shard.cache, shard.place, ready, head, call)


def _advance(
    cache: MatcherCache, place: Place, ready: ReadyMatcher[ShardMatcher], head: Head | None, call: Call
) -> Advanced:
    """Calls the matcher. It stays in the cache if it is needed again."""
    advanced = advance(ready, head, call)
    if advanced.head is not None:
        cache.put(place, advanced.head, ready.matcher, advanced.snapshot_bytes)
    return advanced


def _store(store: Store, before: Head | None, advanced: Advanced, values: Sequence[bytes]) -> None:
    """Stores the state after a call."""
    if advanced.head is None:
        if before is not None:
            store.clear(before)
    elif advanced.snapshot is None:
        store.append(advanced.head, None if advanced.entry is None else advanced.entry.of(values))
    else:
        store.write(advanced.head, advanced.snapshot, before)


def check_ledger(matching: Matching, known: bytes | None) -> bytes:
    """The ledger to store: what the checkpoint is written for, and what its plan is made from.

    Raises:
        SnapshotError: the checkpoint belongs to another query, or has an unknown format.
    """
    made_for = json.loads(matching.made_for)
    before = made_for if known is None else from_ledger(known)[0]
    if changed := differences(before, made_for):
        of_pattern = differences(*({**one, **dict.fromkeys(OF_QUERY)} for one in (before, made_for)))
        with _in_its_pattern(matching) if of_pattern else nullcontext():
            raise of_another_query(changed)
    return ledger_bytes(made_for, matching.asked)


def of_another_query(changed: Sequence[str]) -> SnapshotError:
    """The error of a checkpoint from which this query cannot continue, with what has changed."""
    others = [text for text in changed if not text.startswith(PLACEMENT)]
    if others:  # then a query of other patterns may have other shards
        changed = [text for text in changed if not text.startswith(TOGETHER)]
    changed = [*others, *[NUMBERED_OTHERWISE] * (len(others) < len(changed))]
    advice = f"{ANEW}. {RESCALED}" if any(text.startswith(("shards ", MORE_SHARDS)) for text in changed) else ANEW
    return SnapshotError(f"the checkpoint belongs to another query: {'; '.join(changed)}. {advice}")


def _matcher(
    matching: Matching, store: Store, head: Head | None, known: CachedMatcher | None
) -> ReadyMatcher[ShardMatcher]:
    """The matcher in the shard's state; `known` is the one that this worker has of it. If the pattern drains since this
    call, nothing in the stored log is repeated by a matcher that starts nothing: a new snapshot replaces it.
    """
    ready = _new(matching) if head is None else _continued(matching, store, head, known)
    if not matching.drains or ready.matcher.drains:
        return ready
    ready.matcher.drain(waiting=True)
    return ready._replace(continues_log=False)


def _new(matching: Matching) -> ReadyMatcher[ShardMatcher]:
    matcher = unpacked_runner(matching.runner).matcher()
    return ReadyMatcher(matcher, continues_log=True, counts=counts_of_each(matcher))


def _continued(matching: Matching, store: Store, head: Head, known: CachedMatcher | None) -> ReadyMatcher[ShardMatcher]:
    """The matcher in the stored state."""
    check_format(head.format)
    try:
        if known is not None and catch_up(known, store, head, matching.columns):
            return known.ready
        runner = unpacked_runner(matching.runner)
        return restored(runner, store, head, json.loads(matching.made_for), matching.columns)
    except AnotherMatcher as error:
        raise of_another_query(error.changed) from error
    except SnapshotError as error:
        raise SnapshotError(f"the checkpoint's state does not fit: {error}. {PUT_BACK}") from error
