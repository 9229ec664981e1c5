"""Worker processes. They remain for later calls of this process, as it takes a second to start one."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cepheid.errors import WorkerFailed
from cepheid.hosts.python_process import how_it_ended, start_python

_MAIN = "cepheid.hosts.in_process.workers.process"
_ENDING = 5
"""Seconds in which a process is expected to end."""


class PooledWorker:
    """A process that answers one message after the other. It ends with this process."""

    def __init__(self) -> None:
        """
        Raises:
            WorkerFailed: no process can be started.
        """
        self._process = start_python(_MAIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.memory: int | None = None
        """The bytes that it may allocate for its present job; None: as many as there are."""

    def ask(self, message: object) -> Any:
        """Sends a message and waits for the reply.

        Raises:
            WorkerFailed: the process has ended; the message says how.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(message, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)  # noqa: S301 - from a process that this one has started
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise WorkerFailed(self._how_it_ended()) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self, *, now: bool = False) -> None:
        """Ends the process, after its present message or at once."""
        if now:
            self._process.kill()
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _how_it_ended(self) -> str:
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return f"worker process {self._process.pid} does not answer"
        return how_it_ended(self._process, self.memory)


class _Idle:
    """The workers of this process that have nothing to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[PooledWorker] = []
        self._owner = os.getpid()
        atexit.register(self.end_all)

    def take(self, count: int) -> list[PooledWorker]:
        with self._lock:
            if self._owner != os.getpid():  # a fork: the workers belong to the parent
                self._owner, self._workers = os.getpid(), []
            taken, self._workers = self._workers[:count], self._workers[count:]
        return taken

    @property
    def all(self) -> list[PooledWorker]:
        with self._lock:
            return [*self._workers]

    def give_back(self, workers: list[PooledWorker]) -> None:
        with self._lock:
            self._workers += workers

    def end_all(self) -> None:
        if self._owner == os.getpid():
            for worker in self.take(len(self._workers)):
                worker.end()


_IDLE = _Idle()


def take_workers(count: int) -> list[PooledWorker]:
    """So many workers: those that have nothing to do, and new ones."""
    taken = _IDLE.take(count)
    return [*taken, *(PooledWorker() for _ in range(count - len(taken)))]


def give_back(workers: Sequence[PooledWorker]) -> None:
    """Keeps workers that have answered all messages for later calls; those that have ended are forgotten."""
    _IDLE.give_back([worker for worker in workers if worker.is_alive])


def idle_workers() -> list[PooledWorker]:
    """The workers that have nothing to do."""
    return _IDLE.all
