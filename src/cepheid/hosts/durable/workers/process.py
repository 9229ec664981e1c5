"""A worker process, as its host sees it: it is asked in order, and answers in order."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from threading import RLock
from typing import Any
from weakref import ref

from cepheid.errors import WorkerFailed
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.workers.shared_events import SharedEvents
from cepheid.hosts.python_process import how_it_ended, start_python

_MAIN = "cepheid.hosts.durable.workers.main"
_PATIENCE = 5.0
"""Seconds for a worker to end by itself."""


class WorkerProcess:
    """A process that runs deployed patterns. It knows nothing of the store. Both processes send pickled values over a
    socket.
    """

    def __init__(self, memory: int | None = None) -> None:
        """`memory`: the bytes that the process may allocate; None: as many as there are.

        Raises:
            WorkerFailed: no process can be started.
        """
        self._memory = memory
        mine, its = socket.socketpair()
        with its:
            given = (its.fileno(),) if memory is None else (its.fileno(), memory)
            try:
                self._process = start_python(_MAIN, *given, stdin=subprocess.DEVNULL, pass_fds=(its.fileno(),))
            except WorkerFailed:
                mine.close()
                raise
        self._connection = Connection(mine.detach())
        self._lock = RLock()
        """Queries may come from other threads than the steps."""
        self._asked = self._answered = self._abandoned = 0
        self._answers: dict[int, Any] = {}
        """Answers that were read, and not taken yet, by the number of the request."""
        self._events: ref[StepEvents] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._connection.closed and self._process.poll() is None

    def send(self, request: str, *given: Any) -> None:
        """Sends a request that has no answer.

        Raises:
            WorkerFailed: the worker has ended.
        """
        with self._lock:
            self._send((request, given, False))

    def begin(self, request: str, *given: Any) -> Callable[[], Any]:
        """Sends a request. What is returned waits for the answer.

        Raises:
            WorkerFailed: the worker has ended. Waiting raises it, too, and whatever the request raises in the worker.
        """
        with self._lock:
            self._send((request, given, True))
            number = self._asked = self._asked + 1
        return lambda: self._answer(number)

    def ask(self, request: str, *given: Any) -> Any:
        """The answer to a request. Raises as `begin`."""
        return self.begin(request, *given)()

    def give(self, events: StepEvents, shared: Callable[[], SharedEvents]) -> None:
        """The steps that begin after this are given these events.

        Raises:
            WorkerFailed: the worker has ended.
        """
        if self._events is not None and self._events() is events:
            return
        with self._lock:
            content, file = shared()
            self._send(("take", (content,), False))
            if file is not None:
                with self._noticed():
                    send_handle(self._connection, file, self.pid)
        self._events = ref(events)

    def abandon(self) -> None:
        """Nobody waits for the answers to earlier requests."""
        self._abandoned, self._events = self._asked, None
        self._answers.clear()

    def close(self) -> None:
        """Ends the process."""
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._process.kill()
        self._process.wait()

    def _answer(self, number: int) -> Any:
        with self._lock:
            while number not in self._answers:
                with self._noticed():
                    answer = self._connection.recv()
                self._answered += 1
                if self._answered > self._abandoned:
                    self._answers[self._answered] = answer
            failed, answer = self._answers.pop(number)
        if failed:
            raise answer
        return answer

    def _send(self, message: Any) -> None:
        with self._noticed():
            self._connection.send(message)

    def _noticed(self) -> _Noticed:
        return _Noticed(self)

    def ended(self) -> WorkerFailed:
        """Says how the process has ended, after its connection broke."""
        self.close()
        return WorkerFailed(how_it_ended(self._process, self._memory))


class _Noticed:
    """Raises WorkerFailed if the connection breaks within the block."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (EOFError, OSError)):
            raise self._worker.ended() from error
