"""Finds the near misses of a pattern: it runs the pattern and its changes over the same events, without skipping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.compiled_plans import compile_plans
from cepheid.events.batch import MASK, NUMBER, TIME, Batch
from cepheid.events.order import ordering_of
from cepheid.kernel.arrays import Int32s, Visits
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.pattern_events import events_of_each
from cepheid.matchers.stages.detector import Detector, places
from cepheid.output.near_misses import NearMisses
from cepheid.output.stages.conditions import probed_events
from cepheid.output.stages.near.found import EventOrder, NearMatches, Taken
from cepheid.output.stages.near.reasons import Reasons, looked_at
from cepheid.output.stages.near.rows import near_misses_of
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.stages.near.changes import Change, may_lose_starts, without_error, without_skipping
from cepheid.plan.stages.near.probes import Probes, probes_of
from cepheid.plan.stages.plans import Plans

MOST_OPEN = 10_000
"""The most partial matches of a key that may be open for a changed pattern. Those that start first are dropped."""

_MATCHES = pa.schema([("events", pa.list_(pa.int64())), ("stages", pa.list_(pa.int32()))])
"""The numbers of the events of a match, and the stages that took them."""


def asked_of(pattern: Pattern, changes: Sequence[Change], *, complete: bool) -> list[Pattern]:
    """The patterns to run: the pattern and its changes without skipping, then the changes with it if it may lose a
    start. Their names are their numbers.
    """
    asked = [without_skipping(one, complete=complete) for one in (pattern, *(change.pattern for change in changes))]
    if may_lose_starts(pattern, complete=complete):
        asked += [without_error(change.pattern) for change in changes]
    return [one.named(str(number)) for number, one in enumerate(asked)]


class NearMatcher:
    """Runs the patterns of `asked_of`. Give it all events with their numbers, then call `finish`."""

    def __init__(self, plans: Plans, changes: Sequence[Change], until: int | None) -> None:
        self._changes = changes
        limits = [Limits(), *[Limits(max_partial_matches=MOST_OPEN, on_limit="drop")] * (len(plans.each) - 1)]
        each = [replace(plan, limits=limit) for plan, limit in zip(plans.each, limits, strict=True)]
        patterns = compile_plans(Plans.of(each, named=plans.named))
        self._pattern = patterns.each[0]
        self._plan = self._pattern.plan
        self._detectors = [_OrderedDetector(patterns.each[0]), *map(_Detector, patterns.each[1:])]
        self._matchers = [
            SortedMatcher(detector, until=until, ordering=ordering_of(plans.schema)) for detector in self._detectors
        ]
        self._own = events_of_each(plans, patterns.relevant_to)
        self._parts: list[list[pa.Table]] = [[] for _ in self._matchers]

    def process(self, batch: Batch) -> None:
        """Takes events in the order of key, time and sequence; raises as a SortedMatcher."""
        for matcher, own, parts in zip(self._matchers, self._own, self._parts, strict=True):
            parts.extend(matcher.process(own.of(batch)))

    def finish(self) -> None:
        """Ends the input."""
        for matcher, parts in zip(self._matchers, self._parts, strict=True):
            parts.extend(matcher.finish())

    @cached_property
    def found(self) -> list[NearMatches]:
        """The near matches of each change, after `finish`."""
        return [*self._found()]

    def _found(self) -> Iterator[NearMatches]:
        count = len(self._changes)
        matched = _taken(self._parts[0]).starts
        for number, change in enumerate(self._changes, start=1):
            taken = _of_other_starts(_taken(self._parts[number]), matched)
            lost = np.empty(0, np.int64)
            if len(self._parts) > count + 1:
                lost = np.setdiff1d(taken.starts, _taken(self._parts[count + number]).starts)
            dropped = self._detectors[number].found.dropped_partial_matches
            numbers = _numbers_of(change, self._plan.pattern)
            yield NearMatches(change, taken._replace(stage=numbers[taken.stage]), frozenset(lost.tolist()), dropped)

    def probes(self, engine: SqlEngine) -> Probes:
        """What must be lifted for the events of `looked_at`."""
        return probes_of(self._plan, engine)

    @cached_property
    def looked_at(self) -> Ints:
        """The numbers of the events whose values say why a start does not match, after `finish`."""
        return looked_at(self._plan, self.found, self._order)

    def misses(self, probes: Probes, batch: Batch, source: pa.Table, failed: Mapping[str, str]) -> NearMisses:
        """The near misses. `batch` has the events of `looked_at` in their order, lifted for the probes; `source` has
        all events in the order of their numbers; `failed` says why other changes could not be tried.
        """
        events = dict(zip(self.looked_at.tolist(), probed_events(probes, batch), strict=True))
        time = self._plan.schema.time
        reasons = Reasons(self._pattern, probes, self._order, events, None if time is None else source.column(time))
        return near_misses_of(self._plan, self.found, reasons, failed, source)

    @cached_property
    def _order(self) -> EventOrder:
        detector = self._detectors[0]
        assert isinstance(detector, _OrderedDetector)
        return detector.order


class _Detector(Detector):
    """A Detector whose rows are the numbers and the stages of the events of each match."""

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        return [_MATCHES]

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        matched, _ = emitted.only(emitted.outcome == MATCHED)
        used, position = places(matched.event, len(self.working_set))
        numbers = self.working_set.take(used).column(NUMBER).to_numpy()[position]
        ends = pa.array(np.append(0, matched.end).astype(np.int32))
        lists = [pa.ListArray.from_arrays(ends, pa.array(values)) for values in (numbers, matched.stage)]
        return pa.RecordBatch.from_arrays(lists, schema=_MATCHES)


class _OrderedDetector(_Detector):
    """Also records the order of its events."""

    def __init__(self, pattern: CompiledPattern) -> None:
        super().__init__(pattern)
        self._seen: list[EventOrder] = []
        self._count = 0

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        number, time = batch.column(NUMBER).to_numpy(), batch.column(TIME).cast(pa.int64()).to_numpy()
        ends = visits.end[visits.closes] + self._count
        self._seen.append(EventOrder(number, time, batch.column(MASK).to_numpy(), ends))
        self._count += len(batch)
        return super().step(batch, visits)

    @property
    def order(self) -> EventOrder:
        """The events so far."""
        none = np.empty(0, np.int64)
        fields = ("number", "time", "mask", "key_end")
        columns = [np.concatenate([none, *(getattr(part, field) for part in self._seen)]) for field in fields]
        return EventOrder(*columns)


def _taken(parts: Sequence[pa.Table]) -> Taken:
    """All matches, in the order of emission."""
    table = pa.concat_tables([_MATCHES.empty_table(), *parts])
    events, stages = (pa.concat_arrays([pa.array([], f.type), *table.column(f.name).chunks]) for f in _MATCHES)
    ends = np.cumsum(pc.list_value_length(events).to_numpy())
    return Taken(ends, events.flatten().to_numpy(), stages.flatten().to_numpy())


def _of_other_starts(taken: Taken, starts: Ints) -> Taken:
    """The first match of each start that is not among `starts`."""
    found = taken.starts
    first = np.zeros(len(found), np.bool_)
    first[np.unique(found, return_index=True)[1]] = True
    chosen = first & ~np.isin(found, starts)
    lengths = np.diff(taken.end, prepend=0)
    events = np.repeat(chosen, lengths)
    return Taken(np.cumsum(lengths[chosen]), taken.event[events], taken.stage[events])


def _numbers_of(change: Change, pattern: Pattern) -> Int32s:
    """For each stage of the changed pattern, its number in the unchanged one."""
    numbers = {leaf.name: number for number, leaf in enumerate(pattern.leaves)}
    return np.array([numbers[leaf.name] for leaf in change.pattern.leaves], np.int32)
