"""The definition of matching: plain Python over lists, slow and obvious. The compiled kernel must equal it.

It follows FlinkCEP's `NFA` (computeNextStates, doProcess, advanceTime), after Agrawal et al., Efficient Pattern
Matching over Event Streams, SIGMOD 2008, for one key. Matches are ordered by the event or deadline that completes them,
then by start, then most events first, then earliest events, then earliest stages.

`longest` on a group selects from the matches without it those that no other match continues with events of the loop.
Such a match is emitted when it is certain: when no partial match is left that could continue it. So a partial match
that ends within a turn of the loop yields its whole turns. It does not if another partial match that shares these turns
has completed further whole turns, or still may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cepheid.compile.stages.automaton import Action, Automaton, Edge, gap, leads_to_complete, waits_in_loop
from cepheid.compile.stages.guard import Guard
from cepheid.errors import SkipError
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.stages.pattern import SkipTo
from cepheid.plan.calendar import Deadlines, deadline_after
from cepheid.plan.lifted import PlannedCondition
from cepheid.plan.stages.plan import SkipRule


@dataclass(frozen=True)
class PartialMatch:
    """A state, and the events taken on the way to it, each with its stage; never empty."""

    state: int
    taken: TakenEvents
    whole: int = 0
    """With `longest` on a group: the number of events of `taken` that are, so far, a match which this partial match may
    continue.
    """

    @property
    def start(self) -> Event:
        return self.taken[0][1]

    @property
    def last(self) -> Event:
        return self.taken[-1][1]


@dataclass(frozen=True)
class Match:
    """A complete match: stage and event position in order, and the time that made it certain (None: the end of the
    input).
    """

    taken: tuple[tuple[int, int], ...]
    detected_at: int | None


@dataclass(frozen=True)
class Timeout:
    """A partial match that ran out of time, and its deadline."""

    taken: tuple[tuple[int, int], ...]
    deadline: int


@dataclass(frozen=True)
class NoMatch:
    """A partial match that an event of a negated stage has ended without a match."""

    taken: tuple[tuple[int, int], ...]
    stage: int
    time: int
    """The time of that event."""


Completed: TypeAlias = tuple[int, PartialMatch]
"""The step that completed the match, and the match."""


class ReferenceMatcher:
    """Runs an automaton over the events of one key."""

    def __init__(
        self,
        automaton: Automaton,
        conditions: Sequence[PlannedCondition],
        window: int | None,
        skip: SkipRule,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.automaton = automaton
        self.conditions = conditions
        self.window = window
        self.skip = skip
        self.deadlines = deadlines
        """In place of `window`, if that follows the calendar."""
        self.partial_matches: list[PartialMatch] = []
        self.completed: list[Completed] = []
        self.growing: list[PartialMatch] = []
        """With `longest` on a group: matches without it that may still be continued."""
        self.timeouts: list[Timeout] = []
        self.negated = Counter[int]()
        """The number of partial matches that an event of a negated stage has ended without a match, by the stage."""
        self.no_matches: list[NoMatch] = []
        """Those partial matches. Branches with the same events that one event ends are one."""
        self._ended: list[NoMatch] = []
        """Those that the present event ends."""
        self.step = 0
        self.reached: int | None = None
        """The time of the last event."""
        self.earlier: list[Event] = []
        """With `begin_without`: the events that may keep a later event from starting a partial match."""
        self.may_start: int | None = None
        """Bits of the mask: an event with none of them starts no partial match. None: every event may."""

    def process(self, event: Event) -> list[Match]:
        """Advances time to that of the event, then offers the event to every partial match and to the start state."""
        matches = self._pass(event.time)
        self.reached = event.time
        survivors: list[PartialMatch] = []
        completed: list[PartialMatch] = []
        self._ended = []
        starts = [None] if self.may_start is None or event.mask & self.may_start else []
        for partial_match in [*self.partial_matches, *starts]:
            moved, done = self._move(partial_match, event)
            survivors += moved
            completed += done
        self.partial_matches = list({(p.state, positions_of(p), p.whole): p for p in survivors}.values())
        self.no_matches += dict.fromkeys(self._ended)
        if self.automaton.without and self._has_bit(self.automaton.without.condition, event):
            self.earlier.append(event)
        return matches + self._release(self._longest(completed), event.time)

    def advance_time(self, time: int) -> list[Match]:
        """Lets every deadline up to `time` pass, in order, and applies the skip strategy after each. Does nothing if
        the last event has reached `time`.
        """
        return self._pass(time) if self.reached is None or time > self.reached else []

    def _pass(self, time: int) -> list[Match]:
        matches: list[Match] = []
        while (deadline := self._earliest_deadline()) is not None and deadline <= time:
            matches += self._release(self._longest(self._expire(deadline)), deadline)
        return matches

    def _expire(self, deadline: int) -> list[PartialMatch]:
        """Ends the partial matches with this deadline, and returns those that are matches."""
        expired = [p for p in self.partial_matches if self._deadline(p) == deadline]
        self.partial_matches = [p for p in self.partial_matches if self._deadline(p) != deadline]
        complete = [p for p in expired if self._complete(p) or self.automaton.states[p.state].pending]
        timed_out = [Timeout(positions_of(p), deadline) for p in expired if not (p in complete or p.whole)]
        self.timeouts += [timeout for timeout in dict.fromkeys(timed_out) if timeout not in self.timeouts]
        return complete

    def finish(self) -> list[Match]:
        """Ends the input: every deadline passes, then every partial match ends."""
        matches: list[Match] = []
        while (deadline := self._earliest_deadline()) is not None:
            matches += self._pass(deadline)
        return matches + self._release(self._longest(self._end_all()), None)

    def _end_all(self) -> list[PartialMatch]:
        """Ends every partial match, and returns those that are matches."""
        ended, self.partial_matches = self.partial_matches, []
        return [p for p in ended if self._complete(p)]

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        """The successors of a partial match (None: the start state) at an event: those that continue, and those that
        are complete.
        """
        taken = partial_match.taken if partial_match else ()
        state = partial_match.state if partial_match else self.automaton.start
        edges = [*self._edges(state, taken, event)]
        moved, completed = [], []
        for edge in edges:
            if edge.action is Action.IGNORE and partial_match:
                reached = PartialMatch(edge.target, taken)
            elif edge.action is Action.TAKE:
                assert edge.stage is not None
                reached = PartialMatch(edge.target, (*taken, (edge.stage, event)))
            else:
                continue
            completes = self._completes(edge, taken, event)
            if self.automaton.loop:
                reached = replace(reached, whole=self._whole(edge, partial_match, reached, completes=completes))
            if edge.target != self.automaton.final:
                moved.append(reached)
            if completes:
                completed.append(reached)
        stops = [edge.negation for edge in edges if edge.action is Action.STOP]
        if stops:
            moved = []
        if partial_match and self._breaks(state, taken, event):
            completed.append(partial_match)
        if stops and partial_match and not completed and not partial_match.whole:
            assert stops[0] is not None
            self.negated[stops[0]] += 1
            self._ended.append(NoMatch(positions_of(partial_match), stops[0], event.time))
        return moved, completed

    def _edges(self, state: int, taken: TakenEvents, event: Event) -> Iterator[Edge]:
        """The edges whose guards hold, of a state and of the states that it proceeds to."""
        for edge in self.automaton.states[state].edges:
            if not self._holds(edge.guard, taken, event):
                continue
            if edge.action is Action.PROCEED:
                yield from self._edges(edge.target, taken, event)
            elif edge.window is None or not taken or event.time - taken[-1][1].time < edge.window:
                yield edge

    def _completes(self, edge: Edge, taken: TakenEvents, event: Event) -> bool:
        """Whether a partial match that follows the edge is a match; after a TAKE it may proceed with the same event."""
        return (
            self._is_final(edge.target, taken, event)
            if edge.action is Action.TAKE
            else edge.target == self.automaton.final
        )

    def _is_final(self, state: int, taken: TakenEvents, event: Event) -> bool:
        """Whether the state is the final one or proceeds to it."""
        return state == self.automaton.final or any(
            self._is_final(edge.target, taken, event)
            for edge in self.automaton.states[state].edges
            if edge.action is Action.PROCEED and self._holds(edge.guard, taken, event)
        )

    def _holds(self, guard: Guard, taken: TakenEvents, event: Event) -> bool:
        return any(
            all(self._is_met(demand.condition, taken, event) != demand.negated for demand in sorted(term))
            for term in guard.terms
        )

    def _is_met(self, number: int, taken: TakenEvents, event: Event) -> bool:
        """Whether a condition of a guard is true. That of `begin_without` is, if an earlier event meets it; it sees the
        event that starts as one of the first stage.
        """
        without = self.automaton.without
        if without is None or number != without.condition:
            return self._condition(number, taken, event)
        return any(
            event.time - earlier.time <= without.window and self._condition(number, ((0, event),), earlier)
            for earlier in reversed(self.earlier)
        )

    def _condition(self, number: int, taken: TakenEvents, event: Event) -> bool:
        script = self.conditions[number].script
        return self._has_bit(number, event) and (script is None or evaluate(script, taken, event.values) is True)

    def _has_bit(self, number: int, event: Event) -> bool:
        """Whether the event meets the lifted part of the condition."""
        bit = self.conditions[number].bit
        return bit is None or event.mask >> bit & 1 == 1

    def _breaks(self, state: int, taken: TakenEvents, event: Event) -> bool:
        """Whether the event ends the partial match in a complete state: the one it is in, or one it proceeds to."""
        if self.automaton.states[state].complete and not [*self._edges(state, taken, event)]:
            return True
        return any(
            self._breaks(edge.target, taken, event)
            for edge in self.automaton.states[state].edges
            if edge.action is Action.PROCEED and self._holds(edge.guard, taken, event)
        )

    def _complete(self, partial_match: PartialMatch) -> bool:
        return leads_to_complete(self.automaton, partial_match.state)

    def _whole(self, edge: Edge, before: PartialMatch | None, after: PartialMatch, *, completes: bool) -> int:
        """The `whole` of a partial match that has followed the edge."""
        if completes:
            return len(after.taken)
        loop = self.automaton.loop
        stays = waits_in_loop(self.automaton, edge.target) if edge.stage is None else edge.stage in loop
        return before.whole if before and stays else 0

    def _longest(self, completed: list[PartialMatch]) -> list[PartialMatch]:
        """The matches that are certain at this step. Without `longest` on a group these are all that were completed.

        With it, the candidates are the completed ones, and the growing ones that no completed one continues. Candidates
        that a partial match may continue are growing; the others are certain.
        """
        if not self.automaton.loop:
            return completed
        open_ = [p for p in self.growing if not any(self._continues(c, p) for c in completed)] + completed
        held = {positions_of(p)[: p.whole] for p in self.partial_matches}
        self.growing = [p for p in open_ if positions_of(p) in held]
        return [p for p in open_ if positions_of(p) not in held]

    def _continues(self, partial_match: PartialMatch, other: PartialMatch) -> bool:
        """Whether the partial match has the events of `other` and after them only events of the loop."""
        before, more = positions_of(partial_match)[: len(other.taken)], partial_match.taken[len(other.taken) :]
        return before == positions_of(other) and bool(more) and all(stage in self.automaton.loop for stage, _ in more)

    def _deadline(self, partial_match: PartialMatch) -> int | None:
        ends = [] if (end := self._end_of_window(partial_match)) is None else [end]
        if (window := gap(self.automaton, partial_match.state)) is not None:
            ends.append(partial_match.last.time + window)
        return min(ends, default=None)

    def _end_of_window(self, partial_match: PartialMatch) -> int | None:
        if self.deadlines is not None:
            return deadline_after(partial_match.start.time, self.deadlines)
        return None if self.window is None else partial_match.start.time + self.window

    def _earliest_deadline(self) -> int | None:
        deadlines = [d for p in self.partial_matches if (d := self._deadline(p)) is not None]
        return min(deadlines, default=None)

    def _release(self, completed: list[PartialMatch], now: int | None) -> list[Match]:
        """Emits what may be emitted. With a skip strategy a match waits while a partial match with an earlier start
        is open.
        """
        self.step += 1
        once = {positions_of(match): match for match in completed}  # branches of groups may have taken the same events
        self.completed += [(self.step, match) for match in once.values()]
        self.completed.sort(key=order_of)
        matches = []
        while self.completed and not (self.skip.to is not SkipTo.NO_SKIP and self._older_is_open(self.completed[0][1])):
            _, match = self.completed.pop(0)
            matches.append(Match(positions_of(match), now))
            self._prune(self._skips_to(match))
        return matches

    def _older_is_open(self, match: PartialMatch) -> bool:
        return any(p.start.position < match.start.position for p in self.partial_matches)

    def _skips_to(self, match: PartialMatch) -> int:
        """The position that the match skips to: a partial match that started before it is dropped."""
        match self.skip.to:
            case SkipTo.NO_SKIP:
                return 0
            case SkipTo.NEXT:
                return match.start.position + 1
            case SkipTo.PAST_LAST_EVENT:
                return match.last.position + 1
        positions = [event.position for stage, event in match.taken if stage == self.skip.stage]
        if not positions and self.skip.error_on_miss:
            raise SkipError("a match has no event of the stage to skip to")
        if not positions:
            return 0
        target = positions[0] if self.skip.to is SkipTo.FIRST else positions[-1]
        if target == match.start.position and self.skip.error_on_miss:
            raise SkipError("the event to skip to is the first of the match itself")
        return target

    def _prune(self, first: int) -> None:
        self.partial_matches = [p for p in self.partial_matches if p.start.position >= first]
        self.growing = [p for p in self.growing if p.start.position >= first]
        self.completed = [c for c in self.completed if c[1].start.position >= first]


def positions_of(partial_match: PartialMatch) -> tuple[tuple[int, int], ...]:
    """The stage and the position of each of its events."""
    return tuple((stage, event.position) for stage, event in partial_match.taken)


def order_of(completed: Completed) -> tuple[int, int, int, list[int], list[int]]:
    """The sort key of waiting matches."""
    step, match = completed
    positions = [event.position for _, event in match.taken]
    return match.start.position, step, -len(positions), positions, [stage for stage, _ in match.taken]
