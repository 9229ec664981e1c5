"""The state of a shard of a stream between micro-batches: a snapshot of its matcher, then a log of the events since.

A micro-batch writes only its own events, however much is open; writing a new snapshot costs as much as the shard has
open. When the log is about as large as the snapshot, on streams a few times as large, a new snapshot replaces both. So
each byte is written a bounded number of times, and a matcher is restored from at most a few times its size.

A matcher is restored where no earlier call has left it. Where one has, but others have gone on since, only the newer
entries of the log are replayed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.hosts.shards.arrow_stream import events_of
from cepheid.hosts.shards.store import FORMAT, Entry, Head, ShardState, Store, check_format, state_name_after
from cepheid.matchers.protocols import LiveMatcher, ShardMatcher, ShardRunner
from cepheid.matchers.snapshot import fitting, with_columns
from cepheid.matchers.watermark import Reached
from cepheid.plan.limits import MOST, Limits
from cepheid.requests.counts import OPENED

SMALL_LOG = 1 << 16
"""Up to this many bytes a log is not worth a new snapshot, however small: taking one costs a millisecond."""

_MOST_ENTRIES = 1000
_NO_LIMITS = Limits(max_partial_matches=MOST, max_matches_per_event=MOST, max_facts=MOST, max_same_as=MOST)


M = TypeVar("M", bound=ShardMatcher)


class ReadyMatcher(NamedTuple, Generic[M]):
    """A matcher that has reached the shard's state, cached, restored or new."""

    matcher: M
    continues_log: bool
    """Whether entries may be appended to the stored log. Not if the limits have changed, or if the pattern was renewed.
    """
    counts: tuple[Mapping[str, int], ...]
    """The counts of each pattern (`counts_of`) before `rows`."""
    rows: tuple[pa.Table, ...] = ()
    """The rows that result from renewing the pattern (`ShardMatcher.renewed`)."""
    snapshot_bytes: int = 0
    """The size of the stored snapshot; 0 without a snapshot."""


class CachedMatcher(NamedTuple):
    """A matcher of an earlier call, and the head that it wrote."""

    head: Head
    matcher: ShardMatcher
    snapshot_bytes: int
    """The size of the stored snapshot before the log."""

    @property
    def ready(self) -> ReadyMatcher[ShardMatcher]:
        """The matcher as it is."""
        return ReadyMatcher(
            self.matcher, continues_log=True, counts=counts_of_each(self.matcher), snapshot_bytes=self.snapshot_bytes
        )


class MatcherCache:
    """Matchers of earlier calls in this process, by place: the query and the shard's number.

    A shard that is called again in the same process need not be restored. `take` checks that the pattern is the same,
    because workers outlive a query that is restarted with other limits or measures. `catch_up` checks the state. A
    place has at most one matcher. It stays even if the shard has moved to another worker and never comes back.

    Several threads may use it; one at a time may use its matchers.
    """

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._lock = Lock()
        self.at_work = Lock()
        """Held by the thread that uses one of the matchers."""
        self._matchers: dict[tuple[str, int], CachedMatcher] = {}

    def __len__(self) -> int:
        return len(self._matchers)

    def take(self, place: tuple[str, int], pattern: ShardRunner[ShardMatcher]) -> CachedMatcher | None:
        """Removes the place's matcher; returns it if it is for this pattern. It then belongs to the caller."""
        with self._lock:
            known = self._matchers.pop(place, None)
        return known if known is not None and known.matcher.pattern is pattern else None

    def take_at(self, place: tuple[str, int], head: Head) -> CachedMatcher | None:
        """Removes the place's matcher and returns it, if it has reached this head."""
        with self._lock:
            known = self._matchers.get(place)
            return self._matchers.pop(place) if known is not None and known.head == head else None

    def put(self, place: tuple[str, int], head: Head, matcher: ShardMatcher, snapshot_bytes: int) -> None:
        """Stores the matcher. If there are too many, the one stored longest ago is dropped."""
        with self._lock:
            self._matchers.pop(place, None)
            self._matchers[place] = CachedMatcher(head, matcher, snapshot_bytes)
            if len(self._matchers) > self._most:
                del self._matchers[next(iter(self._matchers))]


def catch_up(known: CachedMatcher, store: Store, head: Head, columns: pa.Schema) -> bool:
    """Brings the matcher to the head: it replays what other workers have written since its last call. Returns whether
    that was possible.

    It is not possible if a new snapshot was written since, or if the matcher has seen more than the head, as after a
    failed attempt.

    Raises:
        SnapshotError, ConditionError, SkipError: as `restored`.
    """
    before, matcher, _ = known
    if before.room != head.room or before.entries > head.entries or before.reached > head.reached:
        return False  # another room means another snapshot; the name shows that, too, but only once entries are read
    log = [store.entry(number) for number in range(before.entries + 1, head.entries + 1)]
    if log and log[0].reached < before.reached:
        return False  # a failed attempt advanced its time: the events in the log would be late
    if reduce(state_name_after, log, before.state) != head.state:
        return False
    if log or before.reached < head.reached:
        _replay(matcher, log, head.reached, columns, matcher.pattern.limits)
    return True


def next_head(
    before: Head | None, entry: Entry | None, reached: Reached, open_: int, timer: int | None, *, few: int = 0
) -> Head | None:
    """The head after the entry, if there is one, is appended to the log; None if a new snapshot is due. A log of `few`
    entries is not worth one, however large they are.
    """
    if before is None or (entry is not None and before.entries >= few and _is_full(before, entry)):
        return None
    return head_after(before, entry, reached, open_, timer)


def _is_full(before: Head, entry: Entry) -> bool:
    return before.log_bytes + len(entry.events) > before.room or before.entries >= _MOST_ENTRIES


def head_after(before: Head, entry: Entry | None, reached: Reached, open_: int, timer: int | None) -> Head:
    """The head after the entry, if there is one, is appended to the log."""
    after = before._replace(format=FORMAT, passed=reached.time, over=reached.over, open=open_, timer=timer)
    if entry is None:
        return after
    state, log_bytes = state_name_after(before.state, entry), before.log_bytes + len(entry.events)
    return after._replace(state=state, entries=before.entries + 1, log_bytes=log_bytes)


def first_head(size: int, reached: Reached, open_: int, timer: int | None, *, long: int = 1) -> Head:
    """The head of a snapshot of so many bytes without a log, which may become about `long` times as large. The room
    differs from shard to shard, so that not all shards write new snapshots in the same micro-batch.
    """
    state = os.urandom(16)
    room = long * max(SMALL_LOG, size) * (128 + state[0]) // 256
    return Head(FORMAT, state, 0, 0, room, reached.time, open_, timer, reached.over)


def counts_of_each(matcher: ShardMatcher) -> tuple[dict[str, int], ...]:
    """The counts of each of the shard's patterns so far."""
    return tuple(map(counts_of, matcher.each))


def counts_of(matcher: LiveMatcher) -> dict[str, int]:
    """The counts so far: a value for each of STREAM_COUNTS."""
    return matcher.counts | {OPENED: matcher.open}


def open_of_each(matcher: ShardMatcher) -> tuple[int, ...]:
    """As `Head.open_of_each`."""
    return tuple(one.open for one in matcher.each) if len(matcher.each) > 1 else ()


def snapshot_of(matcher: ShardMatcher, made_for: dict[str, object]) -> bytes:
    """A snapshot as `restored` takes it. It also says what must be known of the matcher that writes the log after it:
    its limits, and whether it drains.
    """
    return matcher.snapshot(made_for, _kept(matcher))


def snapshot_in_pieces(matcher: LiveMatcher, made_for: dict[str, object]) -> Iterator[bytes]:
    """The same in pieces, as `LiveMatcher.snapshot_in_pieces`."""
    return matcher.snapshot_in_pieces(made_for, _kept(matcher))


def _kept(matcher: ShardMatcher) -> dict[str, object]:
    drains = {"drains": True} if matcher.drains else {}
    return {"limits": asdict(matcher.pattern.limits), **drains}


class WrittenMatcher(NamedTuple, Generic[M]):
    """A matcher in the state of the one that wrote the log: it emits as that one did (`ShardMatcher.renewed`)."""

    matcher: M
    limits: Limits
    """The limits of the log."""
    snapshot_bytes: int
    """The size of the stored snapshot."""


def restored(
    pattern: ShardRunner[M],
    stored: ShardState,
    head: Head,
    made_for: dict[str, object],
    columns: pa.Schema,
    *,
    drains: bool = False,
    drained_after: int | None = None,
) -> ReadyMatcher[M]:
    """The matcher of the shard's state, renewed; see `restored_as_written`."""
    written = restored_as_written(pattern, stored, head, made_for, columns, drains=drains, drained_after=drained_after)
    matcher = written.matcher
    counts, renewed = counts_of_each(matcher), matcher.renewed()
    continues_log = written.limits == pattern.limits and renewed is None
    rows = () if renewed is None else (renewed,)
    return ReadyMatcher(matcher, continues_log, counts, rows, written.snapshot_bytes)


def restored_as_written(
    pattern: ShardRunner[M],
    stored: ShardState,
    head: Head,
    made_for: dict[str, object],
    columns: pa.Schema,
    *,
    drains: bool = False,
    drained_after: int | None = None,
) -> WrittenMatcher[M]:
    """The matcher of the snapshot, after the events of the log, with time advanced to the head's. The pattern's limits
    may differ from those of the log. They apply after the replay. If the snapshot says that its matcher drains, or if
    `drains`, so does this one; otherwise it drains after so many entries of the log, if the number is given. The events
    that wait then are all that waited when it began to drain, and perhaps some that had been processed by then: both
    may start partial matches.

    With on_limit="raise" the log is replayed without limits. No call that wrote the log exceeded a limit. But within a
    call, sets are counted only from time to time, so that the whole log in one call might seem to exceed one.

    Raises:
        SnapshotError: the stored state is damaged, or belongs to another query.
        ConditionError, SkipError: as the calls that wrote the log would have raised.
    """
    check_format(head.format)
    log = stored.log()
    if len(log) != head.entries:
        raise SnapshotError(f"the log is damaged: it has {len(log)} entries, and {head.entries} were written")
    snapshot = stored.snapshot()
    matcher, written_with = pattern.restored(snapshot, made_for, columns)
    with fitting():
        limits = Limits(**written_with["limits"])
    if drains or written_with.get("drains", False):
        matcher.drain(waiting=False)
    elif drained_after is not None:
        before, log = log[:drained_after], log[drained_after:]
        if before:
            _replay(matcher, before, before[-1].reached, columns, limits)
        matcher.drain(waiting=True)
    _replay(matcher, log, head.reached, columns, limits)
    return WrittenMatcher(matcher, limits, len(snapshot))


def _replay(matcher: ShardMatcher, log: Sequence[Entry], reached: Reached, columns: pa.Schema, limits: Limits) -> None:
    parts = [(entry.reached, events) for entry in log if (events := _events(entry, columns)) is not None]
    matcher.replay(parts, reached, limits if limits.on_limit == "drop" else _NO_LIMITS)


def _events(entry: Entry, columns: pa.Schema) -> Batch | None:
    if not entry.is_whole:
        raise SnapshotError("the log is damaged: a digest does not agree with its entry")
    with fitting():
        events = events_of([entry.events])
    return None if events is None else Batch(with_columns(events.data, columns, "the log's events"))
