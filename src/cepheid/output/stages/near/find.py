"""Finds the reasons: for each match of a changed pattern, the first event that the unchanged one does not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import NONE
from cepheid.output.stages.near.conditions import of_condition
from cepheid.output.stages.near.found import NearMatches
from cepheid.output.stages.near.lengths import of_contiguity, of_gap, of_window
from cepheid.output.stages.near.loops import of_fewer, of_more, of_until
from cepheid.output.stages.near.negation import of_begin_without, of_negation
from cepheid.output.stages.near.reasons import NOT_BEGUN, Known, Reasons, all_of
from cepheid.plan.stages.near.changes import Kind

_OF: Mapping[Kind, Callable[[NearMatches, Known], Reasons]] = {
    Kind.CONDITION: of_condition,
    Kind.WITHIN: of_window,
    Kind.GAP: of_gap,
    Kind.NOT: of_negation,
    Kind.BEGIN_WITHOUT: of_begin_without,
    Kind.UNTIL: of_until,
    Kind.FEWER: of_fewer,
    Kind.MORE: of_more,
    Kind.CONTIGUITY: of_contiguity,
}


def reasons_for(near: NearMatches, known: Known) -> Reasons:
    """The reasons for the matches whose start is one without the change, too, in the order of the matches."""
    found = _OF[near.change.kind](near, known)
    reasons = all_of([found, _of_others(near, found)])
    order = np.argsort(reasons.match)
    return reasons.take(order[reasons.reached[order] != NONE])


def _of_others(near: NearMatches, found: Reasons) -> Reasons:
    """The reasons where no single event was found that needs the change, as when another loop takes fewer events with
    it.
    """
    taken = near.taken
    has_reason = np.zeros(len(taken.end), np.bool_)
    has_reason[found.match] = True
    match = np.flatnonzero(~has_reason)
    last, count = taken.end[match] - 1, len(match)
    before = np.maximum(last - 1, taken.begin[match])
    reached, event = taken.stage[before], taken.event[last]
    if near.change.kind is Kind.BEGIN_WITHOUT:
        reached, event = np.full(count, NOT_BEGUN, np.int32), taken.event[taken.begin[match]]
    text = pa.repeat(pa.scalar("the match needs it"), count)
    none, far, is_null = np.full(count, np.nan), np.ones(count), np.zeros(count, np.bool_)
    return Reasons(text, match, reached, event, none, far, is_null)
