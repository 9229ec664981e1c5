"""Who does the tasks of a call: processes or threads."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Protocol

import pyarrow as pa

from cepheid import errors
from cepheid.errors import WorkerFailed
from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.messages import Done, Failed, Forget, Job, NamedTask, Written
from cepheid.hosts.in_process.workers.pool import PooledWorker, give_back, take_workers
from cepheid.hosts.in_process.workers.spooled_events import (
    EventWriter,
    FileWriter,
    MemoryWriter,
    SpooledEvents,
    new_folder,
)
from cepheid.hosts.in_process.workers.task import EXPECTED, do_task
from cepheid.kernel.stopping import stopping_with
from cepheid.matchers.parts import Part


class Worker(Protocol):
    """Does one task after the other."""

    def begin(self) -> None:
        """Is called before the first task.

        Raises:
            WorkerFailed, ConditionError and others: it cannot do the tasks.
        """

    def do(self, number: int, task: Task) -> Done | Failed:
        """The result of a task, which has this number."""

    def finish(self) -> None:
        """Is called after the last task, if all went well."""

    def stop(self) -> None:
        """Is called by another thread: the task that is being done is not needed."""


class WorkerGroup(Protocol):
    """Does the tasks of one call. It must be closed."""

    def new_writer(self) -> EventWriter:
        """A writer for the events of the next part."""

    def workers(self) -> Sequence[Worker]:
        """The workers, which read the events written so far."""

    def close(self) -> None:
        """Removes what only the call needs."""


class Processes:
    """Processes, which remain for later calls. Events travel to them through files, and rows back."""

    def __init__(self, kind: str, packed: bytes, *, count: int, memory: int | None, size: int) -> None:
        """`packed` are the pickled plans of this kind, and `size` is about the number of bytes of the events. Each
        process may allocate `memory` bytes.
        """
        self._kind, self._packed, self._memory = kind, packed, memory
        self._workers = take_workers(count)  # they start while events are lifted and sorted
        self._folder = new_folder(size)
        self._writers: list[FileWriter] = []

    def new_writer(self) -> FileWriter:
        self._writers.append(FileWriter(self._folder / f"events.{len(self._writers)}"))
        return self._writers[-1]

    def workers(self) -> Sequence[Worker]:
        events = [writer.events for writer in self._writers]
        job = Job(self._kind, self._packed, events, self._folder, self._memory)
        return [_ProcessWorker(worker, job) for worker in self._workers]

    def close(self) -> None:
        workers, self._workers = self._workers, []
        give_back(workers)
        for writer in self._writers:
            writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _ProcessWorker:
    def __init__(self, worker: PooledWorker, job: Job) -> None:
        self._worker, self._job = worker, job

    def begin(self) -> None:
        self._worker.memory = self._job.memory
        refused = self._worker.ask(self._job)
        if isinstance(refused, Failed):
            raise error_of(refused)

    def do(self, number: int, task: Task) -> Done | Failed:
        written: Written | Failed = self._worker.ask(NamedTask(task, f"rows.{number}"))
        if isinstance(written, Failed):
            return written
        return Done([[] if path is None else [_read_file(path)] for path in written.files], *written.counted)

    def finish(self) -> None:
        self._worker.ask(Forget())

    def stop(self) -> None:
        self._worker.end(now=True)


class Threads:
    """Threads of this process."""

    def __init__(self, parts: Sequence[Part], *, count: int) -> None:
        self._parts, self._count = parts, count
        self._writers: list[MemoryWriter] = []

    def new_writer(self) -> MemoryWriter:
        self._writers.append(MemoryWriter())
        return self._writers[-1]

    def workers(self) -> Sequence[Worker]:
        events = [writer.events for writer in self._writers]
        return [ThreadWorker(self._parts, events) for _ in range(self._count)]

    def close(self) -> None:
        self._writers = []


class ThreadWorker:
    """A Worker in a thread of this process."""

    def __init__(self, parts: Sequence[Part], events: Sequence[SpooledEvents]) -> None:
        self._parts, self._events = parts, events
        self._stop = Event()

    def begin(self) -> None:
        pass

    def do(self, number: int, task: Task) -> Done | Failed:  # noqa: ARG002
        rows: list[list[pa.Table]] = []

        def add(tables: list[pa.Table]) -> None:
            rows.extend([] for _ in tables[len(rows) :])
            for each, table in zip(rows, tables, strict=False):
                each.append(table)

        try:
            with stopping_with(self._stop):
                counted = do_task(self._parts[task.part], task, self._events[task.part], add)
        except EXPECTED as error:
            return Failed(type(error).__name__, str(error))
        return Done(rows, *counted)

    def finish(self) -> None:
        pass

    def stop(self) -> None:
        self._stop.set()


def error_of(failed: Failed) -> Exception:
    """What failed elsewhere, as an error to raise here."""
    if failed.error:
        error: Exception = getattr(errors, failed.error)(failed.message)
        return error
    return WorkerFailed(f"a worker process failed unexpectedly:\n{failed.message}")


def _read_file(path: Path) -> pa.Table:
    """The rows in a file, which is then removed: the rows stay where they are, without a copy, as long as they live."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as rows:
        table = rows.read_all()
    path.unlink()
    return table
