"""The definition of matching: plain Python over lists, slow and obvious. The compiled kernel must equal it.

It follows FlinkCEP's `NFA` (computeNextStates, doProcess, advanceTime), after Agrawal et al., Efficient Pattern
Matching over Event Streams, SIGMOD 2008, for one key. Where the order of matches matters, it is: by the event or
deadline that completes them, then by start, then most events first, then earliest events, then earliest stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.compile.automaton import Action, Automaton, Demand, Edge
from cepheid.kernel.evaluate import Taken, Value, evaluate
from cepheid.lang.pattern import Skip
from cepheid.plan.plan import StageCondition


@dataclass(frozen=True)
class Event:
    """An event as the kernel sees it: time, mask of lifted conditions, values of lifted columns (None: NULL)."""

    position: int
    time: int
    mask: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class PartialMatch:
    """A state, and the events taken on the way to it, each with its stage; never empty."""

    state: int
    taken: tuple[tuple[int, Event], ...]

    @property
    def start(self) -> Event:
        return self.taken[0][1]


@dataclass(frozen=True)
class Match:
    """A complete match: stage and event position in order, and the time that made it certain (None: the end of the
    input).
    """

    taken: tuple[tuple[int, int], ...]
    detected_at: int | None


Completed: TypeAlias = tuple[int, PartialMatch]
"""The step that completed the match, and the match."""


class ReferenceMatcher:
    """Runs an automaton over the events of one key."""

    def __init__(
        self, automaton: Automaton, conditions: Sequence[StageCondition], window: int | None, skip: Skip
    ) -> None:
        self.automaton = automaton
        self.conditions = conditions
        self.window = window
        self.skip = skip
        self.partial_matches: list[PartialMatch] = []
        self.completed: list[Completed] = []
        self.step = 0

    def process(self, event: Event) -> list[Match]:
        """Time passes to the event's, then the event is offered to every partial match and to the start state."""
        matches = self.advance_time(event.time)
        survivors: list[PartialMatch] = []
        completed: list[PartialMatch] = []
        for partial_match in [*self.partial_matches, None]:
            moved, done = self._move(partial_match, event)
            survivors += moved
            completed += done
        self.partial_matches = survivors
        return matches + self._release(completed, event.time)

    def advance_time(self, time: int) -> list[Match]:
        """Lets every deadline up to `time` pass, in order; the skip strategy is applied after each."""
        matches: list[Match] = []
        while (deadline := self._earliest_deadline()) is not None and deadline <= time:
            expired = [p for p in self.partial_matches if self._deadline(p) == deadline]
            self.partial_matches = [p for p in self.partial_matches if self._deadline(p) != deadline]
            matches += self._release([p for p in expired if self._complete(p)], deadline)
        return matches

    def finish(self) -> list[Match]:
        """The input is complete: every deadline passes, then every partial match ends."""
        matches: list[Match] = []
        while (deadline := self._earliest_deadline()) is not None:
            matches += self.advance_time(deadline)
        ended, self.partial_matches = self.partial_matches, []
        return matches + self._release([p for p in ended if self._complete(p)], None)

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        """What becomes of a partial match (None: the start state) at an event: those that go on, those that are
        complete.
        """
        taken = partial_match.taken if partial_match else ()
        state = partial_match.state if partial_match else self.automaton.start
        edges = [edge for edge in self._edges(state) if self._holds(edge.guard, taken, event)]
        moved, completed = [], []
        for edge in edges:
            if edge.action is Action.IGNORE and partial_match:
                moved.append(PartialMatch(edge.target, taken))
            elif edge.action is Action.TAKE:
                stage = edge.guard[0].stage
                reached = PartialMatch(edge.target, (*taken, (stage, event)))
                if edge.target != self.automaton.final:
                    moved.append(reached)
                if self._reaches_final(edge.target):
                    completed.append(reached)
        if partial_match and not edges and self._complete(partial_match):
            completed.append(partial_match)
        return moved, completed

    def _edges(self, state: int) -> Iterator[Edge]:
        """The TAKE and IGNORE edges of a state and of those it proceeds to."""
        for edge in self.automaton.states[state].edges:
            if edge.action is Action.PROCEED:
                yield from self._edges(edge.target)
            else:
                yield edge

    def _reaches_final(self, state: int) -> bool:
        if state == self.automaton.final:
            return True
        edges = self.automaton.states[state].edges
        return any(self._reaches_final(edge.target) for edge in edges if edge.action is Action.PROCEED)

    def _holds(self, guard: Sequence[Demand], taken: Taken, event: Event) -> bool:
        return all(self._condition(demand.stage, taken, event) != demand.negated for demand in guard)

    def _condition(self, stage: int, taken: Taken, event: Event) -> bool:
        condition = self.conditions[stage]
        if condition.bit is not None and not event.mask >> condition.bit & 1:
            return False
        return condition.script is None or evaluate(condition.script, taken, event.values) is True

    def _complete(self, partial_match: PartialMatch) -> bool:
        return self.automaton.states[partial_match.state].complete

    def _deadline(self, partial_match: PartialMatch) -> int | None:
        return None if self.window is None else partial_match.start.time + self.window

    def _earliest_deadline(self) -> int | None:
        deadlines = [d for p in self.partial_matches if (d := self._deadline(p)) is not None]
        return min(deadlines, default=None)

    def _release(self, completed: list[PartialMatch], now: int | None) -> list[Match]:
        """Emits what may be emitted. With a skip strategy a match waits while a partial match with an earlier start
        is open.
        """
        self.step += 1
        self.completed += [(self.step, partial_match) for partial_match in completed]
        self.completed.sort(key=_order)
        matches = []
        while self.completed and not (self.skip is not Skip.NO_SKIP and self._older_is_open(self.completed[0][1])):
            _, match = self.completed.pop(0)
            matches.append(Match(tuple((stage, event.position) for stage, event in match.taken), now))
            if self.skip is Skip.PAST_LAST_EVENT:
                self._prune(match.taken[-1][1].position)
        return matches

    def _older_is_open(self, match: PartialMatch) -> bool:
        return any(p.start.position < match.start.position for p in self.partial_matches)

    def _prune(self, last: int) -> None:
        self.partial_matches = [p for p in self.partial_matches if p.start.position > last]
        self.completed = [c for c in self.completed if c[1].start.position > last]


def _order(completed: Completed) -> tuple[int, int, int, list[int], list[int]]:
    step, match = completed
    positions = [event.position for _, event in match.taken]
    return match.start.position, step, -len(positions), positions, [stage for stage, _ in match.taken]
