"""The matches of events that rows open and close: what a row changes about them, and when they are emitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cepheid.errors import LimitExceeded
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import BEGINNING, COMPLETION, INSERTION, LATE, OPEN_END, RETRACTION
from cepheid.kernel.intervals.reference import Interval
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.consistency import Consistency, End
from cepheid.matchers.intervals.uncertain.certain import Certainty, Times, times_of
from cepheid.matchers.intervals.uncertain.changeable import Changeable
from cepheid.matchers.intervals.uncertain.held_events import HeldEvent, HeldEvents
from cepheid.matchers.intervals.uncertain.matches import EventNames, UncertainMatch, UncertainMatches
from cepheid.matchers.intervals.uncertain.reach import Reach, Reaches
from cepheid.plan.intervals.plan import IntervalPlan


class Change(NamedTuple):
    """A row of the output."""

    event: int
    """The position of a late event; otherwise 0."""
    sign: int
    clock: int
    start: int
    end: int
    match: tuple[int, ...]


class OpenMatching:
    """The matches, their events, and the clock. It gets each event with its candidates: the positions of the events of
    every match that the event may complete.
    """

    def __init__(self, plan: IntervalPlan, lateness: End, *, delay: int | None, revises: bool) -> None:
        self._plan, self._delay, self._revises = plan, delay, revises
        self._certainty, self._reaches = Certainty(plan, lateness), Reaches(plan)
        self.clock = BEGINNING
        self.events = HeldEvents(plan.variable_bits[plan.positives :])
        self.matches = UncertainMatches(plan.pattern.consistency, revises=revises)
        self.changes: list[Change] = []
        """What was emitted since the caller has taken it."""

    @property
    def horizon(self) -> int:
        return BEGINNING if self._delay is None or self.clock == BEGINNING else self.clock - self._delay

    @property
    def _settles(self) -> bool:
        """Whether matches are emitted when no revision in time can undo them."""
        return self._revises and self.matches.consistency is Consistency.EARLIEST

    def change(self, consistency: Consistency) -> None:
        """Changes the consistency. Where that decides what is noted of matches, they are noted anew."""
        self.matches.consistency = consistency
        for match in [*self.matches.all.values()] if self._settles else ():
            self.matches.remove(match)
            if (now := self.match_of(match.positions)) is not None:
                now.is_out = match.is_out
                self.matches.add(now)

    @property
    def changeable(self) -> Changeable:
        return Changeable(self.events, self.horizon, self._revises)

    @property
    def open_matches(self) -> int:
        """Matches that a row in time may still change."""
        each, changeable = self.matches.all.values(), self.changeable
        return sum(not (changeable.is_final(match) or changeable.is_impossible(match)) for match in each)

    def arrive(self, event: HeldEvent, candidates: Sequence[tuple[int, ...]], *, is_known: bool) -> None:
        """Adds the event. If it `is_known`, it has another end than before; otherwise a former event with its id is
        final and not needed.
        """
        if not is_known and event.name in self.events:
            self._retire(event.name)
        self.events.add(event)
        former = self.matches.with_event(event.name) if is_known else ()
        found = self._found(candidates) if candidates else {}
        for match in former:
            self.matches.remove(match)
            now = found.get(match.names)
            if match.is_out and (now is None or self._is_wrong(now)):
                self._emit(RETRACTION, match)
            elif match.is_out and now is not None:
                now.is_out = True
                self._emit(COMPLETION, now)
        for match in found.values():
            self.matches.add(match)
        if numbers := self.events.negations_of(event):
            self._forbid(event, numbers)

    def _retire(self, name: bytes) -> None:
        """Forgets an event, and the matches with it or that it forbids, which are final."""
        for match in [*self.matches.with_event(name), *self.matches.noting(name)]:
            if name in match.names or (match.blocker is not None and match.blocker.name == name):
                self.matches.remove(match)
        self.events.drop(name)

    def uses(self, name: bytes) -> bool:
        """Whether a match that a row in time may change, or that is to be emitted, contains the event."""
        changeable = self.changeable
        return not all(_is_over(match, changeable) for match in self.matches.with_event(name))

    def _found(self, candidates: Sequence[tuple[int, ...]]) -> dict[EventNames, UncertainMatch]:
        """The candidates that are matches at some time, if the events do not change."""
        most = self._plan.limits.max_matches_per_event
        found: dict[EventNames, UncertainMatch] = {}
        for positions in candidates:
            if all(map(self.events.is_there, positions)) and (match := self.match_of(positions)) is not None:
                found[match.names] = match
            if len(found) > most:
                what = f"an event completes more than {most:,} matches (max_matches_per_event)"
                raise LimitExceeded(f"{what}. Give the pattern a shorter within, or raise the limit")
        return found

    def match_of(self, positions: tuple[int, ...]) -> UncertainMatch | None:
        """The match of these events; None if it is not certain before an event is closed."""
        events = self.events.at(positions)
        times = [event.times for event in events]
        holds_from = self._certainty.holds_from(times)
        if holds_from == FOREVER:
            return None
        match = UncertainMatch(
            names=tuple(event.name for event in events),
            positions=positions,
            key=events[0].key,
            start=min(one.start for one in times),
            end=max(one.end for one in times),
            is_open=any(one.is_open for one in times),
            holds_from=holds_from,
            until=self._certainty.forbidden_until(times),
            reaches=self._reaches.of(times),
        )
        if not self._look_for_forbidding(match):
            return None
        if self._settles:  # only now: where negated events are frequent, few candidates come this far
            match.settled_from = self._certainty.settled_from(times)
            match.reaches = self._reaches_until(match.settled_from, times)
            if match.blocker is None:
                self._look_for_forbidding(match)
        return match

    def _reaches_until(self, settled_from: int, times: Sequence[Times]) -> tuple[Reach, ...]:
        """The reaches of a match that is emitted at this horizon or later, if the ends that are not before it may
        change, also those of negated events.
        """
        changed = [one if one.end < settled_from else times_of(one.start, OPEN_END) for one in times]
        found = self._reaches.of(changed)
        return tuple(one._replace(first_end=min(one.first_end, settled_from), last_end=FOREVER) for one in found)

    def _look_for_forbidding(self, match: UncertainMatch) -> bool:
        """Notes anew all events that forbid the match, or may. False if one does for ever."""
        match.blocker = None
        match.forbidding.clear()
        match.unsettled.clear()
        for number, reach in enumerate(match.reaches):
            for event in self.events.forbidding(match.key, number, reach):
                if _is_blocked_before(match, event):
                    break
                self._note(match, number, event)
        return not self.changeable.is_impossible(match)

    def _note(self, match: UncertainMatch, number: int, event: HeldEvent) -> None:
        """Notes from when on the event does not forbid the match."""
        if event.name in match.names:
            return
        bound = [self.events[name] for name in match.names]
        times = [one.times for one in bound]
        allowed = self._certainty.allowed_from(number, times, event.times)
        cleared = NO_TIME
        if self._settles and allowed < FOREVER:
            cleared = self._certainty.cleared_from(number, times, event.times)
        if max(cleared, allowed) > NO_TIME and not self._satisfies(number, bound, event):
            allowed = cleared = NO_TIME
        if allowed == FOREVER:
            self.matches.block(match, event)
        elif match.blocker is None:
            self.matches.note(match, (number, event.name), allowed, cleared)

    def _satisfies(self, number: int, bound: Sequence[HeldEvent], event: HeldEvent) -> bool:
        """Whether the event satisfies the SQL of the negation."""
        taken = [*enumerate(_seen(one) for one in bound), (self._plan.positives + number, _seen(event))]
        return all(evaluate(one.script, taken, ()) is True for one in self._plan.negated[number])

    def _forbid(self, event: HeldEvent, numbers: Sequence[int]) -> None:
        """Notes for the matches of its key what a negated event forbids, which has arrived or has another end."""
        for match in self.matches.met_by(event, numbers):
            if match.blocker is not None and match.blocker.name == event.name:
                possible = self._look_for_forbidding(match)
            elif _is_blocked_before(match, event):
                continue
            else:
                for number in numbers:
                    self._note(match, number, event)
                possible = not self.changeable.is_impossible(match)
            self._reconsider(match, possible=possible)

    def _reconsider(self, match: UncertainMatch, *, possible: bool) -> None:
        """Retracts the match if it is wrong now, or lets it wait anew."""
        if match.is_out and (not possible or self._is_wrong(match)):
            self._emit(RETRACTION, match)
            match.is_out = False
        if possible:
            self.matches.wait(match)
        else:
            self.matches.remove(match)

    def _is_wrong(self, match: UncertainMatch) -> bool:
        """Whether it does not hold for all ends after the clock."""
        return match.certain_from > self.clock + 1

    def drop(self, name: bytes) -> None:
        """Drops an event that is open for too long, or is withdrawn."""
        self.events.drop(name)
        for match in self.matches.with_event(name):
            self.matches.remove(match)
            if match.is_out:
                self._emit(RETRACTION, match)
        for match in self.matches.noting(name):
            self._reconsider(match, possible=self._look_for_forbidding(match))

    def emit_ready(self) -> None:
        if found := self.matches.ready(self.clock, self.horizon):
            self._insert(found)

    def _insert(self, matches: Sequence[UncertainMatch]) -> None:
        for match in matches:
            match.is_out = True
            self._emit(INSERTION, match)

    def _emit(self, sign: int, match: UncertainMatch) -> None:
        self.changes.append(Change(0, sign, self.clock, match.start, match.end, match.positions))

    def late(self, position: int) -> None:
        """Emits a late row, which is at this position."""
        self.changes.append(Change(position, LATE, self.clock, 0, 0, (0,) * self._plan.positives))

    def end(self) -> None:
        """Emits all that holds if nothing more comes."""
        left = [match for match in self.matches.all.values() if not match.is_out and match.certain_from < FOREVER]
        self._insert(sorted(left, key=lambda match: (match.end, match.start, match.names)))
        for match in [*self.matches.all.values()]:
            self.matches.remove(match)

    def forget(self) -> set[int]:
        """Forgets the matches that are over. Returns the positions of the events of all others."""
        changeable = self.changeable
        for match in [*self.matches.all.values()]:
            if _is_over(match, changeable):
                self.matches.remove(match)
        return {position for match in self.matches.all.values() for position in match.positions}

    @property
    def is_over(self) -> bool:
        """Whether all matches are over."""
        changeable = self.changeable
        return all(_is_over(match, changeable) for match in self.matches.all.values())

    def keep(self, place: Mapping[int, int], key_at: Callable[[int], int]) -> None:
        """As HeldEvents.keep."""
        self.events.keep(place, key_at)
        each = [*self.matches.all.values()]
        self.restart(self.matches.consistency)
        for match in each:
            match.positions = tuple(place[position] for position in match.positions)
            match.key = key_at(match.positions[0])
            self.matches.add(match)

    def restart(self, consistency: Consistency) -> None:
        """Forgets all matches."""
        self.matches = UncertainMatches(consistency, revises=self._revises)


def _is_over(match: UncertainMatch, changeable: Changeable) -> bool:
    """Whether the match is over: it is emitted and final, or can never be emitted."""
    return (match.is_out and changeable.is_final(match)) or changeable.is_impossible(match)


def _is_blocked_before(match: UncertainMatch, event: HeldEvent) -> bool:
    """Whether an event forbids the match that ends before this event, or at the same time."""
    return match.blocker is not None and match.blocker.end <= event.times.end


def _seen(event: HeldEvent) -> Interval:
    return Interval(event.times.start, event.times.end, event.mask, event.values)
