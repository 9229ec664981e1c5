"""Reasons in a condition that is not met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.reference_events import Event
from cepheid.output.conditions import Evaluated
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.found import NearMatches, Taken
from cepheid.output.stages.near.reasons import Floats, Known, Reasons
from cepheid.output.stages.near.starts import starting_stage
from cepheid.plan.stages.near.probes import Probe


class _Unmet(NamedTuple):
    """Why events do not meet a condition. Row by row: (unmet,)."""

    text: pa.Array
    off_by: Floats
    far: Floats
    is_null: Flags

    def take(self, rows: Ints) -> _Unmet:
        return _Unmet(self.text.take(pa.array(rows)), self.off_by[rows], self.far[rows], self.is_null[rows])


def of_condition(near: NearMatches, known: Known) -> Reasons:
    """The first event that does not meet the conjunct."""
    change, taken = near.change, near.taken
    assert change.conjunct is not None
    (stage,) = change.stages
    probe = known.events.probes.each[stage][change.conjunct]
    first = _first_of_groups if probe.is_of_one_event else _first_one_by_one
    places, unmet = first(probe, taken, np.flatnonzero(taken.stage == stage), known)
    reached = _reached(taken, places, known)
    return Reasons(
        unmet.text, taken.match[places], reached, taken.event[places], unmet.off_by, unmet.far, unmet.is_null
    )


def _first_of_groups(probe: Probe, taken: Taken, places: Ints, known: Known) -> tuple[Ints, _Unmet]:
    """The first of the places in each match where the probe is not true; it is evaluated once for all events that are
    alike to it.
    """
    group, alike = known.events.alike([probe], taken.event[places])
    each = [evaluated(probe, (), event) for event in alike]
    met = np.array([_is_met(one) for one in each], np.bool_)
    flags = np.zeros(len(taken.event), np.bool_)
    flags[places] = ~met[group]
    first = taken.first_with(flags)
    return first, _unmet(each).take(group[np.searchsorted(places, first)])


def _first_one_by_one(probe: Probe, taken: Taken, places: Ints, known: Known) -> tuple[Ints, _Unmet]:
    """The same for a probe that reads the events that the match has taken before."""
    first, each, last_match = list[int](), list[Evaluated | None](), NONE
    events = known.events.with_stages(taken)
    matches, begins = taken.match[places].tolist(), taken.begin[taken.match[places]].tolist()
    for place, match, begin in zip(places.tolist(), matches, begins, strict=True):
        if match == last_match:
            continue
        found = evaluated(probe, events[begin:place], events[place][1])
        if not _is_met(found):
            first.append(place)
            each.append(found)
            last_match = match
    return np.array(first, np.int64), _unmet(each)


def _is_met(found: Evaluated | None) -> bool:
    return found is not None and found.result is True


def _unmet(each: Sequence[Evaluated | None]) -> _Unmet:
    """The parts of the reasons; None: it cannot be evaluated on its own."""
    texts = ["" if one is None else one.values_text for one in each]
    return _Unmet(
        pa.array([text or "it is not met" for text in texts], pa.string()),
        np.array([None if one is None else one.distance for one in each], np.float64),
        np.array([0.5 if one is None else one.relative_distance for one in each], np.float64),
        np.array([one is not None and one.result is None for one in each], np.bool_),
    )


def _reached(taken: Taken, places: Ints, known: Known) -> Int32s:
    """The stage before each place. For the first event of a match it is the stage of the unchanged pattern that takes
    the event as a start, NONE if there is none.
    """
    reached = taken.stage[places - 1]
    starts = taken.is_first[places]
    reached[starts] = _starting_stages(taken.event[places[starts]], known)
    return reached


def _starting_stages(numbers: Ints, known: Known) -> Int32s:
    """The stages of the unchanged pattern that take these events as starts."""
    stages = [starting_stage(known.automaton, _met_by(event, known)) for event in known.events.events(numbers)]
    return np.array([NONE if stage is None else stage for stage in stages], np.int32)


def _met_by(event: Event, known: Known) -> Callable[[int], bool]:
    """Says which conditions the event meets. That of `begin_without` counts as not met: with the change it is not."""
    without, each = known.automaton.without, known.events.probes.each

    def holds(condition: int) -> bool:
        if without is not None and condition == without.condition:
            return False
        return all(_is_met(evaluated(probe, (), event)) for probe in each[condition])

    return holds
