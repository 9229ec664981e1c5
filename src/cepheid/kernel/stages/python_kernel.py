"""Runs the reference step in place of the compiled kernel, for patterns with functions, which cannot be compiled."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.errors import ConditionError
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Flags, Int32s, Visits
from cepheid.kernel.failures import ConditionFailed, PassedLimit
from cepheid.kernel.key_room import room_for
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.python_functions import FunctionFailed
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, NEGATED, TIMED_OUT
from cepheid.kernel.stages.python_events import events_of
from cepheid.kernel.stages.python_state import arrays_of, earlier_of, matchers_of, restore_earlier
from cepheid.kernel.stages.reference import Match, PartialMatch, ReferenceMatcher, order_of, positions_of
from cepheid.plan.conditions.script import calls_function, can_fail
from cepheid.plan.limits import Limits


class Emission(NamedTuple):
    """A match, or what has ended without one: the stages and positions of its events, its time and its outcome."""

    taken: tuple[tuple[int, int], ...]
    time: int
    outcome: int


@dataclass
class Bounds:
    """The limits per key, and the numbers of partial matches and matches dropped because of them, for all keys
    together; also `ReferenceMatcher.negated` for all keys.
    """

    limits: Limits
    partial_matches: int = 0
    matches: int = 0
    negated: Counter[int] = field(default_factory=Counter)
    may_start: int | None = None
    """`ReferenceMatcher.may_start` of all keys."""


class KeyMatcher(ReferenceMatcher):
    """Runs the reference step for one key, within the bounds.

    Raises:
        ConditionFailed, PassedLimit: with the position of the event.
    """

    def __init__(self, pattern: CompiledPattern, bounds: Bounds) -> None:
        plan = pattern.plan
        super().__init__(pattern.automaton, plan.conditions, plan.window, plan.skip, plan.deadlines)
        self._pattern, self._plan = pattern, plan
        self._bounds = bounds
        self.negated = bounds.negated
        self._truths: dict[int, bool] = {}

    def take(self, event: Event) -> list[Emission]:
        """Processes the event and returns what it makes certain."""
        self.may_start = self._bounds.may_start
        matches = self.process(event)
        self._forget_earlier(event.time)
        most = self._bounds.limits.most_partial_matches
        if over := self._over("max_partial_matches", len(self.partial_matches) - most, event):
            self._drop_oldest(over)
            matches += self._release(self._longest([]), event.time)
        return self._emissions(matches)

    def _drop_oldest(self, over: int) -> None:
        """Drops so many partial matches, because of a limit."""
        self.partial_matches = self.partial_matches[over:]  # they are in order of their start
        self._bounds.partial_matches += over

    def pass_time(self, until: int) -> list[Emission]:
        emissions = self._emissions(self.advance_time(until))
        self._forget_earlier(until)
        return emissions

    def close(self, until: int) -> list[Emission]:
        """Ends the key at this time; FOREVER: the input is complete."""
        return self._emissions(self.finish()) if until == FOREVER else self.pass_time(until)

    def copy(self) -> KeyMatcher:
        """A matcher in the same state. Partial matches never change, so both share them."""
        other = KeyMatcher(self._pattern, self._bounds)
        other.partial_matches, other.completed, other.growing = (
            [*self.partial_matches],
            [*self.completed],
            [*self.growing],
        )
        other.step, other.reached, other.earlier = self.step, self.reached, [*self.earlier]
        return other

    @property
    def is_open(self) -> bool:
        """Whether anything is open. Without partial matches no match waits, but earlier events may still matter."""
        return bool(self.partial_matches or self.earlier)

    @property
    def deadline(self) -> int:
        """The earliest time at which a partial match or an earlier event ends, FOREVER if there is none."""
        earliest = self._earliest_deadline()
        ends = [FOREVER if earliest is None else earliest, *map(self._expires, self.earlier[:1])]
        return min(ends)

    def _forget_earlier(self, now: int) -> None:
        """Forgets the earlier events that no event at `now` or later could see."""
        while self.earlier and self._expires(self.earlier[0]) <= now:
            self.earlier.pop(0)

    def _expires(self, earlier: Event) -> int:
        """The first time at which an event may start a partial match although `earlier` came before."""
        assert self.automaton.without
        return earlier.time + self.automaton.without.window + 1

    def listed(self, most: int) -> list[Emission]:
        """The open partial matches that started last, each as the timeout that it would be."""
        last = self.partial_matches[-most:]
        deadlines = [self._deadline(partial_match) for partial_match in last]
        return [
            Emission(positions_of(partial_match), NO_TIME if deadline is None else deadline, TIMED_OUT)
            for partial_match, deadline in zip(last, deadlines, strict=True)
        ]

    @property
    def held(self) -> Iterator[Event]:
        """The events of open partial matches, of matches that wait or may grow, and earlier events that may matter."""
        yield from self.earlier
        for partial_match in chain(self.partial_matches, self.growing, (match for _, match in self.completed)):
            yield from (event for _, event in partial_match.taken)

    @property
    def starts(self) -> list[int]:
        """The positions of the first events of the open partial matches and of the matches that wait, ascending."""
        open_ = chain(self.partial_matches, (match for _, match in self.completed))
        return sorted({one.start.position for one in open_})

    @property
    def withheld(self) -> int:
        """The number of matches that wait for an earlier partial match or may grow, and of partial matches that would
        be matches if they ended now.
        """
        states = self.automaton.states
        ending = [p for p in self.partial_matches if not p.whole and (states[p.state].pending or self._complete(p))]
        return len(self.completed) + len({*map(positions_of, [*self.growing, *ending])})

    def _emissions(self, matches: list[Match]) -> list[Emission]:
        """The emissions in the order of time; at the same time matches come last."""
        timeouts, self.timeouts = self.timeouts, []
        no_matches, self.no_matches = self.no_matches, []
        emissions = [
            Emission(match.taken, NO_TIME if match.detected_at is None else match.detected_at, MATCHED)
            for match in matches
        ]
        without: list[Emission] = []
        if "timeouts" in (self._plan.outputs or ()):
            without += (Emission(timeout.taken, timeout.deadline, TIMED_OUT) for timeout in timeouts)
        if "no_match" in (self._plan.outputs or ()):
            without += (Emission(ended.taken, ended.time, NEGATED + ended.stage) for ended in no_matches)
        if without:
            emissions += sorted(without, key=_by_start)
            emissions.sort(key=lambda row: (row.time == NO_TIME, row.time, -row.outcome))
        return emissions

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        self._truths = {}
        moved, completed = super()._move(partial_match, event)
        if partial_match and self._stays(partial_match, moved, completed, event):
            return [partial_match], []
        return moved, completed

    def _stays(
        self, before: PartialMatch, moved: list[PartialMatch], completed: list[PartialMatch], event: Event
    ) -> bool:
        """Whether the event changes nothing. The partial match then stays where it is, as in the compiled kernel, and
        stands for those that the reference would make of it. For this no function is called, and nothing evaluated
        that may fail.
        """
        demands = self._pattern.demands[before.state]
        if demands is None or completed or any(len(after.taken) > len(before.taken) for after in moved):
            return False
        return not any(self._may_be_met(condition, before.taken, event) for condition in sorted(demands))

    def _may_be_met(self, number: int, taken: TakenEvents, event: Event) -> bool:
        """Whether a condition is true, or matching did not need it and it is a function or may fail."""
        script = self.conditions[number].script
        if number not in self._truths and script is not None and (calls_function(script) or can_fail(script)):
            return self._has_bit(number, event)
        return self._is_met(number, taken, event)

    def _is_met(self, number: int, taken: TakenEvents, event: Event) -> bool:
        """Evaluates a condition once for a partial match and an event, though several edges may need it."""
        if number not in self._truths:
            self._truths[number] = super()._is_met(number, taken, event)
        return self._truths[number]

    def _condition(self, number: int, taken: TakenEvents, event: Event) -> bool:
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
        return super()._release(self._within_limit(completed), now)

    def _within_limit(self, completed: list[PartialMatch]) -> list[PartialMatch]:
        """The matches without those over the limit."""
        most = self._bounds.limits.max_matches_per_event
        if completed and (over := self._over("max_matches_per_event", len(completed) - most, completed[0].last)):
            self._bounds.matches += over
            return sorted(completed, key=lambda match: order_of((self.step, match)))[over:]
        return completed

    def _over(self, limit: str, over: int, at: Event) -> int:
        """The number to drop: `over` if it is positive, else 0. Raises PassedLimit if it is positive and exceeding the
        limit is an error.
        """
        if over > 0 and self._bounds.limits.on_limit == "raise":
            raise PassedLimit(at.position, limit)
        return max(0, over)


class PythonKernel:
    """Runs the reference step as `CompiledKernel` runs the compiled kernel: for all keys, one working set after the
    other.
    """

    drops_deadlines_silently = False

    def __init__(self, pattern: CompiledPattern) -> None:
        self._pattern, self._plan = pattern, pattern.plan
        self._columns = pattern.script_columns
        self._keys: dict[int, KeyMatcher] = {}
        self.bounds = Bounds(self._plan.limits)
        self._held: list[int] = []  # the positions of the working set's held events; a position never changes
        self._first = 0  # the position of the first event after the held ones
        self._end = 0  # the position after the last event
        self._open: Ints = np.zeros(1, np.int64)
        self._deadlines: Ints = np.full(1, FOREVER)
        self._all_open = 0

    def run(self, batch: Batch, visits: Visits) -> Emitted:
        """Makes the visits. The working set is the events that `hold` returned last, then the batches since.

        Raises:
            ConditionFailed, SkipError, PassedLimit: the kernel cannot be used afterwards.
        """
        first, self._end = self._end, self._end + len(batch)
        self.make_keys(int(visits.key.max(initial=-1)) + 1)
        events = events_of(self._columns, batch, first)
        counts = np.diff(visits.end, prepend=self._place(first)).tolist()
        emissions: list[Emission] = []
        try:
            for key, count, until, closes in zip(
                visits.key.tolist(), counts, visits.until.tolist(), visits.closes.tolist(), strict=True
            ):
                emissions += self._visit(key, islice(events, count), until, closes=closes)
        except ConditionFailed as failure:
            failure.event = self._place(failure.event)
            raise
        except PassedLimit as passed:
            passed.event = self._place(passed.event)
            raise
        return self._emitted(emissions)

    def hold(self) -> Int32s:
        """The places, in the working set, of the events that partial matches hold, ascending. These events begin the
        next working set.
        """
        held = sorted({event.position for matcher in self._keys.values() for event in matcher.held})
        places = np.array([self._place(position) for position in held], np.int32)
        self._held, self._first = held, self._end
        return places

    @property
    def size(self) -> int:
        """The number of open partial matches: what `hold` looks through."""
        return self._all_open

    def open_partial_matches(self, _now: int) -> int:
        """The number of open partial matches of all keys; no deadline is due for any of them."""
        return self._all_open

    def listed(self, _events: Events, _now: int, most: int) -> Emitted:
        """For each key the open partial matches that started last, each as the timeout that it would be."""
        return self._emitted([row for _, matcher in sorted(self._keys.items()) for row in matcher.listed(most)])

    @property
    def withheld(self) -> int:
        """The number of matches of all keys that are found but not emitted, and of partial matches that would be
        matches if they ended now.
        """
        return sum(matcher.withheld for matcher in self._keys.values())

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) whether each of the keys has open partial matches."""
        return np.array([key in self._keys for key in keys.tolist()], np.bool_)

    def first_starts(self, keys: Int32s, _times: Ints) -> list[int]:
        """(k,) when the earliest open partial match of each key began; FOREVER for a key with earlier events only."""
        matchers = [self._keys[key] for key in keys.tolist()]
        return [m.partial_matches[0].start.time if m.partial_matches else FOREVER for m in matchers]

    def open_starts(self) -> Int32s:
        """The places of the first events of what is open for the key 0: of its partial matches and of the matches that
        wait; distinct and ascending.
        """
        return np.array([self._place(start) for start in self._keys[0].starts] if 0 in self._keys else [], np.int32)

    @property
    def open_keys(self) -> Int32s:
        """The numbers of all keys that have open partial matches, ascending."""
        return np.array(sorted(self._keys), np.int32)

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that have a deadline up to `time`, ascending."""
        return np.flatnonzero(self._deadlines <= time).astype(np.int32)

    @property
    def next_due(self) -> int:
        """The earliest time for which `due` has a key; FOREVER if there is none."""
        return int(self._deadlines.min(initial=FOREVER))

    @property
    def dropped(self) -> tuple[int, int]:
        """The numbers of partial matches and of matches that were dropped because of a limit."""
        return self.bounds.partial_matches, self.bounds.matches

    @property
    def negated(self) -> Ints:
        """(stages,) the number of partial matches that an event of a negated stage has ended without a match."""
        return np.array([self.bounds.negated[stage] for stage in range(len(self._plan.conditions))], np.int64)

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies everything open for key source[i] to key target[i], which has nothing open. Afterwards the two are
        independent.
        """
        self.make_keys(int(target.max(initial=-1)) + 1)
        for before, key in zip(source.tolist(), target.tolist(), strict=True):
            if before in self._keys:
                self._keys[key] = self._keys[before].copy()
                self._record_open(key)

    def drop(self, keys: Int32s) -> None:
        """Drops everything that is open for these keys, and emits nothing."""
        for key in keys.tolist():
            self._keys.pop(key, None)
            self._record_open(key)

    def renumber(self, keys: Int32s) -> None:
        """Renumbers keys: key keys[i] becomes key i. Nothing is open for other keys."""
        self._keys = {i: self._keys[key] for i, key in enumerate(keys.tolist())}
        self._open, self._deadlines = self._open[keys], self._deadlines[keys]

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """In the block the kernel has only these keys, numbered 0, 1, …; they must be open. They may be counted and
        listed.
        """
        before = self._keys, self._open, self._deadlines, self._all_open
        try:
            self.renumber(keys)
            self._all_open = int(self._open.sum())
            yield
        finally:
            self._keys, self._open, self._deadlines, self._all_open = before

    def limit(self, limits: Limits) -> None:
        """Applies these limits from now on."""
        self.bounds.limits = limits

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that is open, as arrays. Call it right after `hold`."""
        place = {position: i for i, position in enumerate(self._held)}
        counts = {"dropped": np.array(self.dropped, np.int64), "negated": self.negated}
        arrays = arrays_of(self._keys, place) | counts
        return arrays | earlier_of(self._keys, place) if self._pattern.automaton.without else arrays

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Restores the arrays of `state`, with the events that were held.

        Raises:
            SnapshotError: the arrays do not fit the pattern.
        """
        events = [] if held is None else list(events_of(self._columns, held, 0))
        negated = Counter(dict(enumerate(state["negated"].tolist()))) if "negated" in state else Counter[int]()
        partial_matches, matches = state["dropped"].tolist()
        bounds = Bounds(self._plan.limits, partial_matches, matches, negated, self.bounds.may_start)

        def new() -> KeyMatcher:
            return KeyMatcher(self._pattern, bounds)

        keys = matchers_of(state, events, new)
        if self._pattern.automaton.without:
            restore_earlier(keys, state["earlier"], events)
        self._keys, self.bounds = keys, bounds
        self._held = list(range(len(events)))
        self._first = self._end = len(events)
        self._open, self._deadlines, self._all_open = np.zeros(1, np.int64), np.full(1, FOREVER), 0
        self.make_keys(room_for(np.array([*keys], np.int64)))
        for key in keys:
            self._record_open(key)

    def _visit(self, key: int, events: Iterable[Event], until: int, *, closes: bool) -> list[Emission]:
        matcher = self._keys.pop(key, None) or self._new_key()
        emissions = [row for event in events for row in matcher.take(event)]
        emissions += matcher.close(until) if closes else matcher.pass_time(until)
        if matcher.is_open and not closes:
            self._keys[key] = matcher
        self._record_open(key)
        return emissions

    def _new_key(self) -> KeyMatcher:
        return KeyMatcher(self._pattern, self.bounds)

    def _record_open(self, key: int) -> None:
        """Records what is open for the key after a visit."""
        matcher = self._keys.get(key)
        open_ = 0 if matcher is None else len(matcher.partial_matches)
        self._all_open += open_ - int(self._open[key])
        self._open[key] = open_
        self._deadlines[key] = FOREVER if matcher is None else matcher.deadline

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        more = keys - len(self._open)
        if more > 0:
            self._open = np.append(self._open, np.zeros(more + keys, np.int64))
            self._deadlines = np.append(self._deadlines, np.full(more + keys, FOREVER))

    def _place(self, position: int) -> int:
        """The place of the event in the working set."""
        if position < self._first:
            return bisect_left(self._held, position)
        return position - self._first + len(self._held)

    def _emitted(self, emissions: Sequence[Emission]) -> Emitted:
        taken = [pair for row in emissions for pair in row.taken]
        return Emitted(
            end=np.array([*accumulate(len(row.taken) for row in emissions)], np.int64),
            detected_at=np.array([row.time for row in emissions], np.int64),
            outcome=np.array([row.outcome for row in emissions], np.int32),
            event=np.array([self._place(position) for _, position in taken], np.int32),
            stage=np.array([stage for stage, _ in taken], np.int32),
        )


def _by_start(ended: Emission) -> tuple[int, int, list[int], list[int]]:
    positions = [position for _, position in ended.taken]
    return positions[0], -len(positions), positions, [stage for stage, _ in ended.taken]
