"""The worker processes of a host, and which deployed pattern runs in which of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from weakref import finalize, ref

from cepheid.errors import WorkerFailed
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.workers.process import WorkerProcess
from cepheid.hosts.durable.workers.shared_events import SharedEvents, shared


class Workers:
    """At most so many processes, each of which runs some of the deployed patterns. They are started when there are
    patterns for them.
    """

    def __init__(self, most: int, memory: int | None = None) -> None:
        """`memory`: the bytes that each process may allocate; None: as many as there are."""
        self._most, self._memory = most, memory
        self._running: dict[WorkerProcess, set[int]] = {}
        """The numbers of the deployments that run in each process."""
        self._shared: tuple[ref[StepEvents], SharedEvents] | None = None

    @property
    def processes(self) -> Sequence[WorkerProcess]:
        return [*self._running]

    @property
    def are_whole(self) -> bool:
        """Whether no process has ended."""
        return all(one.is_alive for one in self._running)

    def renew(self) -> None:
        """Forgets all deployments, and processes that have ended."""
        for one in [*self._running]:
            try:
                one.abandon()
                one.send("forget_all")
                self._running[one] = set()
            except WorkerFailed:
                del self._running[one]

    def close(self) -> None:
        """Ends all processes."""
        for one in self._running:
            one.close()
        self._running = {}

    def place(self, number: int) -> WorkerProcess:
        """The process in which the deployment is to run: one that runs the fewest.

        Raises:
            WorkerFailed: no process can be started.
        """
        free = min(self._running, key=lambda one: len(self._running[one]), default=None)
        if free is None or (self._running[free] and len(self._running) < self._most):
            free = WorkerProcess(self._memory)
            self._running[free] = set()
        self._running[free].add(number)
        return free

    def give_up(self, number: int, process: WorkerProcess) -> None:
        """The deployment does not run there any more."""
        with suppress(WorkerFailed):  # `are_whole` says so, and a dead process has forgotten it, too
            process.send("forget", number)
        self._running.get(process, set()).discard(number)

    def share(self, events: StepEvents) -> SharedEvents:
        """The events, ready for all processes until they are no longer used here."""
        if self._shared is None or self._shared[0]() is not events:
            made = shared(events)
            finalize(events, made.close)
            self._shared = ref(events), made
        return self._shared[1]
