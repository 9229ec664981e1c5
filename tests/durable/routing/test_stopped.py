"""Deliveries that are stopped during an attempt: the function is replaced, or the subscription or the host ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Timer

import pytest
from tests.durable.routing.hosts import find, opened, subscriptions

from cepheid.host import Host, Letter
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.open_store import open_store
from cepheid.hosts.durable.routing import routing
from cepheid.hosts.durable.routing.routing import Routing

HANGS = "the attempt during which this delivery was stopped has not ended"


class Slow:
    """A function that waits in each call until it goes on."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.began, self.goes_on = Event(), Event()
        self.fails = False

    def __call__(self, letter: Letter) -> None:
        self.began.set()
        assert self.goes_on.wait(60)
        self.got.append(letter.number)
        if self.fails:
            raise RuntimeError("not this one")


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host waits for no attempt for long."""
    monkeypatch.setattr(routing, "_PATIENCE", 0.05)


def begin(host: Host, slow: Slow, *numbers: int) -> None:
    """Lets the host find pairs, and the function get the first of them."""
    host.subscribe("all", to=slow, attempts=1)
    find(host, *numbers)
    host.deliver("0 seconds")
    assert slow.began.wait(60)


def test_replaced(url: str) -> None:
    """A replaced function ends its attempt before the new one gets a letter; what it has taken is not sent again."""
    slow, got = Slow(), []
    with opened(url) as host:
        begin(host, slow, 1, 3)
        Timer(0.3, slow.goes_on.set).start()
        host.subscribe("all", to=lambda letter: got.append((letter.number, [*slow.got])), attempts=1)
        assert host.deliver()
        assert got == [(2, [1])]


@pytest.mark.usefixtures("patience")
def test_hangs(url: str) -> None:
    """An attempt that hangs does not hold up the host. The new function gets nothing until it has ended; then what the
    attempt has found is stored, also a dead letter.
    """
    slow, got = Slow(), []
    slow.fails = True
    with opened(url) as host:
        begin(host, slow, 1, 3)
        begun = time.monotonic()
        host.subscribe("all", to=lambda letter: got.append(letter.number), attempts=1)
        assert not host.deliver("200 milliseconds")
        assert time.monotonic() - begun < 10
        one = subscriptions(host)["all"]
        assert (one["status"], one["problem"], one["delivered"], got) == ("failing", HANGS, 0, [])
        slow.goes_on.set()
        assert host.deliver()
        assert (slow.got, got) == ([1], [2])
        (dead,) = host.dead_letters.to_pylist()
        assert (dead["number"], dead["problem"]) == (1, "RuntimeError: not this one")
        assert subscriptions(host)["all"]["status"] == "active"
        host.resend("all")
        assert host.deliver()
        assert got == [2, 1]


@pytest.mark.usefixtures("patience")
def test_resent_while_it_hangs(url: str) -> None:
    """A dead letter that is to be sent again while an old attempt hangs is sent after it."""
    slow, got = Slow(), []
    with opened(url) as host:
        slow.goes_on.set()
        slow.fails = True
        begin(host, slow, 1)
        assert host.deliver()
        slow.goes_on.clear()
        slow.began.clear()
        begin(host, slow, 3)
        host.subscribe("all", to=lambda letter: got.append(letter.number), attempts=1)
        assert host.resend("all", [1]) == 1
        assert not host.deliver("200 milliseconds")
        slow.goes_on.set()
        assert host.deliver()
        assert (got, slow.got) == ([1], [1, 2])


@pytest.mark.usefixtures("patience")
def test_ended_subscription(url: str) -> None:
    """What an attempt finds after its subscription has ended does not concern a new one of the same name, which begins
    after that attempt.
    """
    slow, got = Slow(), []
    slow.fails = True
    with opened(url) as host:
        begin(host, slow, 1, 3)
        host.unsubscribe("all")
        assert host.deliver()
        host.subscribe("all", to=lambda letter: got.append((letter.number, [*slow.got])), after=0)
        assert not host.deliver("200 milliseconds")
        assert subscriptions(host)["all"]["problem"] == HANGS
        slow.goes_on.set()
        assert host.deliver()
        assert got == [(1, [1]), (2, [1])]
        assert host.dead_letters.num_rows == 0


def test_closed(url: str) -> None:
    """A host that is closed stores what the attempt that is being made has done."""
    slow, got = Slow(), []
    with opened(url) as host:
        begin(host, slow, 1, 3)
        Timer(0.3, slow.goes_on.set).start()
    assert slow.got == [1]
    with opened(url) as host:
        host.subscribe("all", to=lambda letter: got.append(letter.number), attempts=1)
        assert host.deliver()
        assert got == [2]


class Watched:
    """A target that says whether it was closed, and whether that was during an attempt."""

    at_once = 1
    gives_up = True

    def __init__(self) -> None:
        self.began, self.goes_on, self.closed = Event(), Event(), Event()
        self.sends = False

    def send(self, letters: Sequence[Letter]) -> None:
        assert letters
        self.sends = True
        self.began.set()
        assert self.goes_on.wait(60)
        self.sends = False

    def close(self) -> None:
        assert not self.sends
        self.closed.set()


@pytest.mark.usefixtures("patience")
def test_targets_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each target is closed once no attempt is made any more, whatever fails when the host ends."""
    url, name = f"sqlite:///{tmp_path}/alerts.db", f"{__name__}:begin"
    with opened(url, name) as host:
        for one in ("hangs", "works"):
            host.subscribe(one, to=name)
        find(host, 1)
    targets = {"hangs": Watched(), "works": Watched()}
    durable = DurableHost(open_store(url))
    deliveries = Routing(durable, lambda given, _: targets[given.name])
    try:
        deliveries.deliver(0)
        assert all(target.began.wait(60) for target in targets.values())
        targets["works"].goes_on.set()
        monkeypatch.setattr(routing, "save", _fails)
        with pytest.raises(OSError, match="no more"):
            deliveries.close()
        assert targets["works"].closed.wait(60)
        assert not targets["hangs"].closed.is_set()
        targets["hangs"].goes_on.set()
        assert targets["hangs"].closed.wait(60)
    finally:
        durable.close()


def _fails(*_: object) -> None:
    raise OSError("no more")
