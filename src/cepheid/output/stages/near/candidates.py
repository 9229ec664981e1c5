"""The events that a NOT may forbid, that may end a loop, or with which `begin_without` may forbid a start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.lang.duration import microseconds
from cepheid.lang.stages.pattern import Contiguity
from cepheid.output.stages.near.found import EventOrder, NearMatches, Taken
from cepheid.plan.stages.plan import Plan

_MOST_LOOKED_AT = 20
"""The most events that are looked at for the one that a NOT forbids, that ends a loop, or that forbids a start."""


class Candidates(NamedTuple):
    """Events that may be the reason. Row by row: (candidates,); those of a match are side by side, and the one that
    counts is the first that is a reason.
    """

    match: Ints
    """The number of the match, ascending."""
    number: Ints
    """The number of the event."""


def may_be_forbidden(plan: Plan, near: NearMatches, order: EventOrder) -> Candidates:
    """The first events that the NOT which the change removes may forbid, by its lifted condition, in their order."""
    (stage,) = near.change.stages
    taken = near.taken
    before = last_before(stage, taken)
    place = order.places(taken.event[before])
    end = order.ends_of_key(place)
    follows = before + 1 < taken.end
    end[follows] = order.places(taken.event[before[follows] + 1])
    if plan.pattern.leaves[stage].contiguity is Contiguity.NOT_NEXT:
        end = np.minimum(place + 2, order.ends_of_key(place))
    where = order.with_bit(plan.conditions[stage].bit)
    first, last = np.searchsorted(where, place + 1), np.searchsorted(where, end)
    match, nth = _looked_at(last - first)
    return Candidates(match, order.number[where[first[match] + nth]])


def may_keep_out(plan: Plan, near: NearMatches, order: EventOrder) -> Candidates:
    """The last events that may keep the start of each match from starting, by the lifted condition of `begin_without`;
    the latest come first.
    """
    assert plan.pattern.without is not None
    start = order.places(near.taken.starts)
    since = order.time[start] - microseconds(plan.pattern.without.window)
    where = order.with_bit(plan.conditions[-1].bit)
    begin = np.searchsorted(where, order.begins_of_key(start))
    match, nth = _looked_at((end := np.searchsorted(where, start)) - begin)
    found = where[end[match] - 1 - nth]
    in_time = order.time[found] >= since[match]
    return Candidates(match[in_time], order.number[found[in_time]])


def may_end_loop(plan: Plan, near: NearMatches, order: EventOrder) -> Candidates:
    """The first events that may have ended the loop whose `until` the change removes: those from the loop's first event
    to its last one for which the lifted part of `until` holds, in their order.
    """
    assert near.change.until is not None
    taken = near.taken
    of_loop = np.flatnonzero(np.isin(taken.stage, [*near.change.stages]))
    matches, begin = np.unique(taken.match[of_loop], return_index=True)
    end = np.append(begin, len(of_loop))[1:]
    where = order.with_bit(plan.conditions[len(plan.pattern.leaves) + near.change.until].bit)
    first = np.searchsorted(where, order.places(taken.event[of_loop[begin]]))
    last = np.searchsorted(where, order.places(taken.event[of_loop[end - 1]]), side="right")
    nth_match, nth = _looked_at(last - first)
    return Candidates(matches[nth_match], order.number[where[first[nth_match] + nth]])


def _looked_at(counts: Ints) -> tuple[Ints, Ints]:
    """For each match and each of its events that are looked at, of so many: the match, and the event from 0."""
    counts = np.clip(counts, 0, _MOST_LOOKED_AT)
    match = np.repeat(np.arange(len(counts)), counts)
    return match, np.arange(len(match)) - np.repeat(np.cumsum(counts) - counts, counts)


def last_before(stage: int, taken: Taken) -> Ints:
    """For each match the place of the last event that a stage before the given one has taken; the first event if there
    is none.
    """
    places = np.where(taken.stage < stage, np.arange(len(taken.stage)), taken.begin[taken.match])
    last: Ints = np.maximum.reduceat(places, taken.begin) if len(places) else places
    return last
