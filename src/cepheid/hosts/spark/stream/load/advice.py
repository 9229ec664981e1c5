"""How many shards, partitions and cores a stream needs, from the time for which each shard kept a core busy.

The formula is that of DS2 (Kalavri et al., "Three steps is all you need", OSDI 2018): the true processing rate of an
instance is the events that it processed divided by its useful time, without waiting, and an operator needs as many
instances as the arrival rate divided by the true rate of one. Here an instance is a core, and useful time is that of
packing, matching and state. Two things differ from DS2. The events of a shard cannot be divided among cores, so the
busiest shard and the hottest key bound what more cores can do. And in a micro-batch, Spark's own work comes before and
after the shards, so they have only the rest of the time.

This is advice: nothing is changed. It is about the measured load at the given rate, with reserve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cepheid.allocation.thresholds import THRESHOLDS

_MOST_TIMES = 64
"""More than so many times the shards are not advised in one step."""


class ShardLoad(NamedTuple):
    """What one shard of a query did, in seconds: the shards with this number of all patterns together."""

    useful: float
    hot_key: str | None = None
    """The key with most of its events, if one is known to have many."""
    of_hot_key: float = 0.0
    """The part of `useful` that this key takes. More shards cannot divide it."""


class Load(NamedTuple):
    """What was measured, in seconds, while `events` were read."""

    events: int
    packing: float
    shards: Sequence[ShardLoad]
    partitions: int
    rest: float
    """The time of micro-batches besides the slowest task of the shards: reading, lifting, packing, the sink, Spark."""
    keys: int | None = None
    """The number of keys, if it is known, which it is only for few."""
    keyed: bool = True


class Advice(NamedTuple):
    """What a stream needs at a rate of events, so that its micro-batches take at most 80 percent of the time."""

    shards: int
    partitions: int
    cores: int
    """At least so many: the work of Spark's JVM is not counted."""
    busiest: float
    """How much of the time the busiest partition would be busy with matching and state, as it is now."""
    limits: tuple[str, ...] = ()
    """Why more of them would not help, if they would not."""

    def __str__(self) -> str:
        """The advice for people, in one line."""
        these = f"{_counted(self.shards, 'shard')} on {_counted(self.partitions, 'partition')}"
        text = f"{these} and {_counted(self.cores, 'core')}"
        return "; ".join([f"{text}: more would not help", *self.limits] if self.limits else [f"{text} are enough"])


def advice_for(load: Load, rate: float) -> Advice:
    """The advice for `rate` events a second. `load` has events."""
    seconds = load.events / rate
    budget = THRESHOLDS.grow - load.rest / seconds
    limits = [*_limits(load, seconds, budget)]
    shares = [one.useful / seconds for one in load.shards]
    busiest = max(_by_partition(shares, load.partitions))
    hot = [one.of_hot_key / seconds for one in load.shards]
    times = 1 if limits else _times(shares, hot, budget)
    divided = _divided(shares, hot, times)
    shards = len(divided)
    together = sum(shares)
    cores = max(1, _whole((together + load.packing / seconds) / THRESHOLDS.grow))
    if budget <= 0:
        return Advice(shards, load.partitions, cores, busiest, tuple(limits))
    cores = max(cores, _whole(together / budget))
    cores = min(cores, shards) if limits else cores
    return Advice(shards, _partitions(divided, cores, budget), cores, busiest, tuple(limits))


def _whole(needed: float) -> int:
    """The least whole number that is enough; errors of rounding do not add one."""
    return math.ceil(round(needed, 6))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _limits(load: Load, seconds: float, budget: float) -> Iterator[str]:
    """Why more shards would not help."""
    if budget <= 0:
        yield (
            f"reading, packing, the sink and Spark's own work take {load.rest / seconds:,.0%} of the time: let "
            "micro-batches have more events (a longer trigger), or fewer partitions"
        )
        return
    busiest = max(load.shards, key=lambda one: one.useful)
    if busiest.useful / seconds <= budget:
        return
    most, busy = len(load.shards), busiest.useful / seconds
    if not load.keyed:
        yield f"without a key, one shard has all events, and it would be busy {busy:.0%} of the time: name a key"
    elif busiest.of_hot_key / seconds > budget:
        share = busiest.of_hot_key / seconds
        yield (
            f"one key ({busiest.hot_key}) alone would keep its shard busy {share:.0%} of the time, and more shards do "
            "not divide a key: `cepheid explain` says whether the pattern lets it be divided"
        )
    elif load.keys is not None and load.keys <= most:
        yield f"there are only {load.keys} keys for {most} shards: more shards would stay empty"


def _times(shares: Sequence[float], hot: Sequence[float], budget: float) -> int:
    """By how much the number of shards must grow until none is busier than the budget: by a power of two, so that the
    partitions of today still divide it.
    """
    times = 1
    while times < _MOST_TIMES and max(_divided(shares, hot, times)) > budget:
        times *= 2
    return times


def _divided(shares: Sequence[float], hot: Sequence[float], times: int) -> list[float]:
    """The load of each shard if there are `times` as many. The keys of shard s are then in the shards s, s + n, s + 2n,
    …, where n is the number of shards now. So with n partitions, or a divisor of n, they all stay in the partition in
    which they are. The hottest key is in one of these shards, taken to be s; all else is divided evenly.
    """
    return [
        (share - key) / times + (0 if turn else key)
        for turn in range(times)
        for share, key in zip(shares, hot, strict=True)
    ]


def _partitions(shares: Sequence[float], cores: int, budget: float) -> int:
    """The least divisor of the number of shards that gives work to all cores and keeps each partition within the
    budget. If none does, the least of those whose busiest partition has the least.
    """
    shards = len(shares)
    divisors = [number for number in range(min(cores, shards), shards + 1) if shards % number == 0]
    busiest = {number: max(_by_partition(shares, number)) for number in divisors}
    within = [number for number in divisors if busiest[number] <= budget]
    return within[0] if within else min(divisors, key=lambda number: (busiest[number], number))


def _by_partition(shares: Sequence[float], partitions: int) -> list[float]:
    """The load of each partition, if shard s is in partition s modulo their number: `placement.Placement` sees to that
    where the number divides the shards.
    """
    return [sum(shares[first::partitions]) for first in range(min(partitions, len(shares)))]
