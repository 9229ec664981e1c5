"""The load of each shard, from what its calls report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple


class ShardCall(NamedTuple):
    """What a call of a shard reports of the shard. Spark's progress has the values in this order, then those of
    STREAM_COUNTS.
    """

    shard: int
    """The number of the shard within its pattern."""
    partition: int
    events: int
    matching_us: int
    state_us: int
    state_bytes: int
    open: int
    """The number of open partial matches."""


@dataclass(frozen=True)
class ShardProgress:
    """What one shard of a pattern did in a micro-batch, or in several."""

    partition: int | None = None
    """The partition, and so the Spark task, that the shard belongs to. None: it has not been called."""
    events: int = 0
    """Events that reached the shard. Events that cannot matter do not."""
    matching: timedelta = timedelta(0)
    """The time in its matcher."""
    state: timedelta = timedelta(0)
    """The time for reading and writing its state; Spark's commit comes after it."""
    state_bytes: int | None = None
    """The size of the stored state. None: not known, as the shard has not been called since the figures began."""
    open_partial_matches: int | None = None
    """None: not known, as for `state_bytes`."""

    @property
    def useful(self) -> timedelta:
        """The time for which the shard kept a core busy: matching and state."""
        return self.matching + self.state

    def after(self, earlier: ShardProgress) -> ShardProgress:
        """This progress and an earlier one, combined: events and times are added, all else is the last known value."""
        called = earlier if self.partition is None else self
        return ShardProgress(
            called.partition,
            self.events + earlier.events,
            self.matching + earlier.matching,
            self.state + earlier.state,
            earlier.state_bytes if self.state_bytes is None else self.state_bytes,
            earlier.open_partial_matches if self.open_partial_matches is None else self.open_partial_matches,
        )


def shards_progress(calls: Iterable[Sequence[int]], shards: int, *, first: bool) -> tuple[ShardProgress, ...]:
    """The progress of each of the shards, by number, from the values of its calls. Spark calls a shard twice in a
    micro-batch if it has events and its timer fires. In the `first` micro-batch, shards without calls have no state.
    """
    nothing = ShardProgress(state_bytes=0, open_partial_matches=0) if first else ShardProgress()
    found = [nothing] * shards
    for values in calls:
        call = ShardCall(*values[: len(ShardCall._fields)])
        found[call.shard] = _of_call(call).after(found[call.shard])
    return tuple(found)


def _of_call(call: ShardCall) -> ShardProgress:
    times = timedelta(microseconds=call.matching_us), timedelta(microseconds=call.state_us)
    return ShardProgress(call.partition, call.events, *times, call.state_bytes, call.open)


def combined(later: Sequence[ShardProgress], earlier: Sequence[ShardProgress]) -> tuple[ShardProgress, ...]:
    """The progress of shards in later and in earlier micro-batches, by number."""
    if len(later) != len(earlier):
        return tuple(later)
    return tuple(one.after(before) for one, before in zip(later, earlier, strict=True))


def with_state_of(shards: Sequence[ShardProgress], so_far: Sequence[ShardProgress]) -> tuple[ShardProgress, ...]:
    """The progress of shards in a micro-batch, with what all micro-batches so far say of the state of shards that were
    not called in it.
    """
    return tuple(
        replace(one, state_bytes=known.state_bytes, open_partial_matches=known.open_partial_matches)
        for one, known in zip(shards, so_far, strict=True)
    )


def max_over_mean(shards: Iterable[ShardProgress]) -> float | None:
    """The useful time of the busiest shard divided by the mean of all; None if none has done anything."""
    times = [one.useful for one in shards]
    total = sum(times, timedelta(0))
    return max(times) * len(times) / total if total else None


def slowest_task(shards: Iterable[ShardProgress]) -> timedelta:
    """The useful time of the partition that has the most of it. Its Spark task is the last one to end."""
    tasks: dict[int | None, timedelta] = {}
    for one in shards:
        tasks[one.partition] = tasks.get(one.partition, timedelta(0)) + one.useful
    return max(tasks.values(), default=timedelta(0))
