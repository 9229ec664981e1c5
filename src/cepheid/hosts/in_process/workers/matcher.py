"""A finite matcher whose work is done by several workers. Its rows and counts are those of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.order import ByKey, ordering_of
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.in_process.workers.division import Division, PartEvents, divided
from cepheid.hosts.in_process.workers.run import run_tasks
from cepheid.hosts.in_process.workers.spool import Spool
from cepheid.hosts.in_process.workers.worker_groups import Worker, WorkerGroup
from cepheid.matchers.counts import Found
from cepheid.plan.plan_set import PlanSet


class DividedMatcher:
    """Stores the events, in order, and has them matched when the input ends."""

    def __init__(
        self, family: Family, plans: PlanSet[Any], compiled: CompiledSet, *, division: Division, group: WorkerGroup
    ) -> None:
        self._family, self._plans = family, plans
        self._parts = family.parts(compiled)
        self._division, self._group = division, group
        orderings = [ordering_of(plans.schema) if family.in_order else ByKey() for _ in self._parts]
        self._spools = [Spool(group.new_writer(), ordering) for ordering in orderings]
        self._found = asdict(Found())

    def process(self, batch: Batch) -> list[pa.Table]:
        """Stores the events.

        Raises:
            EventError: they are not in order.
        """
        for part, spool in zip(self._parts, self._spools, strict=True):
            spool.add(part.own.of(batch))
        return []

    def finish(self) -> list[pa.Table]:
        """The rows of each pattern, in the order of one process.

        Raises:
            as `found_in_parts`.
        """
        for spool in self._spools:
            spool.finish()
        events = [self._events(number) for number in range(len(self._parts))]
        rows, found = found_in_parts(self._family, self._plans, events, self._division, self._group.workers())
        self._found.update(found)
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """The counts of all tasks together, as of a SortedMatcher."""
        return {**self._found, "ties": sum(spool.ties for spool in self._spools)}

    def _events(self, number: int) -> PartEvents:
        spool, slices = self._spools[number], self._parts[number].slices
        if slices is not None and slices.overlaps:
            slices = replace(slices, before=slices.before + spool.longest)
        return PartEvents.of(number, spool.key_starts, spool.times, slices)


def found_in_parts(
    family: Family,
    plans: PlanSet[Any],
    events: Sequence[PartEvents],
    division: Division,
    workers: Sequence[Worker],
) -> tuple[list[pa.Table], dict[str, int]]:
    """What the workers find in the events of all parts: the rows of each pattern, in the order of one worker, and the
    sums of the tasks' counts.

    Raises:
        ConditionError, EventError, LimitExceeded, SkipError: as with one worker.
        WorkerFailed: a worker process ended.
    """
    tasks = [task for each in events for task in divided(each, division)]
    done = run_tasks(tasks, workers)
    counts = Counter({"ties": 0, **asdict(Found())})
    rows: list[list[pa.Table]] = [[schema.empty_table()] for schema in family.row_schemas(plans)]
    for task, one in zip(tasks, done, strict=True):
        counts.update(one.counts)
        # Each of several parts has one pattern, so the part's number is that of its first pattern.
        for number, tables in enumerate(one.rows, task.part):
            rows[number] += tables
    order = [(name, "ascending") for name in family.sorted_by]
    # The rows of all tasks are in the order of keys and emission, which is not that of every kind of pattern.
    return [pa.concat_tables(each).sort_by(order) if order else pa.concat_tables(each) for each in rows], dict(counts)
