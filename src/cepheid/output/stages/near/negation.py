"""Reasons in an event that a NOT forbids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.candidates import Candidates, last_before, may_be_forbidden
from cepheid.output.stages.near.found import NearMatches, first_of_each
from cepheid.output.stages.near.reasons import Known, Reasons
from cepheid.output.stages.near.texts import joined, times_text
from cepheid.plan.stages.near.probes import Probe


def of_negation(near: NearMatches, known: Known) -> Reasons:
    """The first event that the NOT forbids."""
    (stage,) = near.change.stages
    taken, probes = near.taken, known.events.probes.each[stage]
    candidates = may_be_forbidden(known.plan, near, known.order)
    look = _of_groups if all(one.is_of_one_event for one in probes) else _one_by_one
    rows, values = look(probes, near, candidates, known)
    match, at = candidates.match[rows], candidates.number[rows]
    event: pa.Array | str = known.plan.pattern.leaves[stage].name
    if known.times is not None:
        event = joined([event, "at", times_text(known.times.take(pa.array(at)))])
    text = joined([event, values], "")
    count = len(rows)
    reached = taken.stage[last_before(stage, taken)[match]]
    return Reasons(text, match, reached, at, np.full(count, np.nan), np.full(count, 0.5), np.zeros(count, np.bool_))


def _of_groups(probes: Sequence[Probe], _: NearMatches, candidates: Candidates, known: Known) -> tuple[Ints, pa.Array]:
    """The row of the first forbidden candidate of each match, and what follows it in words. The probes are evaluated
    once for all events that are alike to them.
    """
    group, alike = known.events.alike(probes, candidates.number)
    found = [_forbidden(probes, (), event) for event in alike]
    rows = np.flatnonzero(np.array([one is not None for one in found], np.bool_)[group])
    rows = rows[first_of_each(candidates.match[rows])]
    return rows, pa.array([one or "" for one in found], pa.string()).take(pa.array(group[rows]))


def _one_by_one(
    probes: Sequence[Probe], near: NearMatches, candidates: Candidates, known: Known
) -> tuple[Ints, pa.Array]:
    """The same for probes that read the events that the match has taken before."""
    (stage,) = near.change.stages
    taken, last_match = near.taken, NONE
    events, begins, ends = (
        known.events.with_stages(taken),
        taken.begin.tolist(),
        (last_before(stage, taken) + 1).tolist(),
    )
    rows, values = list[int](), list[str]()
    each = zip(candidates.match.tolist(), known.events.events(candidates.number), strict=True)
    for row, (match, event) in enumerate(each):
        if match == last_match:
            continue
        found = _forbidden(probes, events[begins[match] : ends[match]], event)
        if found is not None:
            rows.append(row)
            values.append(found)
            last_match = match
    return np.array(rows, np.int64), pa.array(values, pa.string())


def _forbidden(probes: Sequence[Probe], taken: TakenEvents, event: Event) -> str | None:
    """The values that the probes look at, in words, to be appended to the event; None if the event is not forbidden. A
    probe that cannot be evaluated on its own counts as true.
    """
    found = [evaluated(probe, taken, event) for probe in probes]
    if not all(one is None or one.result is True for one in found):
        return None
    return "".join(f", {one.values_text}" for one in found if one is not None and one.values_text)
