"""Runs a plan over visits of several keys in several calls: on the reference, and on the kernel of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from tests.kernel.running import Listed, listed_by, listed_of

from cepheid.compile.stages.automaton import build_automaton
from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.tables import start_only_with
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Visits
from cepheid.kernel.reference_events import Event
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.reference import Match, ReferenceMatcher
from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class Visit:
    """One visit of a key."""

    key: int
    rows: tuple[tuple[int, int], ...]
    """Time and mask of the key's events."""
    until: int
    closes: bool


Calls = Sequence[Sequence[Visit]]
MOST_OPEN = 1000
"""More partial matches a key than this take the reference minutes: their number may double with each event."""
Found = list[tuple[tuple[tuple[int, int], ...], int | None]]
"""Matches as ((stage, position), …) and detected_at; positions count all events in the order of the visits."""


def run_reference(
    plan: Plan, calls: Calls, listed: list[Listed] | None = None, kind: type[ReferenceMatcher] = ReferenceMatcher
) -> list[Found]:
    """What each call finds with this kind of reference; the open partial matches after each call are appended to
    `listed`. Examples with more than MOST_OPEN partial matches are not tried.
    """
    automaton = build_automaton(plan.pattern)
    matchers: dict[int, ReferenceMatcher] = {}
    position, found = 0, []
    for visits in calls:
        matches: list[Match] = []
        for visit in visits:
            matcher = matchers.setdefault(visit.key, kind(automaton, plan.conditions, plan.window, plan.skip))
            for time, mask in visit.rows:
                matches += matcher.process(Event(position, time, mask, ()))
                assume(len(matcher.partial_matches) <= MOST_OPEN)
                position += 1
            matches += matcher.finish() if visit.until == FOREVER else matcher.advance_time(visit.until)
            if visit.closes:
                del matchers[visit.key]
        found.append([(match.taken, match.detected_at) for match in matches])
        if listed is not None:
            listed.append(listed_by(matchers.values()))
    return found


def run_sets(
    plan: Plan, calls: Calls, capacity: int, listed: list[Listed] | None = None, *, only_marked: bool = False
) -> list[Found]:
    """The same from the kernel, with an initial capacity of `capacity` for all arrays. With `only_marked`, only events
    with the bit `may_start` start partial matches.
    """
    compiled = compile_plan(plan)
    if only_marked:
        start_only_with(compiled.tables, compiled.may_start)
    matcher = SetKernel(compiled.tables, capacity=capacity)
    held: list[int] = []
    rows: list[tuple[int, int]] = []
    found = []
    for visits in calls:
        new = [row for visit in visits for row in visit.rows]
        positions = [*held, *range(len(rows), len(rows) + len(new))]
        rows += new
        emitted = matcher.run(events_at(rows, positions), visits_after(len(held), visits))
        found.append(_found(emitted, positions))
        if listed is not None:
            working_set = np.zeros(0, np.int64)  # the nodes contain the times
            listed.append(listed_of(matcher.listed(working_set, NO_TIME, 10000), positions))
        held = [positions[i] for i in matcher.hold()]
        _check_open(matcher, calls[: len(found)])
    return found


def _check_open(matcher: SetKernel, calls: Calls) -> None:
    """Open keys have not been closed, and their deadlines are in the future."""
    last = {visit.key: visit for visits in calls for visit in visits}
    open_ = matcher.open_keys.tolist()
    assert matcher.due(FOREVER - 1).tolist() == (open_ if matcher.window >= 0 else [])
    for key in open_:
        assert not last[key].closes
        assert key not in matcher.due(max([last[key].until, *(time for time, _ in last[key].rows)]))


def events_at(rows: Sequence[tuple[int, int]], positions: Sequence[int]) -> Events:
    """A working set without values."""
    return Events(
        time=np.array([rows[p][0] for p in positions], np.int64),
        mask=np.array([rows[p][1] for p in positions], np.int64),
        values=np.zeros((0, len(positions)), np.int64),
        missing=np.zeros((0, len(positions)), np.bool_),
    )


def visits_after(held: int, visits: Sequence[Visit]) -> Visits:
    """The visits of a call whose working set starts with `held` events."""
    return Visits(
        key=np.array([visit.key for visit in visits], np.int32),
        end=held + np.cumsum([len(visit.rows) for visit in visits], dtype=np.int64),
        until=np.array([visit.until for visit in visits], np.int64),
        closes=np.array([visit.closes for visit in visits], np.bool_),
    )


def _found(emitted: Emitted, positions: Sequence[int]) -> Found:
    found: Found = []
    begin = 0
    for end, detected in zip(emitted.end.tolist(), emitted.detected_at.tolist(), strict=True):
        taken = [(int(emitted.stage[i]), positions[emitted.event[i]]) for i in range(begin, end)]
        found.append((tuple(taken), None if detected == NO_TIME else detected))
        begin = end
    return found
