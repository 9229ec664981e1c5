"""A deployed pattern whose matcher is in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from cepheid.hosts.durable.deployed import Deployed, EventTable, Found
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.alike import alike
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.store import ShardWriter
from cepheid.hosts.durable.workers.patterns import CopiedState, Situation, Stepped, Write
from cepheid.hosts.durable.workers.process import WorkerProcess
from cepheid.hosts.durable.workers.shared_events import table_of
from cepheid.hosts.durable.workers.workers import Workers
from cepheid.hosts.shards.store import Head, ShardState
from cepheid.kernel.arrays import FOREVER
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids


class DeployedInWorker(Deployed):
    """A deployed pattern whose matcher is in a worker process. All writes to the store are those of this process."""

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids, workers: Workers) -> None:
        super().__init__(deployment, table, ids)
        self._workers = workers
        self._known: WorkerProcess | None = None
        self._making: Callable[[], Situation] | None = None
        """Waits until the pattern runs in the worker."""
        self._now = Situation(None, FOREVER, is_idle=True)
        self._begun: Callable[[], Stepped | None] | None = None
        self._writes: Sequence[Write] = ()

    @property
    def _number(self) -> int:
        return self.deployment.number

    @property
    def _worker(self) -> WorkerProcess:
        """The worker, in which the pattern runs now."""
        if self._known is None:
            self._begin_to_run(None, None)
        self.recovered()
        assert self._known is not None
        return self._known

    def _begin_to_run(self, head: Head | None, state: CopiedState | None) -> None:
        self._known = self._workers.place(self._number)
        self._making = self._known.begin("make", self.deployment, self.table, self._ids, head, state)

    def recover(self, stored: ShardState, head: Head | None) -> None:
        self._begin_to_run(head, None if head is None else CopiedState(stored.snapshot(), stored.log()))

    def recovered(self) -> None:
        if self._making is not None:
            making, self._making = self._making, None
            self._now = making()

    def start_at(self, reached: Reached) -> None:
        self._now = self._worker.ask("start_at", self._number, reached)
        self.wakeups.forget()

    def drain(self) -> None:
        self._worker.send("drain", self._number)
        super().drain()

    def relist(self) -> None:
        self._worker.send("relist", self._number)

    @property
    def is_idle(self) -> bool:
        return self._now.is_idle

    @property
    def counts(self) -> Mapping[str, int]:
        return self._worker.ask("counts", self._number)  # type: ignore[no-any-return]

    @property
    def no_match(self) -> Mapping[str, int]:
        return self._worker.ask("no_match", self._number)  # type: ignore[no-any-return]

    def is_due(self, reached: Reached) -> bool:
        return self._now.due <= reached.time

    def begin(self, events: StepEvents | None, before: Reached, after: Reached) -> None:
        if events is not None:
            self._worker.give(events, lambda: self._workers.share(events))
        self._begun = self._worker.begin("step", self._number, events is not None, before, after)

    def step(self, events: StepEvents | None, before: Reached, after: Reached) -> Found | None:
        if self._begun is None:
            self.begin(events, before, after)
        assert self._begun is not None
        begun, self._begun = self._begun, None
        stepped = begun()
        if stepped is None:
            return None
        self._now, self._writes = stepped.now, stepped.writes
        if stepped.rows is None:
            return self._nothing
        rows = table_of(stepped.rows)
        return Found(rows.select(self.schema.names), rows.column(rows.num_columns - 1))

    @property
    def head(self) -> Head | None:
        return self._now.head

    def save(self, store: ShardWriter) -> None:
        for write in self._writes:
            write(store)
        self._writes = ()

    @cached_property
    def lists_with(self) -> object:
        return alike((self._runner.matcher(self._ids).lists_with, self._engine.time_zone, self._worker.pid))

    def open_changes(self, deployed: Sequence[Deployed]) -> OpenChanges:
        numbers = [one.deployment.number for one in deployed]
        keys, rows, counts = self._worker.ask("open_changes", numbers)
        return OpenChanges(keys, table_of(rows), counts)

    def end(self) -> None:
        if self._known is not None:
            self._workers.give_up(self._number, self._known)
            self._known = None
