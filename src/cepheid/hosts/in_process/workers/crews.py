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
from cepheid.hosts.in_process.workers.pool import Worker, give_back, take_workers
from cepheid.hosts.in_process.workers.stores import FileStore, MemoryStore, Store, Stored, new_folder
from cepheid.hosts.in_process.workers.task import EXPECTED, do_task
from cepheid.kernel.stopping import stopping_with
from cepheid.matchers.parts import Part


class Member(Protocol):
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


class Crew(Protocol):
    """Does the tasks of one call. It must be closed."""

    def store(self) -> Store:
        """Where the next part's events are to be put."""

    def members(self) -> Sequence[Member]:
        """Those who do the tasks, in the events that are stored now."""

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
        self._stores: list[FileStore] = []

    def store(self) -> FileStore:
        self._stores.append(FileStore(self._folder / f"events.{len(self._stores)}"))
        return self._stores[-1]

    def members(self) -> Sequence[Member]:
        events = [store.stored for store in self._stores]
        job = Job(self._kind, self._packed, events, self._folder, self._memory)
        return [_Process(worker, job) for worker in self._workers]

    def close(self) -> None:
        workers, self._workers = self._workers, []
        give_back(workers)
        for store in self._stores:
            store.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Process:
    def __init__(self, worker: Worker, job: Job) -> None:
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
        self._stores: list[MemoryStore] = []

    def store(self) -> MemoryStore:
        self._stores.append(MemoryStore())
        return self._stores[-1]

    def members(self) -> Sequence[Member]:
        events = [store.stored for store in self._stores]
        return [_Thread(self._parts, events) for _ in range(self._count)]

    def close(self) -> None:
        self._stores = []


class _Thread:
    def __init__(self, parts: Sequence[Part], events: Sequence[Stored]) -> None:
        self._parts, self._events = parts, events
        self._stop = Event()

    def begin(self) -> None:
        pass

    def do(self, number: int, task: Task) -> Done | Failed:  # noqa: ARG002
        found: list[list[pa.Table]] = []
        try:
            with stopping_with(self._stop):
                counted = do_task(self._parts[task.part], task, self._events[task.part], found.append)
        except EXPECTED as error:
            return Failed(type(error).__name__, str(error))
        return Done([*map(list, zip(*filter(None, found), strict=True))], *counted)

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
