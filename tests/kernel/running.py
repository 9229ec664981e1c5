"""Runs a plan over the rows of several keys: on the reference, and on the compiled kernel in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.script import encode
from cepheid.compile.stages.automaton import Action, Edge, build_automaton
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.compile.stages.tables import start_only_with
from cepheid.errors import ConditionError, SkipError
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Visits
from cepheid.kernel.failures import ConditionFailed
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.stages.before.looking_back import LookingBackKernel
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.kernel.stages.layout import NEGATED, TIMED_OUT
from cepheid.kernel.stages.observed.compiled import CountingKernel, CountingLookingBackKernel
from cepheid.kernel.stages.observed.tally import Tally
from cepheid.kernel.stages.reference import Match, PartialMatch, ReferenceMatcher, positions_of
from cepheid.plan.calendar import deadlines_after
from cepheid.plan.stages.plan import Plan

Row = tuple[int, int, tuple[object, ...]]
Taken = tuple[tuple[int, int], ...]
Listed = set[tuple[Taken, int | None]]
"""Open partial matches with their deadlines."""


@dataclass(frozen=True)
class Found:
    """Matches as ((stage, position), …) and detected_at, in the order of keys and emission; timeouts in any order."""

    matches: list[tuple[Taken, int | None]]
    timeouts: set[tuple[Taken, int]]
    negated: Counter[int] = field(default_factory=Counter)
    """The number of partial matches that a forbidden event has ended, by the negated stage."""
    no_matches: Counter[tuple[Taken, int, int]] = field(default_factory=Counter)
    """Those partial matches, the negated stage and the time of the event; once for each event that ended some."""


@dataclass(frozen=True)
class Visit:
    """The next `rows` rows of a key; with `time_advances`, time then advances to the key's next row."""

    key: int
    rows: int
    time_advances: bool = False


class FailingIsFalse(ReferenceMatcher):
    """The reference with conditions that are false instead of failing."""

    instead = False

    def _condition(self, number: int, taken: TakenEvents, event: Event) -> bool:
        try:
            return super()._condition(number, taken, event)
        except ConditionError:
            return self.instead


class FailingIsTrue(FailingIsFalse):
    instead = True


class Eager(ReferenceMatcher):
    """The reference that evaluates all conditions of a state, even if the result is already decided."""

    def _edges(self, state: int, taken: TakenEvents, event: Event) -> Iterator[Edge]:
        for edge in self.automaton.states[state].edges:
            for demand in (demand for term in edge.guard.terms for demand in term):
                self._is_met(demand.condition, taken, event)
            if edge.action is Action.PROCEED:
                [*self._edges(edge.target, taken, event)]
        yield from super()._edges(state, taken, event)


def run_reference(
    plan: Plan,
    keys: Sequence[Sequence[Row]],
    until: int | None = None,
    kind: type[ReferenceMatcher] = ReferenceMatcher,
) -> Found | str:
    """What the reference, or the given `kind` of it, finds; "failed" if a condition fails."""
    automaton = build_automaton(plan.pattern)
    found = Found([], set())
    position = 0
    try:
        for rows in keys:
            matcher = kind(automaton, plan.conditions, plan.window, plan.skip, plan.deadlines)
            matches = []
            for time, mask, values in rows:
                matches += matcher.process(Event(position, time, mask, values))
                position += 1
            matches += matcher.finish() if until is None else matcher.advance_time(until)
            found.matches.extend((match.taken, match.detected_at) for match in matches)
            found.timeouts.update((timeout.taken, timeout.deadline) for timeout in matcher.timeouts)
            found.negated.update(matcher.negated)
            if "no_match" in (plan.outputs or ()):
                found.no_matches.update((ended.taken, ended.stage, ended.time) for ended in matcher.no_matches)
    except (ConditionError, SkipError):
        return "failed"
    return found


class Distinct(ReferenceMatcher):
    """The reference, which fails if two branches have taken the same events."""

    _moved: list[PartialMatch]
    _done: list[PartialMatch]

    def process(self, event: Event) -> list[Match]:
        self._moved, self._done = [], []
        matches = super().process(event)
        moved = {(p.state, positions_of(p), p.whole) for p in self._moved}
        if len(moved) < len(self._moved) or len({*map(positions_of, self._done)}) < len(self._done):
            raise SkipError("two branches have taken the same")
        return matches

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        moved, done = super()._move(partial_match, event)
        self._moved += moved
        self._done += done
        return moved, done


def branches_are_counted_twice(plan: Plan, keys: Sequence[Sequence[Row]]) -> bool:
    """Whether two branches take the same events, which the compiled kernel counts twice, also for a limit. True also
    where a condition fails.
    """
    return run_reference(plan, keys, kind=Distinct) == "failed"


def run_compiled(
    plan: Plan,
    keys: Sequence[Sequence[Row]],
    batches: Sequence[Sequence[Visit]] = (),
    until: int | None = None,
    *,
    capacity: int = 64,
    withheld: list[int] | None = None,
    listed: list[Listed] | None = None,
    indexed: bool | None = None,
    restored: bool = False,
    counts: list[tuple[int, int, int]] | None = None,
    only_marked: bool = False,
    tallies: list[Tally] | None = None,
) -> Found | str:
    """The same from the compiled kernel. The rows that `batches` leave over are run last, and all keys are closed.
    After each batch, the number of withheld matches is appended to `withheld`, and the open partial matches to
    `listed`.

    `indexed` says whether the kernel makes an index whenever it can, or never; None: when it pays. If `restored`, each
    batch goes to a kernel of its own, which restores the state of the one before it. At the end, how often a partial
    match was visited is appended to `counts`, and how many partial matches and matches were dropped. With
    `only_marked`, only events with the bit `may_start` start partial matches. With `tallies`, the kernel also counts
    starts, and its counts are appended; it is not restored.
    """
    compiled = compile_plan(plan)
    if only_marked:
        start_only_with(compiled.tables, compiled.may_start)
    settings = compiled.tables.settings
    if indexed and settings["index_least"][0] >= 0:
        settings["index_least"], settings["index_after"] = 0, -1
    elif indexed is not None:
        settings["index_least"] = -1
    rows = [row for key in keys for row in key]
    first_of = np.cumsum([0, *map(len, keys)]).tolist()
    texts = sorted(
        {v for row in rows for v in row[2] if isinstance(v, str)} | set(compiled.string_constants.values()),
        key=str.encode,
    )
    for number, text in compiled.string_constants.items():
        compiled.tables.constants[number] = texts.index(text)
    matcher = _kernel(compiled, capacity, counting=tallies is not None)
    done, held = [0] * len(keys), list[int]()
    found = [Found([], set()) for _ in keys]
    key_of = np.repeat(np.arange(len(keys)), [len(key) for key in keys])
    try:
        for number in range(len(batches) + 1):
            last = number == len(batches)
            visits = [Visit(key, len(rows)) for key in range(len(keys))] if last else batches[number]
            positions, entries = list(held), []
            for visit in visits:
                begin, stop = done[visit.key], min(done[visit.key] + visit.rows, len(keys[visit.key]))
                positions += range(first_of[visit.key] + begin, first_of[visit.key] + stop)
                done[visit.key] = stop
                next_time = keys[visit.key][stop][0] if visit.time_advances and stop < len(keys[visit.key]) else NO_TIME
                end_time = FOREVER if until is None else until
                entries.append((visit.key, len(positions), end_time if last else next_time, last))
            working_set = _events(plan, rows, positions, texts)
            emitted = matcher.run(working_set, _visits(entries))
            _collect(emitted, positions, key_of, found)
            if withheld is not None:
                withheld.append(matcher.withheld)
            if listed is not None:
                listed.append(listed_of(matcher.listed(working_set, NO_TIME, 1000), positions))
            held = [positions[i] for i in matcher.hold()]
            if restored:
                state, matcher = matcher.state(), _kernel(compiled, capacity)
                matcher.restore(state, held)  # type: ignore[arg-type]  # the kernel reads only how many are held
    except (ConditionFailed, SkipError):
        return "failed"
    if counts is not None:
        counts.append((int(matcher.cursor.visited), *matcher.dropped))
    _add_tally(matcher, tallies)
    timeouts = {timeout for part in found for timeout in part.timeouts}
    matches = [match for part in found for match in part.matches]
    return Found(matches, timeouts, negated_of(matcher.negated), no_matches_of(found))


def _kernel(compiled: CompiledPattern, capacity: int, *, counting: bool = False) -> CompiledKernel:
    before = compiled.plan.pattern.without is not None
    if counting:
        kind = CountingLookingBackKernel if before else CountingKernel
        return kind(compiled.tables, compiled.untils, capacity=capacity)
    return (LookingBackKernel if before else CompiledKernel)(compiled.tables, capacity=capacity)


def _add_tally(matcher: CompiledKernel, tallies: list[Tally] | None) -> None:
    if isinstance(matcher, CountingKernel):
        assert tallies is not None
        tallies.append(matcher.tally())


def no_matches_of(found: Iterable[Found]) -> Counter[tuple[Taken, int, int]]:
    return sum((part.no_matches for part in found), Counter[tuple[Taken, int, int]]())


def negated_of(counts: Ints) -> Counter[int]:
    return Counter({stage: count for stage, count in enumerate(counts.tolist()) if count})


def open_in_reference(
    plan: Plan, keys: Sequence[Sequence[Row]], batches: Sequence[Sequence[Visit]]
) -> Iterator[Listed]:
    """The open partial matches of the reference after each batch."""
    automaton = build_automaton(plan.pattern)
    matchers = [ReferenceMatcher(automaton, plan.conditions, plan.window, plan.skip) for _ in keys]
    first_of = np.cumsum([0, *map(len, keys)]).tolist()
    done = [0] * len(keys)
    for batch in batches:
        for visit in batch:
            rows, matcher = keys[visit.key], matchers[visit.key]
            stop = min(done[visit.key] + visit.rows, len(rows))
            for i in range(done[visit.key], stop):
                matcher.process(Event(first_of[visit.key] + i, *rows[i]))
            if visit.time_advances and stop < len(rows):
                matcher.advance_time(rows[stop][0])
            done[visit.key] = stop
        yield listed_by(matchers)


def listed_by(matchers: Iterable[ReferenceMatcher]) -> Listed:
    """The open partial matches: their events with stages, and their deadlines."""
    return {(positions_of(p), matcher._deadline(p)) for matcher in matchers for p in matcher.partial_matches}  # noqa: SLF001


def listed_of(emitted: Emitted, positions: Sequence[int]) -> Listed:
    listed, begin = set(), 0
    for end, deadline in zip(emitted.end.tolist(), emitted.detected_at.tolist(), strict=True):
        taken = tuple((int(emitted.stage[i]), positions[emitted.event[i]]) for i in range(begin, end))
        listed.add((taken, None if deadline == NO_TIME else deadline))
        begin = end
    return listed


def _visits(entries: list[tuple[int, int, int, bool]]) -> Visits:
    key, end, until, closes = zip(*entries, strict=True) if entries else ((), (), (), ())
    return Visits(
        np.array(key, np.int32), np.array(end, np.int64), np.array(until, np.int64), np.array(closes, np.bool_)
    )


def _events(plan: Plan, rows: Sequence[Row], positions: list[int], texts: list[str]) -> Events:
    chosen = [rows[p] for p in positions]
    times = np.array([row[0] for row in chosen], np.int64)
    values = np.zeros((len(plan.values) + (plan.deadlines is not None), len(chosen)), np.int64)
    if plan.deadlines is not None:
        values[-1] = deadlines_after(times, plan.deadlines)
    missing = np.zeros(values.shape, np.bool_)
    for column, lifted in enumerate(plan.values):
        for i, (_, _, row) in enumerate(chosen):
            missing[column, i] = row[column] is None
            values[column, i] = 0 if row[column] is None else _code(row[column], lifted.type, texts)
    return Events(
        time=times,
        mask=np.array([row[1] for row in chosen], np.int64),
        values=values,
        missing=missing,
    )


def _code(value: object, type_: pa.DataType, texts: list[str]) -> int:
    return texts.index(value) if isinstance(value, str) else encode(value, type_)  # type: ignore[arg-type]


def _collect(emitted: Emitted, positions: list[int], key_of: np.ndarray, found: Sequence[Found]) -> None:
    """Adds the emitted rows to those found for their key."""
    begin = 0
    for end, detected, outcome in zip(
        emitted.end.tolist(), emitted.detected_at.tolist(), emitted.outcome.tolist(), strict=True
    ):
        taken = tuple((int(emitted.stage[i]), positions[emitted.event[i]]) for i in range(begin, end))
        part = found[key_of[taken[0][1]]]
        if outcome >= NEGATED:
            part.no_matches[taken, outcome - NEGATED, detected] += 1
        elif outcome == TIMED_OUT:
            part.timeouts.add((taken, detected))
        else:
            part.matches.append((taken, None if detected == NO_TIME else detected))
        begin = end
