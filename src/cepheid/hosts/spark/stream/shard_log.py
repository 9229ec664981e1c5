"""What a shard of a stream keeps between micro-batches: a snapshot of its matcher, and behind it a log of the events
that came since.

A micro-batch writes what came in it, whatever is open: writing a shard anew costs as much as it has open. When the log
is about as large as the snapshot, a new snapshot takes the place of both, so that each byte is written a bounded number
of times, and a matcher is restored from a few times its size at most: it is whenever Spark gives the shard to another
of its Python workers, which it chooses as they come, unless that one has had the shard before and need only take what
the log has got since.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.hosts.spark.stream.packing import events_of
from cepheid.hosts.spark.stream.shard_matcher import ShardMatcher, ShardPattern
from cepheid.hosts.spark.stream.store import FORMAT, Entry, Head, Kept, Store, check_format, named_behind
from cepheid.matchers.snapshot import fitting
from cepheid.plan.limits import MOST, Limits

SMALL_LOG = 1 << 16
"""Bytes of a log that is not worth a new snapshot, however small that would be: taking one costs a millisecond."""

_MOST_ENTRIES = 1000
_NO_LIMITS = Limits(max_partial_matches=MOST, max_matches_per_event=MOST)


class Known(NamedTuple):
    """A matcher of an earlier call, and the head that it wrote."""

    head: Head
    matcher: ShardMatcher


class Live:
    """Matchers of earlier calls in this process, each by its place: its query and the shard's number.

    A shard that is called again where it was called before need not be restored. `take` asks whether the pattern is the
    same, as workers outlive a query that is started again with other limits or measures; `goes_on_from` whether the
    state is. Of a place there is one matcher, though the shard may have gone to another worker meanwhile and never come
    back.
    """

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[tuple[str, int], Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def take(self, place: tuple[str, int], pattern: ShardPattern) -> Known | None:
        """That of this pattern, which then belongs to the caller."""
        known = self._known.pop(place, None)
        return known if known is not None and known.matcher.pattern is pattern else None

    def keep(self, place: tuple[str, int], head: Head, matcher: ShardMatcher) -> None:
        """In place of the one that was kept longest, if there are too many."""
        self._known.pop(place, None)
        self._known[place] = Known(head, matcher)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]


def goes_on_from(known: Known, store: Store, head: Head, columns: pa.Schema) -> bool:
    """Whether the matcher is where the head is: if it is behind it takes what other workers have written since.

    It cannot where a snapshot was written since, nor where it has seen more than the head, as of an attempt that
    failed.

    Raises:
        SnapshotError, ConditionError, SkipError: as `restored`.
    """
    before, matcher = known
    if before.room != head.room or before.entries > head.entries or before.passed > head.passed:
        return False  # another room is another snapshot: the name tells that, too, but once the entries are read
    log = [store.entry(number) for number in range(before.entries + 1, head.entries + 1)]
    if log and log[0].passed < before.passed:
        return False  # its time has passed in an attempt that failed, and the events would be late
    if reduce(named_behind, log, before.state) != head.state:
        return False
    if log or before.passed < head.passed:
        _replay(matcher, log, head.passed, columns, matcher.pattern.limits)
    return True


def next_head(before: Head | None, entry: Entry | None, passed: int, open_: int, timer: int | None) -> Head | None:
    """The head if the entry, if there is one, goes behind the log; None if a new snapshot is due."""
    if before is None:
        return None
    after = before._replace(passed=passed, open=open_, timer=timer)
    if entry is None:
        return after
    log_bytes = before.log_bytes + len(entry.events)
    if log_bytes > before.room or before.entries == _MOST_ENTRIES:
        return None
    return after._replace(state=named_behind(before.state, entry), entries=before.entries + 1, log_bytes=log_bytes)


def first_head(snapshot: bytes, passed: int, open_: int, timer: int | None) -> Head:
    """The head of a snapshot without a log. The room differs from shard to shard, that not all are written anew in the
    same micro-batch.
    """
    state = os.urandom(16)
    room = max(SMALL_LOG, len(snapshot)) * (128 + state[0]) // 256
    return Head(FORMAT, state, 0, 0, room, passed, open_, timer)


class Restored(NamedTuple):
    """A matcher as it was."""

    matcher: ShardMatcher
    goes_on: bool
    """Whether the log may be written on: not under other limits, nor where the pattern was renewed."""
    rows: tuple[pa.Table, ...] = ()
    """Those that come of it that the pattern was renewed."""


def snapshot_of(matcher: ShardMatcher, made_for: dict[str, object]) -> bytes:
    """A snapshot as `restored` takes it: it says under which limits the log behind it will be written."""
    return matcher.snapshot(made_for, {"limits": asdict(matcher.pattern.limits)})


def restored(
    pattern: ShardPattern, kept: Kept, head: Head, made_for: dict[str, object], columns: pa.Schema
) -> Restored:
    """The matcher of the snapshot, with the events of the log, whose time has passed to where the head says. The
    pattern's limits may be others than those of the log: they count from now on.

    Where it is an error to be over a limit no call that wrote the log was; but within a call sets are counted now and
    then only, so the log at once might be found over it.

    Raises:
        SnapshotError: what is kept is damaged, or of another query.
        ConditionError, SkipError: as the calls would have raised that wrote the log.
    """
    check_format(head.format)
    log = kept.log()
    if len(log) != head.entries:
        raise SnapshotError(f"the log is damaged: it has {len(log)} entries, and {head.entries} were written")
    matcher, told = pattern.restored(kept.snapshot(), made_for, columns)
    with fitting():
        limits = Limits(**told["limits"])
    _replay(matcher, log, head.passed, columns, limits)
    renewed = matcher.renewed()
    goes_on = limits == pattern.limits and renewed is None
    return Restored(matcher, goes_on, () if renewed is None else (renewed,))


def _replay(matcher: ShardMatcher, log: Sequence[Entry], passed: int, columns: pa.Schema, limits: Limits) -> None:
    parts = [(entry.passed, events) for entry in log if (events := _events(entry, columns)) is not None]
    matcher.replay(parts, passed, limits if limits.on_limit == "drop" else _NO_LIMITS)


def _events(entry: Entry, columns: pa.Schema) -> Batch | None:
    if not entry.is_whole:
        raise SnapshotError("the log is damaged: a digest does not agree with its entry")
    with fitting():
        events = events_of([entry.events])
    if events is not None and events.data.schema != columns:
        raise SnapshotError(f"the log's events have other columns: {events.data.schema}")
    return events
