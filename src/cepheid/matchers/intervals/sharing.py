"""The patterns of a stream's shard which share their events: each event is stored once, and rows are read once.

Each pattern has a matcher of its own, which finds the same as alone. Only the ids of events that rows open may be used
again later than alone: once no pattern needs the event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.intervals.compiled import CompiledIntervalPlans
from cepheid.errors import SnapshotError, in_pattern
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import NO_TIME
from cepheid.matchers.division import concatenated
from cepheid.matchers.intervals.division import joined_snapshots
from cepheid.matchers.intervals.live import LiveIntervals, clock_at, replay_batches
from cepheid.matchers.intervals.open_runner import OpenIntervalsRunner, OpenRowsMatcher, read_batch
from cepheid.matchers.intervals.read_rows import ReadRows
from cepheid.matchers.intervals.runner import IntervalsRunner
from cepheid.matchers.pattern_events import projections
from cepheid.matchers.shared.events import Share, SharedEvents
from cepheid.matchers.shared.order_of_ends import in_order_of_ends
from cepheid.matchers.snapshot import apart, from_bytes, restored, to_bytes, together
from cepheid.matchers.watermark import Reached
from cepheid.output.common import filled, merged
from cepheid.output.ids import Ids
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import Words

T = TypeVar("T")
AnyRunner: TypeAlias = IntervalsRunner | OpenIntervalsRunner


@dataclass(frozen=True)
class SharingRunner:
    """A ShardRunner of several patterns."""

    plan_set: IntervalPlans
    each: tuple[AnyRunner, ...]
    columns: pa.Schema
    """The columns of the events of all patterns."""
    only_relevant: bool
    """Whether a pattern gets only the events that can matter to it."""

    @property
    def plans(self) -> Sequence[IntervalPlan]:
        return self.plan_set.each

    @property
    def limits(self) -> Limits:
        return self.plan_set.each[0].limits

    @property
    def names(self) -> list[str]:
        return [plan.pattern.name for plan in self.plan_set.each]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows of all patterns."""
        return pa.schema(merged([list(one.schema) for one in self.each]))

    @property
    def relevant_to(self) -> Sequence[Words | None]:
        """For each pattern, bits of the mask of all, without which an event does not matter to it."""
        if self.only_relevant:
            return CompiledIntervalPlans(self.plan_set).relevant_to
        return [None] * len(self.each)

    def matcher(self, ids: Ids = Ids.SIPHASH) -> SharingMatchers:
        return SharingMatchers(self, ids)

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[SharingMatchers, dict[str, Any]]:
        """As in ShardRunner; `made_for` has that of each pattern, by its name, as "each"."""
        matcher = self.matcher()
        return matcher, matcher.continue_with(snapshot, made_for["each"], columns)

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        if len(snapshots) == 1:
            return snapshots[0]
        parts = [apart(one, self.names) for one in snapshots]
        shared = [part.shared for part in parts if part.shared is not None]
        assert len(shared) == len(parts), "shards have stored shared events since they share them"
        first = [0, *accumulate(map(len, shared))][:-1]
        joined = dict[str, bytes]()
        for number, plan in enumerate(self.plan_set.each):
            own = [from_bytes(part.each[number]) for part in parts]
            joined[plan.pattern.name] = to_bytes(joined_snapshots(own, plan.pattern.consistency, first))
        return together(joined, concatenated(shared))

    def reader(self, is_held: Callable[[bytes], bool]) -> ReadRows | None:
        """What reads rows that open and close events; None if each event is in one row."""
        ends = dict[str, None]()
        for runner, place in zip(self.each, self.plan_set.places, strict=True):
            if not isinstance(runner, OpenIntervalsRunner):
                return None
            ends |= dict.fromkeys(runner.own_ends(place.values))
        assert isinstance(runner, OpenIntervalsRunner)
        return runner.reader(ends, is_held)


class SharingMatchers:
    """A ShardMatcher of several patterns."""

    drains: bool = False

    def __init__(self, pattern: SharingRunner, ids: Ids) -> None:
        self.pattern = pattern
        self._shared = SharedEvents(pattern.columns)
        self._own = projections(pattern.plan_set, pattern.relevant_to)
        self._rows = pattern.reader(self._is_held)
        self.each: tuple[LiveIntervals, ...] = tuple(
            self._made(runner, number, ids) for number, runner in enumerate(pattern.each)
        )

    def _made(self, runner: AnyRunner, number: int, ids: Ids) -> LiveIntervals:
        share = Share(self._shared, self._own[number], number)
        if isinstance(runner, IntervalsRunner):
            return runner.sharing(share, ids)
        assert self._rows is not None
        return runner.sharing(share, ids, self._rows)

    def _is_held(self, name: bytes) -> bool:
        return any(isinstance(one, OpenRowsMatcher) and one.live.holds(name) for one in self.each)

    def of_each(self, rows: pa.Table) -> Sequence[pa.Table]:
        patterns = rows.column("pattern")
        each = zip(self.pattern.each, self.pattern.names, strict=True)
        return [rows.filter(pc.equal(patterns, name)).select(one.schema.names) for one, name in each]

    def advance_time(self, time: int) -> pa.Table:
        if self._rows is not None and time != NO_TIME:
            self._rows.advance(clock_at(time))
        return self._in_one_table(self._from_each(lambda number: self.each[number].passed(time)))

    def settle(self, time: int) -> pa.Table:
        return self.advance_time(time - 1)

    def process(self, events: Batch) -> pa.Table:
        read = in_order_of_ends(events) if self._rows is None else read_batch(self._rows, events)
        given = self._shared.add(read)
        rows = self._from_each(lambda number: self.each[number].taken(self._own[number].of(given)))
        self._shared.forget_if_many()
        return self._in_one_table(rows)

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:
        for one in self.each:
            one.limit(limits)
        replay_batches(self, log, reached)
        for one in self.each:
            one.limit(self.pattern.limits)

    def renewed(self) -> pa.Table | None:
        found = [rows for rows in self._from_each(lambda number: self.each[number].renewed()) if rows is not None]
        return self._in_one_table(found) if found else None

    def drain(self, *, waiting: bool) -> None:
        raise NotImplementedError("patterns of this kind cannot be drained")

    @property
    def now(self) -> int:
        return self.each[0].now

    @property
    def due(self) -> int:
        return min(one.due for one in self.each)

    @property
    def open(self) -> int:
        return sum(one.open for one in self.each)

    @property
    def is_idle(self) -> bool:
        return all(one.is_idle for one in self.each)

    @property
    def open_keys(self) -> Collection[bytes]:
        return {name for one in self.each for name in one.open_keys}

    def keep_only(self, names: Collection[bytes]) -> None:
        for one in self.each:
            one.keep_only(names)

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """As in ShardMatcher; `made_for` as in `SharingRunner.restored`."""
        self._shared.forget()
        named = zip(self.pattern.names, self.each, strict=True)
        each = {name: one.snapshot(made_for["each"][name], kept) for name, one in named}
        return together(each, self._shared.stored)

    def continue_with(self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema) -> dict[str, Any]:
        """Continues where the writer of the snapshot stopped; returns the host's state. It is called once, before
        anything else.

        Raises:
            SnapshotError: the snapshot is damaged, or was made for other patterns or other columns.
        """
        parts = apart(snapshot, self.pattern.names)
        if parts.shared is None:
            raise SnapshotError("the snapshot has no events that its patterns share")
        self._shared.restore(parts.shared)
        kept = dict[str, Any]()
        for one, name, own in zip(self.each, self.pattern.names, parts.each, strict=True):
            _, kept = restored(one, own, made_for[name], columns)
        return kept

    def _from_each(self, found: Callable[[int], T]) -> list[T]:
        """What is found for each pattern, by its number. Errors name their pattern."""
        each = []
        for number, name in enumerate(self.pattern.names):
            with in_pattern(name, named=self.pattern.plan_set.named):
                each.append(found(number))
        return each

    def _in_one_table(self, each: Sequence[pa.Table]) -> pa.Table:
        schema = self.pattern.schema
        there = [filled(rows, schema) for rows in each if len(rows)]
        return pa.concat_tables(there) if there else schema.empty_table()
