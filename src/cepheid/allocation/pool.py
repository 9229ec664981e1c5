"""Which standbys of a pool hold copies of which originals, decided in one place that sees all loads.

A standby may hold copies of several originals. An original divides its load evenly over itself and its copies.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from cepheid.allocation.thresholds import THRESHOLDS, Thresholds, next_copies

Original = TypeVar("Original", bound=Hashable)
Standby = TypeVar("Standby", bound=Hashable)


def standby_loads(
    loads: Mapping[Original, float], copies: Mapping[Original, Sequence[Standby]]
) -> dict[Standby, float]:
    """What each standby with copies carries: of each of its originals one even share."""
    busy: dict[Standby, float] = {}
    for original, holders in copies.items():
        share = loads.get(original, 0.0) / (len(holders) + 1)
        for standby in holders:
            busy[standby] = busy.get(standby, 0.0) + share
    return busy


def least_busy(
    standbys: Sequence[Standby], busy: Mapping[Standby, float], count: int, *, without: Collection[Standby] = ()
) -> tuple[Standby, ...]:
    """The `count` standbys that carry least, the first of equally busy ones; fewer if there are not as many."""
    free = [standby for standby in standbys if standby not in without]
    return tuple(sorted(free, key=lambda standby: busy.get(standby, 0.0))[:count])


def allocated(
    loads: Mapping[Original, float],
    copies: Mapping[Original, tuple[Standby, ...]],
    standbys: Sequence[Standby],
    *,
    capacity: float,
    thresholds: Thresholds = THRESHOLDS,
) -> dict[Original, tuple[Standby, ...]]:
    """The standbys that hold copies of each original from now on; originals without copies are left out.

    `copies` has those of before, oldest first. Originals are served by falling load. One that grows keeps its copies
    and takes the least busy other standbys; one that shrinks releases its newest copies.
    """
    after = {original: holders for original, holders in copies.items() if holders}
    known = {**dict.fromkeys(copies, 0.0), **loads}
    for original, load in sorted(known.items(), key=lambda item: -item[1]):
        now = after.pop(original, ())
        wanted = next_copies(load, len(now), capacity=capacity, most=len(standbys), thresholds=thresholds)
        missing = wanted - len(now)
        if missing > 0:
            now += least_busy(standbys, standby_loads(known, after), missing, without=now)
        if holders := now[:wanted]:
            after[original] = holders
    return after
