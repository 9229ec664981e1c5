"""The baseline of the event algebra: the tree of operators that the kernel replaced. It is plain Python and processes
one derivation at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from cepheid.errors import ConditionError
from cepheid.kernel.occurrences.contexts_reference import offer, queue_of
from cepheid.kernel.occurrences.values import (
    Derivation,
    bound,
    delayed,
    events_of,
    holds,
    joined,
    least_of_each,
    of_event,
    recency,
)
from cepheid.kernel.reference_events import Event
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.occurrences.constants import UNBOUNDED, Kind
from cepheid.plan.occurrences.growth import spans_of, windows_of
from cepheid.plan.occurrences.plan import Operator


@dataclass
class State:
    """What an operator remembers. Each kind of operator uses some of the fields."""

    left: list[Derivation] = field(default_factory=list)
    """For THEN: ordered by end; with the recent policy the starts ascend as well."""
    right: list[Derivation] = field(default_factory=list)
    latest: int = -UNBOUNDED
    """For WITHOUT: the latest start among the right side's occurrences."""
    timers: list[tuple[int, int, Derivation]] = field(default_factory=list)
    """For DELAYED: a heap of time, number and temporal event."""
    set_so_far: int = 0
    pruned_at: int = 16
    """The number of derivations from which on it is worthwhile to look for those that are too old."""


New: TypeAlias = list[list[Derivation]]
"""The derivations that each operator has made at this instant."""


class Tree:
    """Evaluates operators over the events of one key."""

    def __init__(
        self,
        operators: Sequence[Operator],
        roots: Sequence[int],
        policy: Policy,
        *,
        by_operator: bool = False,
        time_value: int | None = None,
    ) -> None:
        self._operators = operators
        self._roots = roots
        self._policy = policy
        self._recent = by_operator
        """Whether each operator outputs only its most recent derivation."""
        self._time_value = time_value
        self._leaves = [(row, 1 << op.number) for row, op in enumerate(operators) if op.kind is Kind.LEAF]
        self._windows = windows_of(operators, roots)
        self._spans = spans_of(operators)
        self._steps = _IN_CONTEXTS if policy.is_context else _STEPS
        self._scripted = any(op.script is not None for op in operators)
        self._inner = [
            (row, operator, operator.left, operator.right, operator.kind is Kind.DELAYED)
            for row, operator in enumerate(operators)
            if operator.kind is not Kind.LEAF
        ]
        self.reset()

    def reset(self) -> None:
        """Starts again, for another key."""
        self._states = [State() for _ in self._operators]
        self._delays = [self._states[row] for row, _, _, _, delays in self._inner if delays]
        self._events: dict[int, Event] = {}
        """Position → event, for the events that scripts may read."""
        self._now: int | None = None
        self._coming: list[Event] = []
        """The events of the instant `_now`, while more of them may come."""

    def process(self, event: Event) -> list[New]:
        """Advances time to the event, and returns for each earlier instant what each root has made."""
        passed = [] if event.time == self._now else self._pass(event.time - 1)
        self._now = event.time
        self._coming.append(event)
        return passed

    def advance_time(self, time: int) -> list[New]:
        """Advances time to `time`, after the last event up to it, and returns what `process` returns."""
        return self._pass(time)

    @property
    def remembered(self) -> int:
        """The number of derivations and timers that the operators remember."""
        return sum(len(state.left) + len(state.right) + len(state.timers) for state in self._states)

    def positions(self) -> set[int]:
        """The positions of all events that may still be part of a result, or that scripts may read."""
        held = {event.position for event in self._coming}
        for state in self._states:
            for derivation in (*state.left, *state.right, *(later for _, _, later in state.timers)):
                held.update(events_of(derivation))
        self._events = {position: self._events[position] for position in held & self._events.keys()}
        return held

    def _pass(self, time: int) -> list[New]:
        """Processes every instant up to `time`."""
        passed = []
        while (instant := self._next_instant()) is not None and instant <= time:
            passed.append(self._step(instant))
        return passed

    def _next_instant(self) -> int | None:
        coming = self._now if self._coming else None
        if not self._delays:
            return coming
        timers = [state.timers[0][0] for state in self._delays if state.timers]
        return min([*timers, *([] if coming is None else [coming])], default=None)

    def _step(self, now: int) -> New:
        """Runs all operators at one instant."""
        events: list[Event] = []
        if self._coming and self._now == now:
            events, self._coming = self._coming, []
            if self._scripted:
                self._events.update((event.position, event) for event in events)
        new: New = [[] for _ in self._operators]
        for row, bit in self._leaves:
            new[row] = [of_event(event) for event in events if event.mask & bit]
            if self._recent:
                new[row] = _most_recent(new[row])
        for row, operator, left, right, delays in self._inner:
            if new[left] or (right >= 0 and new[right]) or delays:
                made = self._steps[operator.kind](self, row, new, now)
                new[row] = _most_recent(made) if self._recent else made
        return [self._given(new[root]) for root in self._roots]

    def _given(self, made: list[Derivation]) -> list[Derivation]:
        """Those derivations of a root at one instant that are results under the policy."""
        if self._policy.is_context or not made:
            return made
        found = least_of_each(made)
        return found if self._policy is Policy.UNRESTRICTED else [max(found, key=recency)]

    # Operators. Each returns the derivations that it makes at the instant `now`.

    def _both(self, row: int, new: New, now: int) -> list[Derivation]:
        operator, state = self._operators[row], self._states[row]
        left, right = new[operator.left], new[operator.right]
        made = [joined(s, t) for s in left for t in (*state.right, *right)]
        made += [joined(s, t) for s in state.left for t in right]
        self._remember_both(state, left, right, now - self._windows[row])
        return _distinct(made)

    def _remember_both(self, state: State, left: list[Derivation], right: list[Derivation], since: int) -> None:
        if self._recent:
            state.left = _latest(state.left, left)
            state.right = _latest(state.right, right)
            return
        state.left += left
        state.right += right
        _prune(state, since)

    def _either(self, row: int, new: New, now: int) -> list[Derivation]:  # noqa: ARG002 - all steps are called alike
        operator = self._operators[row]
        return _distinct([*new[operator.left], *new[operator.right]])

    def _then(self, row: int, new: New, now: int) -> list[Derivation]:
        operator, state = self._operators[row], self._states[row]
        made = []
        for t in new[operator.right]:
            before = bisect_left(state.left, t.occurrence.start, key=_end)
            first = max(before - 1, 0) if self._recent else 0
            made += [joined(s, t) for s in state.left[first:before]]
        if self._recent:
            self._remember_latest(row, new[operator.left], now)
        else:
            state.left += new[operator.left]
            _prune(state, now - self._windows[row])
        return _distinct(made)

    def _remember_latest(self, row: int, left: list[Derivation], now: int) -> None:
        """Remembers the left sides of a sequence for the recent policy. Starts ascend with ends: a derivation that
        starts no later than one that ended earlier is never the most recent. Later right sides are no longer than
        their span. Of the derivations that ended before the earliest start of such a right side, only the last one
        can matter, and none that is too old for the window.
        """
        state, operator = self._states[row], self._operators[row]
        state.left += [s for s in left if not state.left or s.occurrence.start > state.left[-1].occurrence.start]
        earliest = now + 1 - min(self._spans[operator.right], self._windows[row])
        ended = bisect_left(state.left, earliest, key=_end)
        old = bisect_left(state.left, now - self._windows[row], key=_start)
        if drop := max(ended - 1, old, 0):
            del state.left[:drop]

    def _in_context(self, row: int, new: New, now: int) -> list[Derivation]:  # noqa: ARG002 - as above
        operator, state = self._operators[row], self._states[row]
        waiting = state.left, state.right
        queue = queue_of(new[operator.left], new[operator.right])
        return [made for side, o in queue for made in offer(self._policy, operator.kind, waiting, side, o)]

    def _either_in_context(self, row: int, new: New, now: int) -> list[Derivation]:  # noqa: ARG002 - as above
        operator = self._operators[row]
        return [o for _, o in queue_of(new[operator.left], new[operator.right])]

    def _without(self, row: int, new: New, now: int) -> list[Derivation]:
        operator, state = self._operators[row], self._states[row]
        left, right = new[operator.left], new[operator.right]
        if operator.script is None:
            state.latest = max([state.latest, *(_start(t) for t in right)])
            return [s for s in left if s.occurrence.start > state.latest]
        state.right += right
        made = [s for s in left if not any(self._takes_away(operator, s, t) for t in state.right)]
        _prune(state, now - self._windows[row])
        return made

    def _takes_away(self, operator: Operator, s: Derivation, t: Derivation) -> bool:
        """Whether t excludes s. t has ended before now, and so before the end of s."""
        return t.occurrence.start >= s.occurrence.start and self._holds(operator, s, t)

    def _within(self, row: int, new: New, now: int) -> list[Derivation]:
        operator = self._operators[row]
        return [s for s in new[operator.left] if now - s.occurrence.start <= operator.number]

    def _delayed(self, row: int, new: New, now: int) -> list[Derivation]:
        operator, state = self._operators[row], self._states[row]
        for s in new[operator.left]:
            later = delayed(s, operator.number)
            state.set_so_far += 1
            heappush(state.timers, (later.occurrence.end, state.set_so_far, later))
        made = []
        while state.timers and state.timers[0][0] <= now:
            made.append(heappop(state.timers)[2])
        return made

    def _bound(self, row: int, new: New, now: int) -> list[Derivation]:  # noqa: ARG002 - as above
        operator = self._operators[row]
        return [bound(s, operator.number) for s in new[operator.left]]

    def _filtered(self, row: int, new: New, now: int) -> list[Derivation]:  # noqa: ARG002 - all steps are called alike
        operator = self._operators[row]
        return [s for s in new[operator.left] if self._holds(operator, s)]

    def _holds(self, operator: Operator, *derivations: Derivation) -> bool:
        assert operator.script is not None
        binding = [one for derivation in derivations for one in derivation.binding]
        try:
            return holds(operator.script, binding, self._events, self._time_value)
        except ConditionError as error:
            raise ConditionError(f"{error} in {operator.text!r}") from error


# ruff: noqa: SLF001 - the tables of Tree's own steps
Step: TypeAlias = Callable[[Tree, int, New, int], list[Derivation]]

_STEPS: Mapping[Kind, Step] = {
    Kind.BOTH: Tree._both,
    Kind.EITHER: Tree._either,
    Kind.THEN: Tree._then,
    Kind.WITHOUT: Tree._without,
    Kind.WITHIN: Tree._within,
    Kind.DELAYED: Tree._delayed,
    Kind.BOUND: Tree._bound,
    Kind.FILTERED: Tree._filtered,
}
_IN_CONTEXTS: Mapping[Kind, Step] = {
    Kind.BOTH: Tree._in_context,
    Kind.EITHER: Tree._either_in_context,
    Kind.THEN: Tree._in_context,
    Kind.WITHIN: Tree._within,
}


def _start(derivation: Derivation) -> int:
    return derivation.occurrence.start


def _end(derivation: Derivation) -> int:
    return derivation.occurrence.end


def _distinct(made: list[Derivation]) -> list[Derivation]:
    return list(dict.fromkeys(made)) if len(made) > 1 else made


def _most_recent(made: list[Derivation]) -> list[Derivation]:
    return [max(made, key=recency)] if len(made) > 1 else made


def _latest(known: list[Derivation], new: list[Derivation]) -> list[Derivation]:
    return [max((*known, *new), key=recency)] if new else known


def _prune(state: State, since: int) -> None:
    """Now and then, forgets the derivations that started before `since`."""
    if len(state.left) + len(state.right) < state.pruned_at:
        return
    state.left = [s for s in state.left if _start(s) >= since]
    state.right = [t for t in state.right if _start(t) >= since]
    state.pruned_at = max(16, 2 * (len(state.left) + len(state.right)))
