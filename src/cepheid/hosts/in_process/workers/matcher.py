"""A finite matcher whose work is done by worker processes. Its rows and counts are those of one process."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.order import ByKey, ordering_of
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.in_process.workers.division import Division, PartEvents, Task, divided
from cepheid.hosts.in_process.workers.messages import Job
from cepheid.hosts.in_process.workers.pool import give_back, take_workers
from cepheid.hosts.in_process.workers.run import run_tasks
from cepheid.hosts.in_process.workers.spool import Spool, new_folder
from cepheid.matchers.counts import Found
from cepheid.plan.plan_set import PlanSet


class DividedMatcher:
    """Stores the events, in order, in files, and has them matched when the input ends. It must be closed."""

    def __init__(
        self,
        family: Family,
        plans: PlanSet[Any],
        compiled: CompiledSet,
        *,
        packed: bytes,
        division: Division,
        size: int,
    ) -> None:
        """`packed` are the pickled plans, and `size` is about the number of bytes of the events."""
        self._family, self._schemas = family, family.row_schemas(plans)
        self._parts = family.parts(compiled)
        self._packed, self._division = packed, division
        self._workers = take_workers(division.workers)  # they start while events are lifted and sorted
        self._folder = new_folder(size)
        orderings = [ordering_of(plans.schema) if family.in_order else ByKey() for _ in self._parts]
        self._spools = [Spool(self._folder / f"events.{i}", one) for i, one in enumerate(orderings)]
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
        events = [spool.finish() for spool in self._spools]
        tasks = [task for number in range(len(self._parts)) for task in self._tasks(number)]
        job = Job(self._family.kind, self._packed, events, self._folder, self._division.memory)
        done = run_tasks(job, tasks, self._workers)
        self._return_workers()
        for one in done:
            self._found.update(one.counts)
        rows: list[list[pa.Table]] = [[schema.empty_table()] for schema in self._schemas]
        for task, one in zip(tasks, done, strict=True):
            # Each of several parts has one pattern, so the part's number is that of its first pattern.
            for number, path in enumerate(one.rows, task.part):
                rows[number] += [] if path is None else [_read_file(path)]
        return [self._in_order(pa.concat_tables(tables)) for tables in rows]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of all tasks together, as of a SortedMatcher."""
        return {"ties": sum(spool.ties for spool in self._spools), **self._found}

    def close(self) -> None:
        """Removes the files."""
        self._return_workers()
        for spool in self._spools:
            spool.close()
        shutil.rmtree(self._folder, ignore_errors=True)

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

    def _return_workers(self) -> None:
        workers, self._workers = self._workers, []
        give_back(workers)


def _read_file(path: Path) -> pa.Table:
    """The rows in a file, which is then removed: the rows stay where they are, without a copy, as long as they live."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as rows:
        table = rows.read_all()
    path.unlink()
    return table
