"""Asks the reference, `cepheid.kernel.stages.reference`: event by event, in the case's own steps of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tests.conformance.case import Match, Value
from tests.conformance.compare import Found
from tests.conformance.delivery import Step
from tests.conformance.translate import TIME, Question

from cepheid.compile.stages.automaton import build_automaton
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.reference import ReferenceMatcher
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.plan import Plan

MILLISECOND = 1000
"""In microseconds."""
TIME_ALONE = -1
"""Stands for the event that caused a match if time alone did, as in the cases."""


def reference(question: Question) -> Found:
    """Matches and timeouts in their order, each with the event that caused it."""
    engine = _engine()
    key = () if question.key is None else (question.key,)
    plan = build_plan(question.pattern, Schema(question.events.schema, key, TIME, (question.sequence,)), engine)
    run = _Run(plan, _events(plan, question, engine), question.events.column("id").to_pylist())
    for step in question.steps:
        run.take(step)
    return run.found(question.late)


@cache
def _engine() -> DuckDbEngine:
    return DuckDbEngine()


def _events(plan: Plan, question: Question, engine: DuckDbEngine) -> list[Event]:
    """The events in order of arrival, at the positions of their arrival."""
    lifted = engine.evaluate(question.events, bits=plan.bits, values=plan.values)
    columns = [column.to_pylist() for column in lifted.values]
    rows = zip(*columns, strict=True) if columns else [()] * len(question.events)
    times = question.events.column("ts").to_pylist()
    return [
        Event(i, int(ts) * MILLISECOND, mask, values)
        for i, (ts, mask, values) in enumerate(zip(times, lifted.masks[0].tolist(), rows, strict=True))
    ]


class _Run:
    """A matcher for each key, and what the matchers have emitted so far."""

    def __init__(self, plan: Plan, events: Sequence[Event], ids: Sequence[int]) -> None:
        self.plan = plan
        self.automaton = build_automaton(plan.pattern)
        self.events = events
        self.ids = ids
        self.taken: list[int] = []
        """The ids of the events so far, in the order in which the matchers took them."""
        self.matchers: dict[Value, ReferenceMatcher] = {}
        self.matches: list[tuple[Match, int]] = []
        self.timeouts: list[tuple[Match, int, int]] = []

    def take(self, step: Step) -> None:
        matcher = self.matchers.setdefault(step.key, self._matcher())
        timed_out = len(matcher.timeouts)
        if step.event is None:
            at, matches = TIME_ALONE, matcher.advance_time(step.ts * MILLISECOND)
        else:
            at = self.ids[step.event]
            matches = matcher.process(replace(self.events[step.event], position=len(self.taken)))
            self.taken.append(at)
        self.matches += [(self._match(match.taken), at) for match in matches]
        self.timeouts += [
            (self._match(timeout.taken), timeout.deadline // MILLISECOND, at)
            for timeout in matcher.timeouts[timed_out:]
        ]

    def found(self, late: frozenset[int]) -> Found:
        return Found(
            matches=tuple(match for match, _ in self.matches),
            matches_at=tuple(at for _, at in self.matches),
            timeouts=tuple((match, ts) for match, ts, _ in self.timeouts),
            timeouts_at=tuple(at for _, _, at in self.timeouts),
            late=late,
        )

    def _matcher(self) -> ReferenceMatcher:
        plan = self.plan
        return ReferenceMatcher(self.automaton, plan.conditions, plan.window, plan.skip)

    def _match(self, taken: Sequence[tuple[int, int]]) -> Match:
        """The ids of the events of each stage; events are given by their positions."""
        leaves, stages = self.plan.pattern.leaves, dict.fromkeys(stage for stage, _ in taken)
        return frozenset((leaves[s].name, tuple(self.taken[i] for stage, i in taken if stage == s)) for s in stages)
