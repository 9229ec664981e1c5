"""Has the workers of a call do tasks, the largest first."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from cepheid.hosts.in_process.workers.agreement import checked
from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.messages import Done, Failed
from cepheid.hosts.in_process.workers.worker_groups import Worker, error_of


def run_tasks(tasks: Sequence[Task], workers: Sequence[Worker]) -> list[Done]:
    """The results of the tasks. Slices that assumed wrongly what is open at their begin are repeated.

    Raises:
        ConditionError, LimitExceeded, SkipError: the first task, in their order, that fails does so with this error.
        WorkerFailed: a worker ended, or failed unexpectedly.
    """
    results, again = dict[int, Done | Failed](), [*range(len(tasks))]
    while again:
        results |= _results({number: tasks[number] for number in again}, workers)
        tasks, again = checked(tasks, results)
    for _, result in sorted(results.items()):
        if isinstance(result, Failed):
            raise error_of(result)
    return [result for _, result in sorted(results.items()) if isinstance(result, Done)]


def _results(tasks: Mapping[int, Task], workers: Sequence[Worker]) -> dict[int, Done | Failed]:
    """The results of these tasks by their numbers, except of some that come after one that certainly failed."""
    workers = workers[: len(tasks)]
    queue = _Queue(tasks)
    with ThreadPoolExecutor(max(1, len(workers)), thread_name_prefix="cepheid-worker") as threads:
        try:
            for running in [threads.submit(_work, worker, queue) for worker in workers]:
                running.result()
        except BaseException:  # also of an interrupted call: workers may be in the middle of a task
            queue.stop()
            for worker in workers:
                worker.stop()
            raise
    return queue.results


class _Queue:
    """Hands out tasks, the largest first, and takes their results."""

    def __init__(self, tasks: Mapping[int, Task]) -> None:
        self._tasks = tasks
        self._waiting = sorted(tasks, key=lambda number: tasks[number].size)
        self._lock = threading.Lock()
        self.results: dict[int, Done | Failed] = {}

    def next(self) -> int | None:
        """The number of the next task; None if none is left. After a certain failure only tasks before it are left."""
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def task(self, number: int) -> Task:
        return self._tasks[number]

    def put(self, number: int, result: Done | Failed) -> None:
        with self._lock:
            self.results[number] = result
            if isinstance(result, Failed) and self._tasks[number].is_certain:
                self._waiting = [waiting for waiting in self._waiting if waiting < number]

    def stop(self) -> None:
        """Leaves no tasks."""
        with self._lock:
            self._waiting = []


def _work(worker: Worker, queue: _Queue) -> None:
    """Has the worker do tasks until none is left. If it fails unexpectedly, the others begin no further task."""
    try:
        worker.begin()
        while (number := queue.next()) is not None:
            queue.put(number, worker.do(number, queue.task(number)))
        worker.finish()
    except BaseException:
        queue.stop()
        raise
