"""A durable host that is killed at any point and restarted finds everything, and each thing once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.conftest import TESTS
from tests.durable.killed import (
    ALERTS,
    CARTS,
    IN_A_FEED,
    MEASURES,
    OUTPUTS,
    REGIONS,
    end_of,
    feed,
    feed_of,
    prepare,
)
from tests.durable.postgres import Server
from tests.searching import KILLS

from cepheid import detect
from cepheid.host import Host, open_host

SCRIPT = Path(__file__).with_name("killed.py")
FEEDS = 4 * KILLS + 8
"""A process is killed after at most three feeds, so some are left for the last one."""
VICTIMS = ("host", "server killed", "server stopped")


@pytest.fixture(scope="module")
def open_at_the_end(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What is open after all events without any kill."""
    with open_host(f"sqlite:///{tmp_path_factory.mktemp('uninterrupted')}/store") as host:
        prepare(host)
        for number in range(FEEDS):
            feed(host, number)
        return open_rows(host)


@pytest.mark.slow
def test_kills(
    url: str, kind: str, open_at_the_end: list[list[str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A host gets SIGKILL at random points while it opens its store, takes events and commits; a database server, too,
    or it is stopped at once. What is stored in the end are the matches and timeouts of `detect` over all events, each
    once; the outbox has them without gaps, a subscriber's table has its part of them, and what is open is what is open
    without any kill.
    """
    server: Server | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    lives = _Lives(url, server, tmp_path / "said", random.Random(f"{kind} {KILLS}"))
    for number in range(KILLS):
        lives.end_one(VICTIMS[number % len(VICTIMS)] if server else "host")
    lives.live_on()
    with open_host(url) as host:
        assert host.inputs["clicks"].events == FEEDS * IN_A_FEED
        assert found(host) == outbox(host) == expected()
        assert open_rows(host) == open_at_the_end
        assert host.deliver()
        sent = "SELECT match_id FROM outbox WHERE pattern = 'carts' ORDER BY number"
        assert host.sql(f"SELECT match_id FROM {ALERTS} ORDER BY number") == host.sql(sent)


class _Lives:
    """Processes with the same host, one after another."""

    def __init__(self, url: str, server: Server | None, said: Path, drawn: random.Random) -> None:
        self._url, self._server, self._said, self._drawn = url, server, said, drawn
        self._opening, self._feeding = 1.0, 0.1
        """Seconds that these steps took in an earlier process."""

    def end_one(self, victim: str) -> None:
        """Starts a process and kills it, or the server and then the process, at a random point."""
        with self._process() as process:
            self._wait_for_a_point(process)
            if victim != "host":
                assert self._server is not None
                self._server.kill() if victim == "server killed" else self._server.stop_at_once()
                time.sleep(self._drawn.random() / 2)
                self._server.start()
                self._wait_for_a_point(process)  # the host goes on by itself

    def live_on(self) -> None:
        """Starts a process, which feeds all that is left."""
        with self._process() as process:
            assert process.stdout is not None
            process.stdout.read()
            assert process.wait() == 0, self._said.read_text("utf-8")

    def _wait_for_a_point(self, process: subprocess.Popen[str]) -> None:
        """Waits for a random point: while the store is opened, or in one of the next feeds."""
        first = self._line(process)
        started = time.monotonic()
        if first == "opening":
            if self._drawn.random() < 0.2:
                time.sleep(self._drawn.random() * self._opening)
                return
            self._line(process)
            self._opening = time.monotonic() - started
        for _ in range(self._drawn.randrange(3)):
            started = time.monotonic()
            self._line(process)
            self._feeding = time.monotonic() - started
        time.sleep(self._drawn.random() * self._feeding)

    def _line(self, process: subprocess.Popen[str]) -> str:
        """What the process says next."""
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, self._said.read_text("utf-8")
        return line

    @contextmanager
    def _process(self) -> Iterator[subprocess.Popen[str]]:
        """A process that is killed after the block, if it still runs."""
        paths = [str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, str(SCRIPT), self._url, str(FEEDS)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with self._said.open("ab") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        with process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGKILL)


@cache
def expected() -> Counter[tuple[str, str, str]]:
    """Pattern, kind and id of what `detect` finds in all events."""
    events = pa.concat_tables(feed_of(number) for number in range(FEEDS))
    asked: dict[str, Any] = {"time": "at", "sequence": "id", "outputs": OUTPUTS, "as_of": end_of(FEEDS)}
    carts = detect(events, CARTS, key="session", measures=MEASURES, **asked)
    matches = carts.filter(pc.equal(carts["kind"], "match"))
    columns = {name: matches[name] for name in ("session", *MEASURES)}
    tier = pa.table({"at": matches["detected_at"], **columns})
    regions = detect(tier, REGIONS, key="region", **asked)
    listed = {"carts": carts, "regions": regions}
    return Counter(
        (name, row["kind"], row["match_id"])
        for name, rows in listed.items()
        for row in rows.select(["kind", "match_id"]).to_pylist()
    )


def found(host: Host) -> Counter[tuple[str, str, str]]:
    """The same for what the tables have."""
    rows: Counter[tuple[str, str, str]] = Counter()
    for name in (CARTS.name, REGIONS.name):
        for kind, table in (("match", f"matches_{name}"), ("timeout", f"timeouts_{name}")):
            ids = host.sql(f"SELECT match_id FROM {table}").column("match_id").to_pylist()
            rows.update((name, kind, id_) for id_ in ids)
    return rows


def outbox(host: Host) -> Counter[tuple[str, str, str]]:
    """The same for what the outbox has. Its numbers have no gaps."""
    rows = host.sql("SELECT number, pattern, kind, match_id FROM outbox ORDER BY number").to_pylist()
    assert [row["number"] for row in rows] == [*range(1, len(rows) + 1)]
    return Counter((row["pattern"], row["kind"], row["match_id"]) for row in rows)


def open_rows(host: Host) -> list[list[str]]:
    """The ids of the open partial matches of both patterns."""
    return [
        host.sql(f"SELECT id FROM open_{name} ORDER BY id").column("id").to_pylist()
        for name in (CARTS.name, REGIONS.name)
    ]
