"""Finds the near misses of a pattern: it runs the pattern and its changes over the same events, without skipping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled_plans import CompiledPlans
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.pattern_events import projections
from cepheid.matchers.stages.near_events import OwnEvents, SharedEvents
from cepheid.matchers.stages.near_runs import Attempt, NearDetector, NearRun, OrderedNearDetector, limits_of
from cepheid.output.near_misses import NearMisses
from cepheid.output.stages.near.found import EventOrder, NearMatches, Taken
from cepheid.output.stages.near.looked_at import LookedAt, looked_at
from cepheid.output.stages.near.reasons import Known
from cepheid.output.stages.near.rows import near_misses_of
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.stages.near.changes import Change, loses_overlapping, may_lose_starts, without_error, without_skipping
from cepheid.plan.stages.near.probes import Probes, probes_of


def near_patterns(pattern: Pattern, changes: Sequence[Change], *, complete: bool) -> list[Pattern]:
    """The patterns to run: the pattern and its changes without skipping, then the changes with it if only a run says
    which starts it loses. Their names are their numbers.
    """
    each = [without_skipping(one, complete=complete) for one in (pattern, *(change.pattern for change in changes))]
    if may_lose_starts(pattern, complete=complete) and not loses_overlapping(pattern, complete=complete):
        each += [without_error(change.pattern) for change in changes]
    return [one.named(str(number)) for number, one in enumerate(each)]


class NearMatcher:
    """Runs the patterns of `near_patterns`. Give it all events with their numbers, then call `finish`."""

    def __init__(self, patterns: CompiledPlans, changes: Sequence[Change], until: int | None) -> None:
        """The limits of the plans do not count."""
        plans, count = patterns.plans, len(changes)
        self._pattern = patterns.each[0]
        self._plan = self._pattern.plan
        self._changes = changes
        self._is_complete = until is None
        self._shared = SharedEvents(plans)
        self._first = OrderedNearDetector(self._pattern)
        self._first.kernel.limit(Limits())
        self._unchanged = NearRun(self._first, until)
        detectors = [NearDetector(one, starts_only=n >= count) for n, one in enumerate(patterns.each[1:])]
        for detector, one in zip(detectors, patterns.each[1:], strict=True):
            detector.kernel.limit(limits_of(one.plan.pattern))
        runs = [NearRun(detector, until) for detector in detectors]
        whole, skipping = runs[:count], runs[count:]
        self._own, *own = _own_events(patterns, 1 + count)
        starts: Sequence[NearRun | None] = skipping or [None] * count
        self._attempts = [Attempt(*each) for each in zip(own, whole, starts, strict=True)]

    def process(self, batch: Batch) -> None:
        """Takes events in the order of key, time and sequence; raises as a SortedMatcher."""
        self._run(self._shared.process(batch))

    def finish(self) -> None:
        """Ends the input; raises as `process`."""
        self._run(self._shared.finish())
        self._unchanged.end()
        for attempt in self._attempts:
            attempt.end()

    def _run(self, parts: Iterable[Batch]) -> None:
        for part in parts:
            self._unchanged.run(self._own.of(part))
            for attempt in self._attempts:
                attempt.run(part)

    @cached_property
    def found(self) -> list[NearMatches]:
        """The near matches of each change that did not fail, after `finish`."""
        each = zip(self._changes, self._attempts, strict=True)
        return [self._found(change, attempt) for change, attempt in each if attempt.failure is None]

    def _found(self, change: Change, attempt: Attempt) -> NearMatches:
        taken = _of_other_starts(attempt.without_skipping.taken, self._is_matched)
        lost = np.zeros(len(self._is_matched), np.bool_)
        if (remaining := self._after_skipping(change.pattern, attempt)) is not None:
            lost[taken.starts] = True
            lost[remaining] = False
        stage = _numbers_of(change, self._plan.pattern)[taken.stage]
        return NearMatches(change, replace(taken, stage=stage), lost[taken.starts], attempt.without_skipping.dropped)

    def _after_skipping(self, changed: Pattern, attempt: Attempt) -> Ints | None:
        """The starts that the skip strategy of the changed pattern does not lose; None if it loses none."""
        if attempt.skipping is not None:
            return attempt.skipping.taken.starts
        if not loses_overlapping(changed, complete=self._is_complete):
            return None
        taken, place = attempt.without_skipping.taken, self._shared.places
        return taken.starts[apart(place[taken.starts], place[taken.event[taken.end - 1]])]

    @cached_property
    def _is_matched(self) -> Flags:
        """For each number of an event, whether a match of the unchanged pattern starts with it."""
        flags = np.zeros(self._shared.size, np.bool_)
        flags[self._unchanged.taken.starts] = True
        return flags

    def probes(self, engine: SqlEngine) -> Probes:
        """What must be lifted for the events of `looked_at`."""
        return probes_of(self._plan, engine)

    @cached_property
    def looked_at(self) -> Ints:
        """The numbers of the events whose values say why a start does not match, after `finish`."""
        return looked_at(self._plan, self.found, self._order)

    def known(self, probes: Probes, batch: Batch, source: pa.Table) -> Known:
        """What reasons are found in. `batch` has the events of `looked_at` in their order, lifted for the probes;
        `source` has all events in the order of their numbers.
        """
        time = self._plan.schema.time
        times = None if time is None else source.column(time)
        events = LookedAt(self.looked_at, probes, batch)
        return Known(self._plan, self._pattern.automaton, self._order, events, times)

    def misses(self, probes: Probes, batch: Batch, source: pa.Table, failed: Mapping[str, str]) -> NearMisses:
        """The near misses; arguments as for `known`, and `failed` says why other changes could not be tried."""
        each = zip(self._changes, self._attempts, strict=True)
        own = {change.text: attempt.failure for change, attempt in each if attempt.failure is not None}
        return near_misses_of(self.known(probes, batch, source), self.found, {**own, **failed}, source)

    @cached_property
    def _order(self) -> EventOrder:
        return self._first.order


def _own_events(patterns: CompiledPlans, count: int) -> list[OwnEvents]:
    """The events of each of the first `count` patterns. Patterns with the same bits, values and relevance share one."""
    shared = dict[object, OwnEvents]()
    plans, relevant_to, each = patterns.plans, patterns.relevant_to, projections(patterns.plans, patterns.relevant_to)
    keys = [
        (place, relevant, bool(plan.functions))
        for plan, place, relevant in zip(plans.each, plans.places, relevant_to, strict=True)
    ]
    return [shared.setdefault(key, OwnEvents(events)) for key, events in zip(keys[:count], each, strict=False)]


def _of_other_starts(taken: Taken, is_matched: Flags) -> Taken:
    """The first match of each start that is not matched."""
    starts, numbers = taken.starts, np.arange(len(taken.end))
    first = np.zeros(len(is_matched), np.int64)
    first[starts[::-1]] = numbers[::-1]  # the last value that is given to a start stays
    return taken.only((first[starts] == numbers) & ~is_matched[starts])


def apart(first: Ints, last: Ints) -> Ints:
    """The numbers of the matches that begin after the end of the one before, from matches in the order of their starts;
    `first` and `last` are the places of their first and last events.
    """
    following = np.searchsorted(first, last, side="right").tolist()
    found, number = list[int](), 0
    while number < len(following):
        found.append(number)
        number = following[number]
    return np.array(found, np.int64)


def _numbers_of(change: Change, pattern: Pattern) -> Int32s:
    """For each stage of the changed pattern, its number in the unchanged one."""
    numbers = {leaf.name: number for number, leaf in enumerate(pattern.leaves)}
    return np.array([numbers[leaf.name] for leaf in change.pattern.leaves], np.int32)
