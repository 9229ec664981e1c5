"""Finds the events that all conjuncts of a condition forbid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.candidates import Candidates
from cepheid.output.stages.near.found import first_of_each
from cepheid.output.stages.near.reasons import Known
from cepheid.output.stages.near.texts import joined, times_text
from cepheid.plan.stages.near.probes import Probe

TakenBefore = Callable[[int], TakenEvents]
"""The events that the match has taken, as the condition sees them, for the candidate in this row."""


def first_forbidden(
    probes: Sequence[Probe], candidates: Candidates, taken_before: TakenBefore, known: Known, name: str
) -> tuple[Ints, pa.Array]:
    """The row of the first candidate of each match for which all probes are true, and the event in words: its `name`,
    its time and the values that the probes look at. A probe that cannot be evaluated on its own counts as true.
    """
    if all(one.is_of_one_event for one in probes):
        rows, values = _of_groups(probes, candidates, known)
    else:
        rows, values = _one_by_one(probes, candidates, taken_before, known)
    event: pa.Array | str = name
    if known.times is not None:
        event = joined([event, "at", times_text(known.times.take(pa.array(candidates.number[rows])))])
    return rows, joined([event, values], "")


def _of_groups(probes: Sequence[Probe], candidates: Candidates, known: Known) -> tuple[Ints, pa.Array]:
    """The rows, and what follows the events in words. The probes are evaluated once for all events that are alike to
    them.
    """
    group, alike = known.events.alike(probes, candidates.number)
    found = [_forbidden(probes, (), event) for event in alike]
    rows = np.flatnonzero(np.array([one is not None for one in found], np.bool_)[group])
    rows = rows[first_of_each(candidates.match[rows])]
    return rows, pa.array([one or "" for one in found], pa.string()).take(pa.array(group[rows]))


def _one_by_one(
    probes: Sequence[Probe], candidates: Candidates, taken_before: TakenBefore, known: Known
) -> tuple[Ints, pa.Array]:
    """The same for probes that read the events that the match has taken before."""
    rows, values, last_match = list[int](), list[str](), NONE
    each = zip(candidates.match.tolist(), known.events.events(candidates.number), strict=True)
    for row, (match, event) in enumerate(each):
        if match == last_match:
            continue
        found = _forbidden(probes, taken_before(row), event)
        if found is not None:
            rows.append(row)
            values.append(found)
            last_match = match
    return np.array(rows, np.int64), pa.array(values, pa.string())


def _forbidden(probes: Sequence[Probe], taken: TakenEvents, event: Event) -> str | None:
    """The values that the probes look at, in words, to be appended to the event; None if one of them is not true."""
    found = [evaluated(probe, taken, event) for probe in probes]
    if not all(one is None or one.result is True for one in found):
        return None
    return "".join(f", {one.values_text}" for one in found if one is not None and one.values_text)
