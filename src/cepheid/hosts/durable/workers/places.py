"""Where the deployed patterns of a host run: in its own process, or in workers."""

from __future__ import annotations

from typing import Protocol

from cepheid.hosts.durable.deployed import Deployed, EventTable
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.here import DeployedHere
from cepheid.hosts.durable.workers.in_worker import DeployedInWorker
from cepheid.hosts.durable.workers.workers import Workers
from cepheid.output.ids import Ids


class Places(Protocol):
    """Where deployed patterns run."""

    def deployed(self, deployment: Deployment, table: EventTable, ids: Ids) -> Deployed:
        """The pattern, which does not run yet.

        Raises:
            PatternError, SchemaError: it does not fit the events.
        """

    def renew(self) -> None:
        """Forgets all patterns that run: the host reads its store again."""

    @property
    def are_whole(self) -> bool:
        """Whether all patterns still run. If not, the host must read its store again."""

    def close(self) -> None: ...


def places_for(workers: int, memory: int | None = None) -> Places:
    """At most `workers` processes, each with at most `memory` bytes; with one, the host's own process alone."""
    return OwnProcess() if workers == 1 else InWorkers(Workers(workers, memory))


class OwnProcess:
    """All patterns run in the host's own process."""

    def deployed(self, deployment: Deployment, table: EventTable, ids: Ids) -> Deployed:
        return DeployedHere(deployment, table, ids)

    @property
    def are_whole(self) -> bool:
        return True

    def renew(self) -> None:
        pass

    def close(self) -> None:
        pass


class InWorkers:
    """The patterns run in worker processes."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    @property
    def are_whole(self) -> bool:
        return self._workers.are_whole

    def deployed(self, deployment: Deployment, table: EventTable, ids: Ids) -> Deployed:
        return DeployedInWorker(deployment, table, ids, self._workers)

    def renew(self) -> None:
        self._workers.renew()

    def close(self) -> None:
        self._workers.close()
