"""Reasons in a condition that is not met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.reference_events import Event
from cepheid.output.conditions import Evaluated
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.found import NearMatches, Taken
from cepheid.output.stages.near.reasons import Known, Reasons
from cepheid.output.stages.near.rows_of_matches import MatchRows
from cepheid.output.stages.near.starts import starting_stage
from cepheid.output.stages.near.unmet import Unmet, both, evaluation, unmet_of
from cepheid.plan.stages.near.probes import Probe


def of_condition(near: NearMatches, known: Known) -> Reasons:
    """The first event that does not meet the conjunct."""
    change, taken = near.change, near.taken
    assert change.conjunct is not None
    (stage,) = change.stages
    probe = known.events.probes.each[stage][change.conjunct]
    places, unmet = _first(probe, taken, np.flatnonzero(taken.stage == stage), known)
    reached = _reached(taken, places, known)
    return Reasons(
        unmet.text, taken.match[places], reached, taken.event[places], unmet.off_by, unmet.far, unmet.is_null
    )


def _first(probe: Probe, taken: Taken, places: Ints, known: Known) -> tuple[Ints, Unmet]:
    """The first of the places in each match where the probe is not true, and why. It is evaluated for whole columns,
    and one by one for the matches in which these are not sure.
    """
    if probe.is_of_one_event and not any(pa.types.is_floating(side.script.type) for side in probe.sides):
        return _first_of_groups(probe, taken, places, known)  # doubles are rarely alike
    found = evaluation(probe, MatchRows(taken, taken.match[places], places, taken.event[places], known.events))
    if found is None:
        return _first_one_by_one(probe, taken, places, known)
    flags = np.zeros(len(taken.event), np.bool_)
    flags[places] = ~(found.result.is_true & found.sure)
    first = taken.first_with(flags)
    rows = np.searchsorted(places, first)
    sure = found.sure[rows]
    unsure = np.isin(taken.match[places], taken.match[first[~sure]])
    others, why = _first_one_by_one(probe, taken, places[unsure], known)
    return np.append(first[sure], others), both(found.take(rows[sure]).unmet, why)


def _first_of_groups(probe: Probe, taken: Taken, places: Ints, known: Known) -> tuple[Ints, Unmet]:
    """The first of the places in each match where the probe is not true; it is evaluated once for all events that are
    alike to it.
    """
    group, alike = known.events.alike([probe], taken.event[places])
    each = [evaluated(probe, (), event) for event in alike]
    met = np.array([_is_met(one) for one in each], np.bool_)
    flags = np.zeros(len(taken.event), np.bool_)
    flags[places] = ~met[group]
    first = taken.first_with(flags)
    return first, unmet_of(each).take(group[np.searchsorted(places, first)])


def _first_one_by_one(probe: Probe, taken: Taken, places: Ints, known: Known) -> tuple[Ints, Unmet]:
    """The same for a probe that reads the events that the match has taken before."""
    first, each, last_match = list[int](), list[Evaluated | None](), NONE
    events = known.events.with_stages(taken) if len(places) else ()
    matches, begins = taken.match[places].tolist(), taken.begin[taken.match[places]].tolist()
    for place, match, begin in zip(places.tolist(), matches, begins, strict=True):
        if match == last_match:
            continue
        found = evaluated(probe, events[begin:place], events[place][1])
        if not _is_met(found):
            first.append(place)
            each.append(found)
            last_match = match
    return np.array(first, np.int64), unmet_of(each)


def _is_met(found: Evaluated | None) -> bool:
    return found is not None and found.result is True


def _reached(taken: Taken, places: Ints, known: Known) -> Int32s:
    """The stage before each place. For the first event of a match it is the stage of the unchanged pattern that takes
    the event as a start, NONE if there is none.
    """
    reached = taken.stage[places - 1]
    starts = taken.is_first[places]
    reached[starts] = starting_stages(taken.event[places[starts]], known)
    return reached


def starting_stages(numbers: Ints, known: Known) -> Int32s:
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
