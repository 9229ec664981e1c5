"""Why a start needs a change: the first event of its match that the unchanged pattern does not take there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.events.batch import python_values
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.python_functions import Value
from cepheid.lang.duration import format_duration, microseconds
from cepheid.lang.stages.pattern import Contiguity
from cepheid.output.conditions import Evaluated
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.found import EventOrder, Events, NearMatches
from cepheid.output.stages.near.starts import starting_stage
from cepheid.output.values import plain_text
from cepheid.plan.stages.near.changes import Change, Kind
from cepheid.plan.stages.near.probes import Probe, Probes
from cepheid.plan.stages.plan import Plan

_MINUTE = 60_000_000
_SOME_BETWEEN = 4
"""So many events between are neither near nor far."""
_MOST_LOOKED_AT = 20
"""The most events that are looked at for the one that a NOT forbids."""


@dataclass(frozen=True)
class Reason:
    """Why a start needs a change."""

    reached: int
    """The stage of the last event before the change is needed."""
    at: int
    """The number of the event that needs the change."""
    text: str
    off_by: float | None
    """How far off: the distance of the sides of a comparison in their unit, minutes for times, windows and gaps, the
    number of events between where contiguity is strict. None: there is no distance.
    """
    far: float
    """The same between 0 and 1, to compare it across units."""
    is_null: bool = False
    """Whether a condition is unknown because a value is NULL."""


class _Verdict(NamedTuple):
    """Whether an event meets a conjunct, and otherwise the parts of the reason."""

    is_met: bool
    text: str
    off_by: float | None
    far: float
    is_null: bool


class Reasons:
    """Finds the reasons for the matches of changed patterns."""

    def __init__(
        self,
        pattern: CompiledPattern,
        probes: Probes,
        order: EventOrder,
        events: Mapping[int, Event],
        times: pa.ChunkedArray | None,
    ) -> None:
        """`pattern` is the unchanged one. `events` has the events of `looked_at` by number, with the values of the
        probes; `times` has the times of all events by number, as they were given, None in processing order.
        """
        self._plan = pattern.plan
        self._automaton = pattern.automaton
        self._probes = probes
        self._order = order
        self._events = events
        self._times = times
        self._verdicts: dict[tuple[int, tuple[Value, ...]], _Verdict] = {}
        self._of: Mapping[Kind, Callable[[Change, Events], Reason | None]] = {
            Kind.CONDITION: self._of_condition,
            Kind.WITHIN: self._of_window,
            Kind.GAP: self._of_gap,
            Kind.NOT: self._of_negation,
            Kind.CONTIGUITY: self._of_contiguity,
        }

    def of(self, change: Change, match: Events) -> Reason | None:
        """The reason why the start of the match needs the change; None if it is no start without the change."""
        return self._of[change.kind](change, match)

    def place(self, number: int) -> int:
        """The place of the event with the number in the order of the events."""
        return self._order.place(number)

    def _of_condition(self, change: Change, match: Events) -> Reason | None:
        assert change.conjunct is not None
        (stage,) = change.stages
        probe = self._probes.each[stage][change.conjunct]
        for place, (taking, number) in enumerate(match):
            if taking != stage:
                continue
            verdict = self._verdict(probe, match[:place], self._events[number])
            if verdict.is_met:
                continue
            reached = match[place - 1][0] if place else self._starting_stage(number)
            if reached is None:
                return None
            return Reason(reached, number, verdict.text, verdict.off_by, verdict.far, verdict.is_null)
        return self._somehow(match)

    def _verdict(self, probe: Probe, before: Events, event: Event) -> _Verdict:
        """What the probe says of the event; it is looked up if events with the same values have come before."""
        if not probe.is_of_one_event:
            return _verdict(evaluated(probe, self._taken(before), event))
        known = id(probe), event.values
        if known not in self._verdicts:
            self._verdicts[known] = _verdict(evaluated(probe, (), event))
        return self._verdicts[known]

    def _starting_stage(self, number: int) -> int | None:
        """The stage of the unchanged pattern that takes the event with the number as a start; None if none does.
        `begin_without` allows it, as it does so with the change.
        """
        event, each, automaton = self._events[number], self._probes.each, self._automaton

        def holds(condition: int) -> bool:
            if automaton.without is not None and condition == automaton.without.condition:
                return False
            found = (evaluated(probe, (), event) for probe in each[condition])
            return all(one is not None and one.result is True for one in found)

        return starting_stage(automaton, holds)

    def _of_window(self, change: Change, match: Events) -> Reason | None:
        assert change.length is not None
        window, start = microseconds(change.length), self._order.time_of(match[0][1])
        for place, (_, number) in enumerate(match):
            if (needed := self._order.time_of(number) - start) >= window:
                return _too_late(match, place, needed, window)
        return self._somehow(match)

    def _of_gap(self, change: Change, match: Events) -> Reason | None:
        assert change.length is not None
        length = microseconds(change.length)
        for place in _steps(change, match):
            before, after = (self._order.time_of(number) for _, number in match[place - 1 : place + 1])
            if after - before >= length:
                return _too_late(match, place, after - before, length)
        return self._somehow(match)

    def _of_contiguity(self, change: Change, match: Events) -> Reason | None:
        for place in _steps(change, match):
            before, after = (self._order.place(number) for _, number in match[place - 1 : place + 1])
            if between := after - before - 1:
                first = int(self._order.number[before + 1])
                text = "1 event between" if between == 1 else f"{between} events between"
                if self._times is not None:
                    text += f", {'' if between == 1 else 'the first '}{self._at(first)}"
                return Reason(match[place - 1][0], first, text, float(between), between / (between + _SOME_BETWEEN))
        return self._somehow(match)

    def _of_negation(self, change: Change, match: Events) -> Reason | None:
        (stage,) = change.stages
        before = _before(stage, match)
        taken = self._taken(match[: before + 1])
        for number in may_be_forbidden(self._plan, change, match, self._order).tolist():
            found = [evaluated(probe, taken, self._events[number]) for probe in self._probes.each[stage]]
            if all(one is None or one.result is True for one in found):
                values = [one.values_text for one in found if one is not None and one.values_text]
                name = self._plan.pattern.leaves[stage].name
                event = name if self._times is None else f"{name} {self._at(number)}"
                return Reason(match[before][0], number, ", ".join([event, *values]), None, 0.5)
        return self._somehow(match)

    def _taken(self, match: Events) -> TakenEvents:
        return tuple((stage, self._events[number]) for stage, number in match)

    def _somehow(self, match: Events) -> Reason:
        """The reason where no single event needs the change, as when another loop takes fewer events with it."""
        stage, number = match[-1]
        return Reason(match[-2][0] if len(match) > 1 else stage, number, "the match needs it", None, 1.0)

    def _at(self, number: int) -> str:
        """The time of the event in words, as the column `at` has it."""
        assert self._times is not None
        (time,) = python_values(self._times.slice(number, 1))
        return f"at {plain_text(time)}"


def _verdict(found: Evaluated | None) -> _Verdict:
    if found is None:
        return _Verdict(is_met=False, text="it is not met", off_by=None, far=0.5, is_null=False)
    if found.result is True:
        return _Verdict(is_met=True, text="", off_by=None, far=0.0, is_null=False)
    return _Verdict(
        is_met=False,
        text=found.values_text or "it is not met",
        off_by=found.distance,
        far=found.relative_distance,
        is_null=found.result is None,
    )


def looked_at(plan: Plan, found: Sequence[NearMatches], order: EventOrder) -> Ints:
    """The numbers of the events whose values the reasons need, each once."""
    numbers = [np.empty(0, np.int64)]
    for near in found:
        if near.change.kind in (Kind.CONDITION, Kind.NOT):
            numbers.append(near.taken.event)
        if near.change.kind is Kind.NOT:
            numbers += [may_be_forbidden(plan, near.change, match, order) for match in near.taken.each]
    return np.unique(np.concatenate(numbers))


def may_be_forbidden(plan: Plan, change: Change, match: Events, order: EventOrder) -> Ints:
    """The numbers of the first events that the NOT which the change removes may forbid, by its lifted condition."""
    (stage,) = change.stages
    before = _before(stage, match)
    first = order.place(match[before][1]) + 1
    end = order.end_of_key(first - 1)
    if before + 1 < len(match):
        end = order.place(match[before + 1][1])
    if plan.pattern.leaves[stage].contiguity is Contiguity.NOT_NEXT:
        end = min(first + 1, order.end_of_key(first - 1))
    return order.first_with(plan.conditions[stage].bit, first, end, _MOST_LOOKED_AT)


def _before(stage: int, match: Events) -> int:
    """The place of the last event that a stage before the given one has taken."""
    return max((place for place, (taking, _) in enumerate(match) if taking < stage), default=0)


def _steps(change: Change, match: Events) -> Iterator[int]:
    """The places of the events before which the changed stages may have to wait longer, or for other events."""
    for place in range(1, len(match)):
        before, after = match[place - 1][0], match[place][0]
        if after not in change.stages:
            continue
        inside = before in change.stages
        if (change.kind is Kind.GAP and not change.in_loop) or inside == change.in_loop:
            yield place


def _too_late(match: Events, place: int, needed: int, length: int) -> Reason:
    over = needed - length
    how = f"{_length(over)} too long" if over else "which is not less"
    return Reason(match[place - 1][0], match[place][1], f"{_length(needed)}, {how}", over / _MINUTE, over / needed)


def _length(microseconds_: int) -> str:
    return format_duration(timedelta(microseconds=microseconds_))
