"""A host that is killed between a delivery and its acknowledgement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.durable.routing.hosts import LOOPBACK, opened, tier_opened
from tests.durable.routing.receiver import Received, Receiver, running_receiver
from tests.durable.test_stores import count

SCRIPT = Path(__file__).with_name("killed.py")
_ROOT = Path(__file__).parents[3]


def test_killed(new_store: Callable[[], str]) -> None:
    """Killed while an endpoint has a message and has not answered, again and again: the next host delivers the message
    once more under the same id, loses none, and a table and another host have each match exactly once.
    """
    url, tier = new_store(), new_store()
    with running_receiver() as receiver:
        for last in (3, 11, 27):
            _run_until(url, tier, receiver.origin, last, receiver)
        receiver.answer = lambda _: (204, {})
        with opened(url, receiver.origin, LOOPBACK, tier) as host:
            found = host.sql("SELECT match_id, id FROM matches_pairs ORDER BY id").to_pylist()
            assert host.deliver()
            in_table = host.sql("SELECT id FROM alerts ORDER BY number").column("id").to_pylist()
        expected = [row["id"] for row in found]
        assert len(expected) >= 27 // 2
        assert in_table == expected
        ids = {row["id"]: row["match_id"] for row in found}
        assert all(one.headers["webhook-id"] == ids[one.row["id"]] for one in receiver.received)
        assert len(receiver.ids) >= len(expected) + 3
        assert sorted({*receiver.ids}) == expected
        firsts = [id_ for i, id_ in enumerate(receiver.ids) if id_ not in receiver.ids[:i]]
        assert firsts == expected, "in order, but for repetitions"
        with tier_opened(tier) as other:
            assert other.inputs["pairs"].events == len(expected)
            assert count(other, "matches_growing") == len(expected) - 1


def _run_until(url: str, tier: str, origin: str, last: int, receiver: Receiver) -> None:
    """Runs a host until the receiver has the pair `last`, and kills it then."""
    command = [sys.executable, str(SCRIPT), url, tier, origin]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])}
    process = subprocess.Popen(command, env=environment, cwd=_ROOT)

    def answer(one: Received) -> tuple[int, dict[str, str]]:
        if one.row["id"] >= last and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        return 204, {}

    receiver.answer = answer
    assert process.wait(120) == -signal.SIGKILL
