"""The events that a NOT may forbid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.lang.stages.pattern import Contiguity
from cepheid.output.stages.near.found import EventOrder, NearMatches, Taken
from cepheid.plan.stages.plan import Plan

_MOST_LOOKED_AT = 20
"""The most events that are looked at for the one that a NOT forbids."""


class Candidates(NamedTuple):
    """The first events that a NOT may forbid. Row by row: (candidates,), ascending by match and place."""

    match: Ints
    """The number of the match."""
    number: Ints
    """The number of the event."""


def may_be_forbidden(plan: Plan, near: NearMatches, order: EventOrder) -> Candidates:
    """The first events that the NOT which the change removes may forbid, by its lifted condition."""
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
    counts = np.clip(last - first, 0, _MOST_LOOKED_AT)
    match = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(match)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Candidates(match, order.number[where[first[match] + within]])


def last_before(stage: int, taken: Taken) -> Ints:
    """For each match the place of the last event that a stage before the given one has taken; the first event if there
    is none.
    """
    places = np.where(taken.stage < stage, np.arange(len(taken.stage)), taken.begin[taken.match])
    last: Ints = np.maximum.reduceat(places, taken.begin) if len(places) else places
    return last
