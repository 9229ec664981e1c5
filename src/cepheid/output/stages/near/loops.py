"""Reasons in a loop: an event that ends it, or too few or too many events."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.reference_events import TakenEvents
from cepheid.output.stages.near.candidates import Candidates, may_end_loop
from cepheid.output.stages.near.conditions import starting_stages
from cepheid.output.stages.near.forbidden import first_forbidden
from cepheid.output.stages.near.found import NearMatches, Taken
from cepheid.output.stages.near.reasons import Floats, Known, Reasons, all_of
from cepheid.output.stages.near.texts import joined


def of_until(near: NearMatches, known: Known) -> Reasons:
    """The first event for which the `until` is true, among the events from the loop's first one to its last one."""
    assert near.change.until is not None
    taken, pattern = near.taken, known.plan.pattern
    candidates = may_end_loop(known.plan, near, known.order)
    ends = _ends_before(candidates, taken, known)
    with_stages = cache(lambda: known.events.with_stages(taken))

    def taken_before(row: int) -> TakenEvents:
        return with_stages()[taken.begin[candidates.match[row]] : ends[row]]

    probes = known.events.probes.each[len(pattern.leaves) + near.change.until]
    rows, text = first_forbidden(probes, candidates, taken_before, known, "until")
    match, at, count = candidates.match[rows], candidates.number[rows], len(rows)
    unknown, far, is_null = np.full(count, np.nan), np.full(count, 0.5), np.zeros(count, np.bool_)
    return Reasons(text, match, _reached(match, ends[rows], at, taken, known), at, unknown, far, is_null)


def _ends_before(candidates: Candidates, taken: Taken, known: Known) -> Ints:
    """For each candidate, the place after the last event that its match has taken before it."""
    order = known.order
    per_match = len(order.number) + 1
    numbers = taken.match * per_match + order.places(taken.event)
    ends: Ints = np.searchsorted(numbers, candidates.match * per_match + order.places(candidates.number))
    return ends


def _reached(match: Ints, end: Ints, at: Ints, taken: Taken, known: Known) -> Int32s:
    """The stage before each place; as in `of_condition`, if the match has taken nothing before."""
    reached = taken.stage[end - 1]
    starts = end == taken.begin[match]
    reached[starts] = starting_stages(at[starts], known)
    return reached


def of_fewer(near: NearMatches, known: Known) -> Reasons:
    """The event after a loop that has too few events. How many a last loop has is not known: each of them is the end of
    a match with the change.
    """
    assert near.change.count is not None
    taken, pattern, least = near.taken, known.plan.pattern, near.change.count
    stage = near.change.stages.start
    if not _is_alone(near, known):
        return all_of([])
    counts, last = _events_of(stage, taken)
    match = np.flatnonzero((counts > 0) & (counts < least))
    has, last = counts[match], last[match]
    following = np.minimum(last + 1, taken.end[match] - 1)
    text, off = _counted(has, least - has, "too few"), (least - has).astype(np.float64)
    far = off / least
    if stage == len(pattern.leaves) - 1:
        text = pa.repeat(pa.scalar("fewer came"), len(match))
        off, far = np.full_like(off, np.nan), np.full_like(off, 0.5)
    return _reasons(text, match, stage, taken.event[following], off_by=off, far=far)


def of_more(near: NearMatches, known: Known) -> Reasons:
    """The first event of a loop that is one too many."""
    assert near.change.count is not None
    taken, most = near.taken, near.change.count
    stage = near.change.stages.start
    if not _is_alone(near, known):
        return all_of([])
    counts, last = _events_of(stage, taken)
    match = np.flatnonzero(counts > most)
    has = counts[match]
    at = taken.event[last[match] - (has - most) + 1]
    off = (has - most).astype(np.float64)
    return _reasons(_counted(has, has - most, "too many"), match, stage, at, off_by=off, far=off / has)


def _is_alone(near: NearMatches, known: Known) -> bool:
    """Whether the loop is a stage outside all groups, so that its events are side by side in a match."""
    names = [stage.name for stage in known.plan.pattern.stages if not stage.group]
    return len(near.change.stages) == 1 and known.plan.pattern.leaves[near.change.stages.start].name in names


def _events_of(stage: int, taken: Taken) -> tuple[Ints, Ints]:
    """For each match, the number of events that the stage has taken, and the place of the last of them; 0 if it has
    none.
    """
    places = np.flatnonzero(taken.stage == stage)
    counts, last = np.bincount(taken.match[places], minlength=len(taken.end)), np.zeros(len(taken.end), np.int64)
    last[taken.match[places]] = places  # of the places of a match, the last one stays
    return counts, last


def _counted(count: Ints, off: Ints, how: str) -> pa.Array:
    noun = pa.array(np.where(count == 1, "event,", "events,"), pa.string())
    return joined([pa.array(count).cast(pa.string()), noun, pa.array(off).cast(pa.string()), how])


def _reasons(text: pa.Array, match: Ints, stage: int, at: Ints, *, off_by: Floats, far: Floats) -> Reasons:
    count = len(match)
    return Reasons(text, match, np.full(count, stage, np.int32), at, off_by, far, np.zeros(count, np.bool_))
