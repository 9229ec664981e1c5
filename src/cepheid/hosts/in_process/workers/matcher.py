"""A finite matcher whose work is done by several workers. Its rows and counts are those of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.order import ByKey, ordering_of
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.in_process.workers.division import Division, PartEvents, Task, divided
from cepheid.hosts.in_process.workers.run import run_tasks
from cepheid.hosts.in_process.workers.spool import Spool
from cepheid.hosts.in_process.workers.worker_groups import WorkerGroup
from cepheid.matchers.counts import Found
from cepheid.plan.plan_set import PlanSet


class DividedMatcher:
    """Stores the events, in order, and has them matched when the input ends."""

    def __init__(
        self, family: Family, plans: PlanSet[Any], compiled: CompiledSet, *, division: Division, group: WorkerGroup
    ) -> None:
        self._family, self._schemas = family, family.row_schemas(plans)
        self._parts = family.parts(compiled)
        self._division, self._group = division, group
        orderings = [ordering_of(plans.schema) if family.in_order else ByKey() for _ in self._parts]
        self._spools = [Spool(group.new_writer(), ordering) for ordering in orderings]
        self._found = Counter[str](asdict(Found()))

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
            ConditionError, LimitExceeded, SkipError: as with one process.
            WorkerFailed: a worker process ended.
        """
        for spool in self._spools:
            spool.finish()
        tasks = [task for number in range(len(self._parts)) for task in self._tasks(number)]
        done = run_tasks(tasks, self._group.workers())
        for one in done:
            self._found.update(one.counts)
        rows: list[list[pa.Table]] = [[schema.empty_table()] for schema in self._schemas]
        for task, one in zip(tasks, done, strict=True):
            # Each of several parts has one pattern, so the part's number is that of its first pattern.
            for number, tables in enumerate(one.rows, task.part):
                rows[number] += tables
        return [self._in_order(pa.concat_tables(each)) for each in rows]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of all tasks together, as of a SortedMatcher."""
        return {"ties": sum(spool.ties for spool in self._spools), **self._found}

    def _tasks(self, number: int) -> list[Task]:
        spool, slices = self._spools[number], self._parts[number].slices
        if slices is not None and slices.overlaps:
            slices = replace(slices, before=slices.before + spool.longest)
        events = PartEvents(number, spool.key_starts, spool.times, slices)
        return divided(events, self._division)

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """The rows of all tasks, which are in the order of keys and emission, in that of the kind of pattern."""
        columns = self._family.sorted_by
        return rows.sort_by([(name, "ascending") for name in columns]) if columns else rows
