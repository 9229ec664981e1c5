"""The runner of a pattern of stages, for hosts of live events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.kernel.parts import Joined, StatePart
from cepheid.kernel.stages.division.joined import joined
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.protocols import LiveMatcher
from cepheid.matchers.runners import OrderedLiveMatcher, OrderedRunner
from cepheid.matchers.stages.detector import Detector
from cepheid.output.stages.open_rows import Listed, key_id, open_schema, stored_open_rows, stored_open_schema
from cepheid.output.stages.rows import MOST_ROWS, row_schema
from cepheid.plan.stages.plan import Plan


class StagesLiveMatcher(OrderedLiveMatcher):
    """A LiveMatcher that can drain, and whose open partial matches can be listed."""

    pattern: StagesRunner

    def drain(self, *, waiting: bool) -> None:
        detector = self.live.detector
        assert isinstance(detector, Detector)
        if waiting and (may_start := detector.pattern.may_start):
            self.live.waiting.mark(may_start)
        detector.start_only_marked()
        self.drains = True

    @property
    def no_match(self) -> dict[str, int]:
        detector = self.live.detector
        assert isinstance(detector, Detector)
        return detector.no_match

    @property
    def lists_with(self) -> Hashable:
        return self.pattern.lists_with, self.live.detector.ids

    def changes(self, most: int) -> tuple[list[str], Iterable[Listed]]:
        """The digests of the keys visited since the last call that had something open before, and what is open now of
        all visited keys.
        """
        visited = self.live.visited
        assert visited is not None, "watch() comes first"
        self.live.visited = {}
        detector, numbers = self.live.detector, self.live.keys.number_of
        assert isinstance(detector, Detector)
        known = np.array(sorted(numbers[name] for name in visited if name in numbers), np.int32)
        listed = detector.listed(self.live.now, most, known) if len(known) else ()
        return [key_id(name) for name, was_open in visited.items() if was_open], listed


@dataclass(frozen=True)
class StagesRunner(OrderedRunner):
    """A PatternRunner."""

    plan: Plan
    marks_starts: bool = False
    """Whether only events with the bit `may_start` in their mask start partial matches."""
    live_matcher = StagesLiveMatcher

    @cached_property
    def compiled(self) -> CompiledPattern:
        return compile_plan(self.plan)

    def detector(self) -> Detector:
        detector = Detector(self.compiled)
        if self.marks_starts:
            detector.start_only_marked()
        return detector

    def joined_state(self, parts: Sequence[StatePart]) -> Joined:
        return joined(parts, self.compiled.tables)

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @property
    def open_schema(self) -> pa.Schema:
        return open_schema(self.plan)

    @cached_property
    def stored_open_schema(self) -> pa.Schema:
        return stored_open_schema(self.plan)

    @cached_property
    def lists_with(self) -> Hashable:
        """What the rows of open partial matches depend on, besides the names of the pattern and its stages."""
        plan = self.plan
        return self.stored_open_schema, plan.schema, plan.columns, id(self) if plan.promoted else None

    def open_changes(self, matchers: Sequence[LiveMatcher], most: int) -> OpenChanges:
        schema, keys, batches = self.stored_open_schema, list[list[str]](), list[pa.RecordBatch]()
        counts, waiting = np.zeros(len(matchers), np.int64), list[tuple[int, Listed]]()
        for number, matcher in enumerate(matchers):
            assert isinstance(matcher, StagesLiveMatcher)
            before, listed = matcher.changes(most)
            keys.append(before)
            waiting += [(number, part) for part in listed]
        for some in _at_once(waiting):
            rows, found = stored_open_rows(schema, [part for _, part in some])
            np.add.at(counts, [number for number, _ in some], found)
            batches.append(rows)
        return OpenChanges(keys, pa.Table.from_batches(batches, schema), counts)


def _at_once(listed: Iterable[tuple[int, Listed]]) -> Iterator[list[tuple[int, Listed]]]:
    """Divided so that rows of Arrow can have each part, and patterns with promoted columns are by themselves."""
    some, count = list[tuple[int, Listed]](), 0
    for number, part in listed:
        if some and (count + len(part.emitted.end) > MOST_ROWS or part.plan.promoted):
            yield some
            some, count = [], 0
        some.append((number, part))
        count += len(part.emitted.end)
    if some:
        yield some
