"""The definition of fates: the reference step for one key, which also records the end of each partial match."""

from __future__ import annotations

from collections.abc import Iterable

from cepheid.compile.stages.automaton import Action, Edge
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.flatten import TruthBits, conditions_read
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.failures import ConditionFailed
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.stages.observed.fates import End, Fate, OpenStart, Start, at_the_end
from cepheid.kernel.stages.python_kernel import Bounds, Emission, KeyMatcher
from cepheid.kernel.stages.reference import Match, PartialMatch


class ObservedKeyMatcher(KeyMatcher):
    """Finds what KeyMatcher finds. When the key is closed, its starts are added to `starts`.

    It asks of conditions what has been evaluated for the match, and whether an `until` holds. One that matching did not
    evaluate may fail; it then does not hold. So observing raises nothing.
    """

    def __init__(self, pattern: CompiledPattern, bounds: Bounds, starts: list[Start]) -> None:
        super().__init__(pattern, bounds)
        self._starts = starts
        self._open_starts: dict[int, OpenStart] = {}
        loops = len(pattern.plan.pattern.loops_until)
        self._untils = frozenset(range(first := len(pattern.plan.pattern.leaves), first + loops))
        self._bits = TruthBits(pattern.plan)
        self._now = 0
        self._event: int | None = None
        self._moment = 0

    @property
    def is_open(self) -> bool:
        return super().is_open or bool(self._open_starts)

    def close(self, until: int) -> list[Emission]:
        emissions = super().close(until)
        for partial_match in [*self.partial_matches, *self.growing, *(match for _, match in self.completed)]:
            self._record(partial_match, at_the_end(_reached(partial_match)))
        self._starts += [start.closed() for start in self._open_starts.values()]
        self._open_starts = {}
        return emissions

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        if event.position != self._event:
            self._at(event.time, event.position)
        moved, completed = super()._move(partial_match, event)
        for successor in [*moved, *completed]:
            if partial_match is None or len(successor.taken) > len(partial_match.taken):
                self._start(successor).take(successor.taken[-1][0])
        if partial_match and not moved and not completed:
            fate, by = self._fate(partial_match, event)
            self._end(partial_match, fate, by)
        return moved, completed

    def _fate(self, partial_match: PartialMatch, event: Event) -> tuple[Fate, int | None]:
        """Why the partial match has no successor at the event."""
        state, taken = partial_match.state, partial_match.taken
        for edge in self._edges(state, taken, event):
            if edge.action is Action.STOP:
                return Fate.FORBIDDEN, edge.negation
        for number in sorted(conditions_read(self.automaton, state, self._bits) & self._untils):
            if self._until_holds(number, taken, event):
                return Fate.UNTIL, number
        if any(self._comes_too_late(edge, taken, event) for edge in self._followed(state, taken, event)):
            return Fate.GAP, None
        return Fate.BROKEN, None

    def _until_holds(self, number: int, taken: TakenEvents, event: Event) -> bool:
        try:
            return self._is_met(number, taken, event)
        except ConditionFailed:
            return False

    def _followed(self, state: int, taken: TakenEvents, event: Event) -> Iterable[Edge]:
        """The edges whose guards hold, also those whose window is over."""
        for edge in self.automaton.states[state].edges:
            if self._holds(edge.guard, taken, event):
                yield edge
                if edge.action is Action.PROCEED:
                    yield from self._followed(edge.target, taken, event)

    def _comes_too_late(self, edge: Edge, taken: TakenEvents, event: Event) -> bool:
        return edge.window is not None and event.time - taken[-1][1].time >= edge.window

    def _expire(self, deadline: int) -> list[PartialMatch]:
        self._at(deadline)
        expired = [p for p in self.partial_matches if self._deadline(p) == deadline]
        complete = super()._expire(deadline)
        for partial_match in expired:
            if partial_match not in complete:
                window = self._end_of_window(partial_match) == deadline
                self._end(partial_match, Fate.OUT_OF_TIME if window else Fate.GAP)
        return complete

    def _end_all(self) -> list[PartialMatch]:
        self._at(FOREVER)
        ended = self.partial_matches
        complete = super()._end_all()
        for partial_match in ended:
            if partial_match not in complete:
                self._end(partial_match, Fate.STILL_OPEN)
        return complete

    def _drop_oldest(self, over: int) -> None:
        for partial_match in self.partial_matches[:over]:
            self._end(partial_match, Fate.OVER_LIMIT)
        super()._drop_oldest(over)

    def _within_limit(self, completed: list[PartialMatch]) -> list[PartialMatch]:
        within = super()._within_limit(completed)
        for match in completed:
            if match not in within:
                self._end(match, Fate.OVER_LIMIT)
        return within

    def _release(self, completed: list[PartialMatch], now: int | None) -> list[Match]:
        matches = super()._release(completed, now)
        for match in matches:
            self._open_starts[match.taken[0][1]].matched = True
        return matches

    def _prune(self, first: int) -> None:
        for partial_match in [*self.partial_matches, *self.growing, *(match for _, match in self.completed)]:
            if partial_match.start.position < first:
                self._end(partial_match, Fate.SKIPPED)
        super()._prune(first)

    def _at(self, time: int, event: int | None = None) -> None:
        """What ends now does so at this event, or at a deadline."""
        self._now, self._event = time, event
        self._moment += 1

    def _end(self, partial_match: PartialMatch, fate: Fate, by: int | None = None) -> None:
        end = End(fate, _reached(partial_match), self._now, self._event, self._moment, by)
        self._record(partial_match, end)

    def _record(self, partial_match: PartialMatch, end: End) -> None:
        self._start(partial_match).end(end)

    def _start(self, partial_match: PartialMatch) -> OpenStart:
        position = partial_match.start.position
        if position not in self._open_starts:
            self._open_starts[position] = OpenStart(position)
        return self._open_starts[position]


def _reached(partial_match: PartialMatch) -> int:
    return max(stage for stage, _ in partial_match.taken)
