"""Hosts whose patterns run in two worker processes. The processes serve all tests: one takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cepheid.host import Host, open_host
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.open_store import open_store
from cepheid.hosts.durable.routing.reach import Reach
from cepheid.hosts.durable.workers.places import InWorkers, Places
from cepheid.hosts.durable.workers.workers import Workers


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """The processes."""
    workers = Workers(2)
    yield workers
    workers.close()


@pytest.fixture
def opened(workers: Workers) -> Callable[[str], Host]:
    """Opens a host over the processes."""

    def open_(url: str) -> Host:
        return host_at(url, Lent(workers))

    return open_


def host_at(url: str, places: Places) -> Host:
    """A host whose patterns run in these places."""
    return Host(DurableHost(open_store(url), places=places), Reach((), {}, open_host))


class Lent(InWorkers):
    """Workers that go on when the host is closed."""

    def close(self) -> None:
        self.renew()
