"""A worker that ends, at any point, is started again from the store, and nothing is lost or found twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import TESTS
from tests.durable.killed import feed, prepare
from tests.durable.workers.conftest import host_at

from cepheid import Pattern
from cepheid.errors import LimitExceeded, WorkerFailed
from cepheid.host import Host, open_host
from cepheid.hosts.durable.deployed import Deployed, EventTable, Found
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.store import ShardWriter
from cepheid.hosts.durable.workers.in_worker import DeployedInWorker
from cepheid.hosts.durable.workers.places import InWorkers
from cepheid.hosts.durable.workers.process import WorkerProcess
from cepheid.hosts.durable.workers.workers import Workers
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids

FEEDS = 6


class Death:
    """At which calls of patterns their workers are killed."""

    def __init__(self) -> None:
        self.point, self.times = "", 0

    def comes(self, point: str, times: int = 1) -> None:
        """It comes so many times, at the next calls of this kind."""
        self.point, self.times = point, times

    def at(self, point: str, worker: WorkerProcess) -> None:
        if point == self.point and self.times:
            self.times -= 1
            kill(worker)


def kill(worker: WorkerProcess) -> None:
    """Kills the worker, and waits until it is dead."""
    os.kill(worker.pid, signal.SIGKILL)
    while worker.is_alive:
        os.sched_yield()


class Mortal(DeployedInWorker):
    """A pattern in a worker that is killed at some calls."""

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids, workers: Workers, death: Death) -> None:
        super().__init__(deployment, table, ids, workers)
        self._death = death

    def begin(self, events: StepEvents | None, before: Reached, after: Reached) -> None:
        self._death.at("ask", self._worker)
        super().begin(events, before, after)
        self._death.at("begin", self._worker)

    def step(self, events: StepEvents | None, before: Reached, after: Reached) -> Found | None:
        found = super().step(events, before, after)
        self._death.at("step", self._worker)
        return found

    def save(self, store: ShardWriter) -> None:
        super().save(store)
        self._death.at("save", self._worker)

    def open_changes(self, deployed: Sequence[Deployed]) -> OpenChanges:
        self._death.at("list", self._worker)
        return super().open_changes(deployed)


class MortalWorkers(InWorkers):
    def __init__(self, death: Death) -> None:
        super().__init__(workers := Workers(2))
        self._made, self._death = workers, death

    def deployed(self, deployment: Deployment, table: EventTable, ids: Ids) -> Deployed:
        return Mortal(deployment, table, ids, self._made, self._death)


def stored(host: Host) -> dict[str, pa.Table]:
    """All that the host has found, and what is open."""
    tables = ("open_carts", "matches_carts", "timeouts_carts", "open_regions", "matches_regions", "outbox")
    return {table: host.sql(f"SELECT * FROM {table} ORDER BY 1") for table in tables}


def reasons(ask: Callable[[], Any]) -> str:
    with pytest.raises(WorkerFailed) as raised:
        ask()
    return str(raised.value)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """What a host without workers has stored in the end."""
    with open_host(f"sqlite:///{tmp_path_factory.mktemp('uninterrupted')}/store") as host:
        prepare(host)
        for number in range(FEEDS):
            feed(host, number)
        return stored(host)


def test_killed(uninterrupted: dict[str, pa.Table], tmp_path: Path) -> None:
    """A worker gets SIGKILL before and after it was asked for a step, when it has answered, after its state was
    written, and while open partial matches are listed. The calls succeed, and what is stored in the end is as without
    any kill. If it dies twice in one call, the call fails with the reason, nothing of it is stored, and it can be
    repeated.
    """
    death = Death()
    with host_at(f"sqlite:///{tmp_path}/store", MortalWorkers(death)) as host:
        prepare(host)
        for number, point in enumerate(("ask", "begin", "step", "save", "list")):
            death.comes(point)
            feed(host, number)
            assert not death.times
        before = stored(host)
        death.comes("ask", 2)
        assert "was ended by SIGKILL" in reasons(lambda: feed(host, FEEDS - 1))
        assert stored(host) == before
        feed(host, FEEDS - 1)
        assert stored(host) == uninterrupted


def test_figures_after_a_death(tmp_path: Path) -> None:
    """A worker that died between two calls is started again by whatever asks it first."""
    workers = Workers(2)
    with host_at(f"file://{tmp_path}/store", InWorkers(workers)) as host:
        prepare(host)
        feed(host, 0)
        before = host.figures().patterns, host.sql("SELECT * FROM open_carts ORDER BY 1")
        for process in workers.processes:
            kill(process)
        assert (host.figures().patterns, host.sql("SELECT * FROM open_carts ORDER BY 1")) == before


def test_a_bound_on_memory(tmp_path: Path) -> None:
    """A feed for which a worker needs more memory than it may have changes nothing, and smaller feeds succeed. Some
    libraries end a process that can allocate no more, which the error says.
    """
    at = pa.array(range(2_000_000), pa.timestamp("us", "UTC"))
    many = pa.table({"at": at, "kind": pa.array(["a"] * len(at))})
    pattern = Pattern.begin("a", name="pair").followed_by("b").where("at > a.at AND kind = 'b'")
    with open_host(f"sqlite:///{tmp_path}/store", workers=2, worker_memory="256 MB") as host:
        host.input("events", many.schema, time="at")
        host.deploy(pattern, input="events")
        host.feed(many[:10], input="events")
        with pytest.raises((LimitExceeded, WorkerFailed), match=r"256,000,000 bytes \(worker_memory\)"):
            host.feed(many[10:], input="events")
        assert host.inputs["events"].events == 10
        host.feed(many[10:20], input="events")
        assert host.inputs["events"].events == 20


def test_no_orphans(tmp_path: Path) -> None:
    """When the host's own process is killed, its workers end: they hold its output no longer."""
    script = (
        "import sys, os, signal\nfrom tests.durable.killed import feed, prepare\nfrom cepheid.host import open_host\n"
        "host = open_host(sys.argv[1], workers=2)\nprepare(host)\nfeed(host, 0)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    paths = [str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    ended = subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{tmp_path}/store"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def test_reason() -> None:
    """The error says how the worker has ended."""
    workers = Workers(1)
    process = workers.place(1)
    kill(process)
    how = "was ended by SIGKILL, as the system does where memory runs out: use fewer workers"
    assert reasons(lambda: process.ask("counts", 1)) == f"worker process {process.pid} {how}"
    assert not workers.are_whole
    workers.close()
