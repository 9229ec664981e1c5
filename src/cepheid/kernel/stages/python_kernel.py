"""The reference step in the place of the compiled kernel: for patterns that ask functions, which cannot be compiled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.compile.stages.automaton import Automaton
from cepheid.compile.stages.tables import Ints
from cepheid.errors import ConditionError
from cepheid.events.batch import Batch
from cepheid.kernel.scripts.python_functions import FunctionFailed
from cepheid.kernel.stages.kernel import ConditionFailed, Emitted, PassedLimit
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Flags, Int32s, Visits
from cepheid.kernel.stages.python_events import events_of
from cepheid.kernel.stages.python_state import arrays_of, matchers_of
from cepheid.kernel.stages.reference import (
    Event,
    Match,
    PartialMatch,
    ReferenceMatcher,
    TakenEvents,
    Timeout,
    order_of,
    positions_of,
)
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan


class Emission(NamedTuple):
    """A match, or a partial match that ran out of time: stages and positions of its events, and the time."""

    taken: tuple[tuple[int, int], ...]
    time: int
    timeout: bool


@dataclass
class Bounds:
    """The limits of each key, and what was over them, of all keys."""

    limits: Limits
    partial_matches: int = 0
    matches: int = 0


class KeyMatcher(ReferenceMatcher):
    """The reference step for one key, within the bounds.

    Raises:
        ConditionFailed, PassedLimit: of the event at that position.
    """

    def __init__(self, plan: Plan, automaton: Automaton, bounds: Bounds) -> None:
        super().__init__(automaton, plan.conditions, plan.window, plan.skip)
        self._plan = plan
        self._bounds = bounds
        self._truths: dict[int, bool] = {}

    def take(self, event: Event) -> list[Emission]:
        """What the event makes certain."""
        matches = self.process(event)
        most = self._bounds.limits.most_partial_matches
        if over := self._over("max_partial_matches", len(self.partial_matches) - most, event):
            self.partial_matches = self.partial_matches[over:]  # in the order of their start
            self._bounds.partial_matches += over
            matches += self._release(self._longest([]), event.time)
        return self._told(matches)

    def pass_time(self, until: int) -> list[Emission]:
        return self._told(self.advance_time(until))

    def end(self) -> list[Emission]:
        return self._told(self.finish())

    def copy(self) -> KeyMatcher:
        """Another one where this one is. Partial matches never change."""
        other = KeyMatcher(self._plan, self.automaton, self._bounds)
        other.partial_matches, other.completed, other.growing = (
            [*self.partial_matches],
            [*self.completed],
            [*self.growing],
        )
        other.step, other.reached = self.step, self.reached
        return other

    @property
    def deadline(self) -> int:
        """The earliest, FOREVER if there is none."""
        earliest = self._earliest_deadline()
        return FOREVER if earliest is None else earliest

    def listed(self, most: int) -> list[Emission]:
        """The open partial matches that started last, each as the timeout that it would be."""
        last = self.partial_matches[-most:]
        deadlines = [self._deadline(partial_match) for partial_match in last]
        return [
            Emission(positions_of(partial_match), NO_TIME if deadline is None else deadline, timeout=True)
            for partial_match, deadline in zip(last, deadlines, strict=True)
        ]

    @property
    def held(self) -> Iterator[Event]:
        """The events that open partial matches, and matches that wait or may grow, have."""
        for partial_match in chain(self.partial_matches, self.growing, (match for _, match in self.completed)):
            yield from (event for _, event in partial_match.taken)

    @property
    def withheld(self) -> int:
        """How many matches wait for an earlier one, may grow, or would be matches if they ended now."""
        states = self.automaton.states
        ending = [p for p in self.partial_matches if not p.whole and (states[p.state].pending or self._complete(p))]
        return len(self.completed) + len({*map(positions_of, [*self.growing, *ending])})

    def _told(self, matches: list[Match]) -> list[Emission]:
        """In the order of time; at one time what timed out comes first."""
        timeouts, self.timeouts = self.timeouts, []
        told = [
            Emission(match.taken, NO_TIME if match.detected_at is None else match.detected_at, timeout=False)
            for match in matches
        ]
        if timeouts and "timeouts" in (self._plan.outputs or ()):
            told += [
                Emission(timeout.taken, timeout.deadline, timeout=True) for timeout in sorted(timeouts, key=_by_start)
            ]
            told.sort(key=lambda row: (row.time == NO_TIME, row.time, not row.timeout))
        return told

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        self._truths = {}
        return super()._move(partial_match, event)

    def _condition(self, number: int, taken: TakenEvents, event: Event) -> bool:
        """Asked once for a partial match and event, though several edges may need it."""
        if number not in self._truths:
            self._truths[number] = self._evaluated(number, taken, event)
        return self._truths[number]

    def _evaluated(self, number: int, taken: TakenEvents, event: Event) -> bool:
        try:
            return super()._condition(number, taken, event)
        except ConditionError as error:
            raise ConditionFailed(event.position, self._script(number), str(error)) from error
        except FunctionFailed as error:
            reason = f"pattern {self._plan.pattern.name!r}: {error}"
            raise ConditionFailed(event.position, self._script(number), reason) from error.__cause__

    def _script(self, number: int) -> int:
        """The script's number among those of all conditions."""
        return sum(condition.script is not None for condition in self._plan.conditions[:number])

    def _release(self, completed: list[PartialMatch], now: int | None) -> list[Match]:
        most = self._bounds.limits.max_matches_per_event
        if completed and (over := self._over("max_matches_per_event", len(completed) - most, completed[0].last)):
            completed = sorted(completed, key=lambda match: order_of((self.step, match)))[over:]
            self._bounds.matches += over
        return super()._release(completed, now)

    def _over(self, limit: str, over: int, at: Event) -> int:
        """How many are to be dropped, if `over` are more than the limit; or it is an error, told with the event."""
        if over > 0 and self._bounds.limits.on_limit == "raise":
            raise PassedLimit(at.position, limit)
        return max(0, over)


class PythonKernel:
    """Runs the reference step as `CompiledKernel` runs the kernel: of all keys, one working set after the other."""

    def __init__(self, plan: Plan, automaton: Automaton, columns: frozenset[int]) -> None:
        """`columns` are the lifted ones that scripts read."""
        self._plan = plan
        self._automaton = automaton
        self._columns = columns
        self._keys: dict[int, KeyMatcher] = {}
        self.bounds = Bounds(plan.limits)
        self._held: list[int] = []  # the positions of the working set's held events: events keep theirs for ever
        self._first = 0  # the position of the event that came behind these
        self._behind = 0  # that behind the last event
        self._open: Ints = np.zeros(1, np.int64)
        self._deadlines: Ints = np.full(1, FOREVER)
        self._all_open = 0

    def run(self, batch: Batch, visits: Visits) -> Emitted:
        """Makes the visits. The working set is the events that `hold` named last, then the batches since.

        Raises:
            ConditionFailed, SkipError, PassedLimit: the kernel is of no use afterwards.
        """
        first, self._behind = self._behind, self._behind + len(batch)
        self.make_keys(int(visits.key.max(initial=-1)) + 1)
        events = events_of(self._columns, batch, first)
        counts = np.diff(visits.end, prepend=self._place(first)).tolist()
        told: list[Emission] = []
        try:
            for key, count, until, closes in zip(
                visits.key.tolist(), counts, visits.until.tolist(), visits.closes.tolist(), strict=True
            ):
                told += self._visit(key, islice(events, count), until, closes=closes)
        except ConditionFailed as failure:
            failure.event = self._place(failure.event)
            raise
        except PassedLimit as passed:
            passed.event = self._place(passed.event)
            raise
        return self._emitted(told)

    def hold(self) -> Int32s:
        """The places of the events that partial matches hold, ascending; they are the start of the next working set."""
        held = sorted({event.position for matcher in self._keys.values() for event in matcher.held})
        places = np.array([self._place(position) for position in held], np.int32)
        self._held, self._first = held, self._behind
        return places

    @property
    def size(self) -> int:
        """How many partial matches are open: what `hold` looks through."""
        return self._all_open

    def open_partial_matches(self, _now: int) -> int:
        """How many there are of all keys. Time has passed for all to where no deadline is due."""
        return self._all_open

    def listed(self, most: int) -> Emitted:
        """Of each key the open partial matches that started last, each as the timeout that it would be."""
        return self._emitted([row for _, matcher in sorted(self._keys.items()) for row in matcher.listed(most)])

    @property
    def withheld(self) -> int:
        """How many matches of all keys are found and wait to be emitted, or would be matches if they ended now."""
        return sum(matcher.withheld for matcher in self._keys.values())

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) of each of the keys, whether it has open partial matches."""
        flags: Flags = self._open[keys] > 0
        return flags

    def first_starts(self, keys: Int32s) -> list[int]:
        """(k,) when the first partial match of each of the keys began, which have some open."""
        return [self._keys[key].partial_matches[0].start.time for key in keys.tolist()]

    @property
    def open_keys(self) -> Int32s:
        """The numbers of all keys that have open partial matches, ascending."""
        return np.flatnonzero(self._open).astype(np.int32)

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that a deadline up to `time` is open for, ascending."""
        return np.flatnonzero(self._deadlines <= time).astype(np.int32)

    @property
    def next_due(self) -> int:
        """The earliest time that `due` has a key for; FOREVER if there is none."""
        return int(self._deadlines.min(initial=FOREVER))

    @property
    def dropped(self) -> tuple[int, int]:
        """How many partial matches, and how many matches, were over a limit."""
        return self.bounds.partial_matches, self.bounds.matches

    def fork(self, source: Int32s, target: Int32s) -> None:
        """What is open for source[i] is open for target[i], too, of which nothing was; each goes on without the
        other.
        """
        self.make_keys(int(target.max(initial=-1)) + 1)
        for before, key in zip(source.tolist(), target.tolist(), strict=True):
            if before in self._keys:
                self._keys[key] = self._keys[before].copy()
                self._note(key)

    def drop(self, keys: Int32s) -> None:
        """Nothing is open for these keys any more, and nothing is told of it."""
        for key in keys.tolist():
            self._keys.pop(key, None)
            self._note(key)

    def renumber(self, keys: Int32s) -> None:
        """The key of number keys[i] is number i from now on; of the others nothing is open."""
        self._keys = {i: self._keys[key] for i, key in enumerate(keys.tolist())}
        self._open, self._deadlines = self._open[keys], self._deadlines[keys]

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """In the block there are only these keys, which are open, as 0, 1, …: to be counted and listed."""
        before = self._keys, self._open, self._deadlines, self._all_open
        try:
            self.renumber(keys)
            self._all_open = int(self._open.sum())
            yield
        finally:
            self._keys, self._open, self._deadlines, self._all_open = before

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All that is open, as arrays; right behind `hold`."""
        place = {position: i for i, position in enumerate(self._held)}
        return arrays_of(self._keys, place) | {"dropped": np.array(self.dropped, np.int64)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Continues from what `state` gave, with the events that were held.

        Raises:
            SnapshotError: it does not fit the pattern.
        """
        events = [] if held is None else list(events_of(self._columns, held, 0))
        bounds = Bounds(self._plan.limits, *state["dropped"].tolist())

        def new() -> KeyMatcher:
            return KeyMatcher(self._plan, self._automaton, bounds)

        keys = matchers_of(state, events, new)
        self._keys, self.bounds = keys, bounds
        self._held = list(range(len(events)))
        self._first = self._behind = len(events)
        self._open, self._deadlines, self._all_open = np.zeros(1, np.int64), np.full(1, FOREVER), 0
        self.make_keys(max(keys, default=-1) + 1)
        for key in keys:
            self._note(key)

    def _visit(self, key: int, events: Iterable[Event], until: int, *, closes: bool) -> list[Emission]:
        matcher = self._keys.pop(key, None) or KeyMatcher(self._plan, self._automaton, self.bounds)
        told = [row for event in events for row in matcher.take(event)]
        told += matcher.end() if closes and until == FOREVER else matcher.pass_time(until)
        if matcher.partial_matches and not closes:
            self._keys[key] = matcher  # else nothing waits either
        self._note(key)
        return told

    def _note(self, key: int) -> None:
        """What is open for the key after a visit."""
        matcher = self._keys.get(key)
        open_ = 0 if matcher is None else len(matcher.partial_matches)
        self._all_open += open_ - int(self._open[key])
        self._open[key] = open_
        self._deadlines[key] = FOREVER if matcher is None else matcher.deadline

    def make_keys(self, keys: int) -> None:
        """Makes room for keys of numbers below `keys`."""
        more = keys - len(self._open)
        if more > 0:
            self._open = np.append(self._open, np.zeros(more + keys, np.int64))
            self._deadlines = np.append(self._deadlines, np.full(more + keys, FOREVER))

    def _place(self, position: int) -> int:
        """Where in the working set the event is."""
        if position < self._first:
            return bisect_left(self._held, position)
        return position - self._first + len(self._held)

    def _emitted(self, told: Sequence[Emission]) -> Emitted:
        taken = [pair for row in told for pair in row.taken]
        return Emitted(
            end=np.array([*accumulate(len(row.taken) for row in told)], np.int64),
            detected_at=np.array([row.time for row in told], np.int64),
            timeout=np.array([row.timeout for row in told], np.bool_),
            event=np.array([self._place(position) for _, position in taken], np.int32),
            stage=np.array([stage for stage, _ in taken], np.int32),
        )


def _by_start(timeout: Timeout) -> tuple[int, int, list[int], list[int]]:
    positions = [position for _, position in timeout.taken]
    return positions[0], -len(positions), positions, [stage for stage, _ in timeout.taken]
