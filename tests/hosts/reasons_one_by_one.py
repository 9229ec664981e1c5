"""The definition of reasons: found for one match after the other, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from cepheid.errors import with_noun
from cepheid.events.batch import python_values
from cepheid.kernel.reference_events import TakenEvents
from cepheid.lang.duration import format_duration, microseconds
from cepheid.lang.stages.pattern import Contiguity
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.found import NearMatches
from cepheid.output.stages.near.reasons import NOT_BEGUN, Known
from cepheid.output.stages.near.starts import starting_stage
from cepheid.output.values import plain_text
from cepheid.plan.stages.near.changes import Change, Kind

Match = list[tuple[int, int]]
"""The events of a match in order, each as its stage and its number."""


class Reason(NamedTuple):
    reached: int
    at: int
    text: str
    off_by: float | None
    far: float
    is_null: bool


class OneByOne:
    """Finds the reason for each match."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.place = {number: place for place, number in enumerate(known.order.number.tolist())}

    def of_each(self, near: NearMatches) -> list[tuple[int, Reason]]:
        """The number of each match that has a reason, and the reason."""
        found = {
            Kind.CONDITION: self.of_condition,
            Kind.WITHIN: self.of_window,
            Kind.GAP: self.of_gap,
            Kind.NOT: self.of_negation,
            Kind.CONTIGUITY: self.of_contiguity,
            Kind.BEGIN_WITHOUT: self.of_begin_without,
            Kind.UNTIL: self.of_until,
            Kind.FEWER: self.of_fewer,
            Kind.MORE: self.of_more,
        }[near.change.kind]
        reasons = (found(near.change, match) for match in matches(near))
        return [(number, reason) for number, reason in enumerate(reasons) if reason is not None]

    def of_condition(self, change: Change, match: Match) -> Reason | None:
        assert change.conjunct is not None
        (stage,) = change.stages
        probe = self.known.events.probes.each[stage][change.conjunct]
        for place, (taking, number) in enumerate(match):
            if taking != stage:
                continue
            (event,) = self.known.events.events(np.array([number]))
            found = evaluated(probe, self.taken(match[:place]), event)
            if found is not None and found.result is True:
                continue
            reached = match[place - 1][0] if place else self.starting_stage(number)
            if reached is None:
                return None
            if found is None:
                return Reason(reached, number, "it is not met", None, 0.5, is_null=False)
            text, is_null = found.values_text or "it is not met", found.result is None
            return Reason(reached, number, text, found.distance, found.relative_distance, is_null)
        return somehow(match)

    def starting_stage(self, number: int) -> int | None:
        automaton, each = self.known.automaton, self.known.events.probes.each
        (event,) = self.known.events.events(np.array([number]))

        def holds(condition: int) -> bool:
            if automaton.without is not None and condition == automaton.without.condition:
                return False
            found = (evaluated(probe, (), event) for probe in each[condition])
            return all(one is not None and one.result is True for one in found)

        return starting_stage(automaton, holds)

    def of_window(self, change: Change, match: Match) -> Reason:
        assert change.length is not None
        window, start = microseconds(change.length), self.time_of(match[0][1])
        for place, (_, number) in enumerate(match):
            if (needed := self.time_of(number) - start) >= window:
                return too_late(match, place, needed, window)
        return somehow(match)

    def of_gap(self, change: Change, match: Match) -> Reason:
        assert change.length is not None
        length = microseconds(change.length)
        for place in steps(change, match):
            needed = self.time_of(match[place][1]) - self.time_of(match[place - 1][1])
            if needed >= length:
                return too_late(match, place, needed, length)
        return somehow(match)

    def of_contiguity(self, change: Change, match: Match) -> Reason:
        for place in steps(change, match):
            before, after = (self.place[number] for _, number in match[place - 1 : place + 1])
            if between := after - before - 1:
                first = int(self.known.order.number[before + 1])
                text = "1 event between" if between == 1 else f"{between} events between"
                text += f", {'' if between == 1 else 'the first '}{self.at(first)}"
                far = between / (between + 4)
                return Reason(match[place - 1][0], first, text, float(between), far, is_null=False)
        return somehow(match)

    def of_negation(self, change: Change, match: Match) -> Reason:
        (stage,) = change.stages
        before = max((place for place, (taking, _) in enumerate(match) if taking < stage), default=0)
        taken = self.taken(match[: before + 1])
        for number in self.may_be_forbidden(stage, before, match):
            (event,) = self.known.events.events(np.array([number]))
            found = [evaluated(probe, taken, event) for probe in self.known.events.probes.each[stage]]
            if all(one is None or one.result is True for one in found):
                values = [one.values_text for one in found if one is not None and one.values_text]
                name = self.known.plan.pattern.leaves[stage].name
                text = ", ".join([f"{name} {self.at(number)}", *values])
                return Reason(match[before][0], number, text, None, 0.5, is_null=False)
        return somehow(match)

    def of_begin_without(self, _: Change, match: Match) -> Reason:
        without, order = self.known.plan.pattern.without, self.known.order
        assert without is not None
        start, probes = self.place[match[0][1]], self.known.events.probes.each[-1]
        bit = self.known.plan.conditions[-1].bit
        (_, first), *_ = self.taken(match[:1])
        begin = max((end for end in order.key_end.tolist() if end <= start), default=0)
        for place in range(start - 1, begin - 1, -1):
            number = int(order.number[place])
            if self.time_of(match[0][1]) - self.time_of(number) > microseconds(without.window):
                break
            if bit is not None and not order.mask[place] >> bit & 1:
                continue
            (event,) = self.known.events.events(np.array([number]))
            found = [evaluated(probe, ((0, first),), event) for probe in probes]
            if all(one is None or one.result is True for one in found):
                values = [one.values_text for one in found if one is not None and one.values_text]
                text = ", ".join([f"{without.name} {self.at(number)}", *values])
                return Reason(NOT_BEGUN, number, text, None, 0.5, is_null=False)
        return somehow(match)

    def of_until(self, change: Change, match: Match) -> Reason | None:
        order, condition = self.known.order, len(self.known.plan.pattern.leaves) + (change.until or 0)
        bit, probes = self.known.plan.conditions[condition].bit, self.known.events.probes.each[condition]
        of_loop = [self.place[number] for stage, number in match if stage in change.stages]
        for place in range(min(of_loop), max(of_loop) + 1) if of_loop else ():
            if bit is not None and not order.mask[place] >> bit & 1:
                continue
            number = int(order.number[place])
            before = [one for one in match if self.place[one[1]] < place]
            (event,) = self.known.events.events(np.array([number]))
            found = [evaluated(probe, self.taken(before), event) for probe in probes]
            if all(one is None or one.result is True for one in found):
                values = [one.values_text for one in found if one is not None and one.values_text]
                reached = before[-1][0] if before else self.starting_stage(number)
                text = ", ".join([f"until {self.at(number)}", *values])
                return None if reached is None else Reason(reached, number, text, None, 0.5, is_null=False)
        return somehow(match)

    def of_fewer(self, change: Change, match: Match) -> Reason:
        assert change.count is not None
        stage, leaves = change.stages.start, self.known.plan.pattern.leaves
        places = [place for place, (taking, _) in enumerate(match) if taking == stage]
        if not self.is_alone(change) or not 0 < len(places) < change.count:
            return somehow(match)
        at = match[min(places[-1] + 1, len(match) - 1)][1]
        if stage == len(leaves) - 1:
            return Reason(stage, at, "fewer came", None, 0.5, is_null=False)
        off = change.count - len(places)
        text = f"{with_noun(len(places), 'event')}, {off} too few"
        return Reason(stage, at, text, float(off), off / change.count, is_null=False)

    def of_more(self, change: Change, match: Match) -> Reason:
        assert change.count is not None
        numbers = [number for taking, number in match if taking == change.stages.start]
        if not self.is_alone(change) or len(numbers) <= change.count:
            return somehow(match)
        off = len(numbers) - change.count
        text = f"{with_noun(len(numbers), 'event')}, {off} too many"
        at = numbers[change.count]
        return Reason(change.stages.start, at, text, float(off), off / len(numbers), is_null=False)

    def is_alone(self, change: Change) -> bool:
        stages, leaves = self.known.plan.pattern.stages, self.known.plan.pattern.leaves
        return len(change.stages) == 1 and leaves[change.stages.start] in stages

    def may_be_forbidden(self, stage: int, before: int, match: Match) -> Iterator[int]:
        order, bit = self.known.order, self.known.plan.conditions[stage].bit
        first = self.place[match[before][1]] + 1
        end = next(end for end in order.key_end.tolist() if end >= first)
        if self.known.plan.pattern.leaves[stage].contiguity is Contiguity.NOT_NEXT:
            end = min(end, first + 1)
        elif before + 1 < len(match):
            end = self.place[match[before + 1][1]]
        for place in range(first, end):
            if bit is None or order.mask[place] >> bit & 1:
                yield int(order.number[place])

    def taken(self, match: Match) -> TakenEvents:
        events = self.known.events.events(np.array([number for _, number in match], np.int64))
        return tuple(zip((stage for stage, _ in match), events, strict=True))

    def time_of(self, number: int) -> int:
        return int(self.known.order.time[self.place[number]])

    def at(self, number: int) -> str:
        assert self.known.times is not None
        (time,) = python_values(self.known.times.slice(number, 1))
        return f"at {plain_text(time)}"


def matches(near: NearMatches) -> Iterator[Match]:
    events, begin = [*zip(near.taken.stage.tolist(), near.taken.event.tolist(), strict=True)], 0
    for end in near.taken.end.tolist():
        yield events[begin:end]
        begin = end


def steps(change: Change, match: Match) -> Iterator[int]:
    """The places of the events before which the changed stages may have to wait longer, or for other events."""
    for place in range(1, len(match)):
        before, after = match[place - 1][0], match[place][0]
        inside = before in change.stages
        allowed = (change.kind is Kind.GAP and not change.in_loop) or inside == change.in_loop
        if after in change.stages and allowed:
            yield place


def somehow(match: Sequence[tuple[int, int]]) -> Reason:
    stage, number = match[-1]
    return Reason(match[-2][0] if len(match) > 1 else stage, number, "the match needs it", None, 1.0, is_null=False)


def too_late(match: Match, place: int, needed: int, length: int) -> Reason:
    over = needed - length
    how = f"{in_words(over)} too long" if over else "which is not less"
    text = f"{in_words(needed)}, {how}"
    return Reason(match[place - 1][0], match[place][1], text, over / 60_000_000, over / needed, is_null=False)


def in_words(length: int) -> str:
    return format_duration(timedelta(microseconds=length))
