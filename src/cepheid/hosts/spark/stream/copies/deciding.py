"""What the driver decides between micro-batches: which key gets one more copy, or loses one. All are pure functions.

A key's load is the time a micro-batch for which it keeps cores busy, in its original shard and in its copies. The
budget is the time that a shard may take. A key grows while its smoothed load is over 80 % of what its shards may take
together, and shrinks while it is under 40 %: see `cepheid.allocation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cepheid.allocation.load import smoothed
from cepheid.allocation.pool import allocated
from cepheid.allocation.thresholds import wanted_copies
from cepheid.hosts.spark.stream.copies.assignment import Key


class Figures(NamedTuple):
    """What is known of one pattern after a micro-batch."""

    seconds: float
    """How long the micro-batch took."""
    useful: Sequence[float]
    """For each shard, then for each standby, the seconds for which it kept a core busy."""
    events: Sequence[int]
    """The events of each shard."""
    shares: Mapping[Key, float] | None
    """The hottest keys, each with its part of all events; None: nothing was sampled."""


@dataclass(frozen=True)
class Loads:
    """The smoothed loads of a pattern's hot keys."""

    keys: Mapping[Key, float] = field(default_factory=dict)
    """Seconds a micro-batch."""
    parts: Mapping[Key, float] = field(default_factory=dict)
    """The part that each key has in the events of its original shard, when it was last sampled."""

    def after(self, figures: Figures, copies: Mapping[Key, Sequence[int]]) -> Loads:
        """The loads after one more micro-batch, in which these standbys held copies."""
        sampled = self
        if figures.shares is not None:
            kept = dict.fromkeys(copies, 0.0)
            sampled = replace(
                self, parts=kept | {key: _part(key, share, figures) for key, share in figures.shares.items()}
            )
        loads = {
            key: smoothed(self.keys.get(key, 0.0), load, seconds=figures.seconds)
            for key, load in _loads(sampled.parts, figures, copies)
        }
        return replace(sampled, keys=loads)


def _part(key: Key, share: float, figures: Figures) -> float:
    """The part of the shard's events that are the key's."""
    events = figures.events[key[0]]
    return min(1.0, share * sum(figures.events) / events) if events else 0.0


def _loads(
    parts: Mapping[Key, float], figures: Figures, copies: Mapping[Key, Sequence[int]]
) -> Iterator[tuple[Key, float]]:
    """The load of each key in the micro-batch."""
    shards = len(figures.events)
    keys_in = dict[int, int]()
    for holders in copies.values():
        for standby in holders:
            keys_in[standby] = keys_in.get(standby, 0) + 1
    for key, part in parts.items():
        in_copies = (figures.useful[shards + standby] / keys_in[standby] for standby in copies.get(key, ()))
        yield key, part * figures.useful[key[0]] + sum(in_copies)


class Change(NamedTuple):
    """A change of one key's copies."""

    key: Key
    copies: tuple[int, ...]
    load: float
    """The key's smoothed load: seconds a micro-batch."""
    wanted: int
    """The number of copies that the load needs, at most that of the standbys."""


def next_change(
    loads: Mapping[Key, float], copies: Mapping[Key, tuple[int, ...]], standbys: Sequence[int], *, budget: float
) -> Change | None:
    """The change for the next micro-batch: one more or one fewer copy of one key, that with the highest load first;
    None if all keys have as many copies as they need. `standbys` are the ones that may be taken, the best first.
    """
    wanted = allocated(loads, copies, standbys, capacity=budget)
    changed = [key for key in {**loads, **copies} if len(wanted.get(key, ())) != len(copies.get(key, ()))]
    if not changed:
        return None
    key = max(changed, key=lambda one: (loads.get(one, 0.0), one))
    now, goal = copies.get(key, ()), wanted.get(key, ())
    following = goal[: len(now) + 1] if len(goal) > len(now) else now[:-1]
    return Change(key, following, loads.get(key, 0.0), len(goal))


def without_standby(
    loads: Mapping[Key, float], copies: Mapping[Key, tuple[int, ...]], standbys: int, *, budget: float
) -> list[Key]:
    """The keys whose loads need one more copy, and which have one in each of so many standbys. The hottest is first."""
    short = [
        key
        for key, load in loads.items()
        if wanted_copies(load, capacity=budget) > len(copies.get(key, ())) >= standbys
    ]
    return sorted(short, key=lambda key: (-loads[key], key))


def in_order_of_load(standbys: Mapping[int, int], partitions: Mapping[int, float]) -> list[int]:
    """The standbys, given with their partitions, those in the least busy partitions first."""
    return sorted(standbys, key=lambda standby: (partitions.get(standbys[standby], 0.0), standby))
