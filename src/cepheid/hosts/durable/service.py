"""Feeds a host from its sources, and answers on its socket between two feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Protocol

import pyarrow as pa

from cepheid.errors import EventError
from cepheid.hosts.durable.figures import HostFigures, samples_of
from cepheid.hosts.durable.host import Fed
from cepheid.hosts.durable.remote.server import HostServer
from cepheid.hosts.durable.state import Input, Position
from cepheid.hosts.prometheus import Sample, label
from cepheid.hosts.sources.source import Source

_WAIT = 0.25
"""Seconds between two looks for new events."""
_LAST = timedelta(minutes=1)
"""For so long subscribers get what was found, when the host is to end with its sources."""
_AT_ONCE = timedelta(0)


class FedHost(Protocol):
    """What the service asks of a host."""

    @property
    def inputs(self) -> Mapping[str, Input]: ...

    def figures(self) -> HostFigures: ...

    @property
    def subscriptions(self) -> pa.Table: ...

    def deliver(self, wait: timedelta | str) -> bool: ...

    def feed(self, events: Any, *, input: str, position: Position | None = None) -> Fed: ...  # noqa: A002


class Service:
    """Runs a host until it is told to stop."""

    def __init__(self, host: FedHost, server: HostServer, sources: Mapping[str, Source]) -> None:
        self._host = host
        self._server = server
        self._sources = sources
        self._is_stopped = False
        self.malformed = dict.fromkeys(sources, 0)
        """The records that were left out, by input."""

    def stop(self) -> None:
        """Ends `run` after the current round over the sources. May be called by a signal handler."""
        self._is_stopped = True
        self._server.wake()

    def run(self, report: Callable[[], object], *, once: bool = False) -> None:
        """Feeds the host. Each feed begins at the host's own position, so a restart after a crash continues exactly
        after the last feed that was stored. With `once` it ends when the sources have nothing more now.

        Args:
            report: Called after each round over the sources.

        Raises:
            EventError, SourceError, ConditionError, LimitExceeded, StoreError: from reading and feeding.
        """
        while not self._is_stopped:
            fed = [self._feed(name, source) for name, source in self._sources.items()]
            self._host.deliver(_AT_ONCE)
            report()
            if once and not any(fed) and all(self.lag(name) == 0 for name in self._sources):
                self._host.deliver(_LAST)
                return
            self._server.perform_changes(_WAIT if not any(fed) and not once else 0.0)

    def samples(self, name: str) -> Iterator[Sample]:
        """The figures of the host, under this name, and of its sources."""
        lags = {source: self.lag(source) for source in self._sources}
        yield from samples_of(self._host.figures(), name, lags, self.malformed)
        yield Sample("client_failures_total", label("host", name), self._server.failures)

    @property
    def waiting(self) -> dict[str, str]:
        """What each subscription that waits lacks, by its name."""
        rows = self._host.subscriptions.to_pylist()
        return {row["name"]: row["problem"] for row in rows if row["status"] == "waiting"}

    @property
    def late(self) -> dict[str, int]:
        """The number of late events of each pattern that had some, by name."""
        late: dict[str, int] = {}
        for (name, _), counts in self._host.figures().patterns.items():
            late[name] = late.get(name, 0) + counts["late"]
        return {name: count for name, count in late.items() if count}

    def lag(self, name: str) -> float | None:
        """How many seconds the host is behind the source of the input; None if it is not known."""
        return self._sources[name].lag(self._host.inputs[name].position)

    def _feed(self, name: str, source: Source) -> bool:
        """One feed; whether there was one."""
        found = source.after(self._host.inputs[name].position)
        if found is None:
            return False
        try:
            self._host.feed(found.events, input=name, position=found.position)
        except EventError as error:
            raise EventError(f"{found.place}: {error}") from error
        self.malformed[name] += found.malformed
        return True
