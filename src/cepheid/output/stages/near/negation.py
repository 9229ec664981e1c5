"""Reasons in an event that a NOT forbids, or with which `begin_without` forbids a start."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.reference_events import TakenEvents
from cepheid.output.stages.near.candidates import Candidates, last_before, may_be_forbidden, may_keep_out
from cepheid.output.stages.near.forbidden import first_forbidden
from cepheid.output.stages.near.found import NearMatches
from cepheid.output.stages.near.reasons import NOT_BEGUN, Known, Reasons


def of_negation(near: NearMatches, known: Known) -> Reasons:
    """The first event that the NOT forbids."""
    (stage,) = near.change.stages
    taken = near.taken
    before = last_before(stage, taken)
    begins, ends = taken.begin.tolist(), (before + 1).tolist()
    with_stages = cache(lambda: known.events.with_stages(taken))
    candidates = may_be_forbidden(known.plan, near, known.order)

    def taken_before(row: int) -> TakenEvents:
        match = candidates.match[row]
        return with_stages()[begins[match] : ends[match]]

    name = known.plan.pattern.leaves[stage].name
    rows, text = first_forbidden(known.events.probes.each[stage], candidates, taken_before, known, name)
    return _reasons(text, candidates, rows, taken.stage[before])


def of_begin_without(near: NearMatches, known: Known) -> Reasons:
    """The last event before that forbids the start. No stage is reached without the change."""
    without = known.plan.pattern.without
    assert without is not None
    starts = near.taken.starts

    def taken_before(row: int) -> TakenEvents:
        (start,) = known.events.events(starts[candidates.match[row : row + 1]])
        return ((0, start),)

    candidates = may_keep_out(known.plan, near, known.order)
    rows, text = first_forbidden(known.events.probes.each[-1], candidates, taken_before, known, without.name)
    return _reasons(text, candidates, rows, np.full(len(starts), NOT_BEGUN, np.int32))


def _reasons(text: pa.Array, candidates: Candidates, rows: Ints, reached: Int32s) -> Reasons:
    """The reasons in these rows; `reached` has the stage that each match has reached without the change."""
    match, count = candidates.match[rows], len(rows)
    unknown, far, is_null = np.full(count, np.nan), np.full(count, 0.5), np.zeros(count, np.bool_)
    return Reasons(text, match, reached[match], candidates.number[rows], unknown, far, is_null)
