"""The claims of the document, each as a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.distribution.facts import FACTS, T1, T2, event, release, request, sent_to, standbys

from cepheid.distribution.control import Watch, available, destination_list
from cepheid.distribution.example import FIG_14, FIG_17, FIG_22, FIG_24, example
from cepheid.distribution.messages import Kind
from cepheid.distribution.network import Network

HOT = Watch(capacity=10)
"""A thread can do ten events a second, so that few events make it hot."""


def busy(network: Network, events: dict[str, float], *, seconds: int = 20, each: int = 40) -> None:
    """Sends `each` events a second through these control threads, at these event times."""
    for _ in range(seconds):
        network.send(event(at, time) for at, time in events.items() for _ in range(each))
        network.run()
        network.tick()
        network.run()


def test_claim_1() -> None:
    """A hot original gets one request from its control thread; the standby is flagged, gets the parameters of the hot
    one, and then gives for its events what the original would give.
    """
    network, still = Network(example(FIG_17, watch=HOT)), Network(example(FIG_17))
    for one in (network, still):
        busy(one, {"p21": T1}, seconds=1, each=60)
    assert network.control_messages[0] == ("p21", "d31", "dist")
    assert {(sender, to) for sender, to, _ in network.control_messages} == {
        ("p21", "d31"),
        ("d31", "s001"),
        ("d31", "s002"),
    }
    assert [row.used for row in destination_list(network.threads["p21"].memory)] == [True, True, False, False]
    assert standbys(network, ["s001"]) == {"s001": {"d31": {"parameter": "para1", "count": 1}}}
    for one in (network, still):
        one.send(event("p21", T1 + 60 * minute, speed=minute) for minute in range(20))
        one.run()
        one.send_on()
        one.run()
    assert network.arrived["s001"] > 0
    assert network.totals() == still.totals()


def test_claim_2() -> None:
    """Events for the hot original go to it and its copies, and to no standby without a flag."""
    network = Network(example(FIG_17))
    request(network, "p21", "d31", ["s002"])
    assert [*sent_to(network, "p21", T1, 20)] == ["d31", "s002"]


def test_claim_3() -> None:
    """When the original is no longer hot, the copy is released and has no parameters under that key."""
    network = Network(example(FIG_17, watch=HOT))
    busy(network, {"p21": T1})
    assert len(network.threads["p21"].memory.in_use["d31"]) == 4
    busy(network, {"p21": T1}, each=1)
    assert network.threads["p21"].memory.in_use == {}
    assert standbys(network, ["s001", "s002", "s003", "s004"]) == {f"s00{number}": {} for number in (1, 2, 3, 4)}
    flushes = [(sender, to) for sender, to, control in network.control_messages if control == "flush"]
    assert sorted(flushes) == [("p21", f"s00{number}") for number in (1, 2, 3, 4)]


def test_claim_4() -> None:
    """The standbys that the request names get the parameters, and no others."""
    network = Network(example(FIG_17))
    request(network, "p21", "d31", ["s001", "s003"])
    holding = [one for one, table in standbys(network, ["s001", "s002", "s003", "s004"]).items() if table]
    assert holding == ["s001", "s003"]


def test_claim_5() -> None:
    """A copy of d31 holds para1 alone, a copy of d32 para2 alone."""
    network = Network(example(FIG_17))
    request(network, "p21", "d31", ["s001"])
    request(network, "p21", "d32", ["s002"])
    tables = standbys(network, ["s001", "s002"])
    assert {key: entry["parameter"] for key, entry in tables["s001"].items()} == {"d31": "para1"}
    assert {key: entry["parameter"] for key, entry in tables["s002"].items()} == {"d32": "para2"}


def test_claim_6() -> None:
    """A standby that two control threads list serves both as a copy of the same hot original."""
    network = Network(example(FIG_22, watch=HOT))
    busy(network, {"p21": T1, "p22": T1})
    assert standbys(network, ["s001"])["s001"]["d31"]["count"] == 2
    assert all("s001" in sent_to(network, at, T1, 20) for at in ("p21", "p22"))


def test_claim_7() -> None:
    """Both originals hot at once: the events of each go to it and its own copy, and do not mix."""
    network = Network(example(FIG_24, watch=Watch(capacity=25)))
    for _ in range(20):
        network.send(event("p21", time) for time in (T1, T2) for _ in range(18))
        network.run()
        network.tick()
        network.run()
    assert network.threads["p21"].memory.in_use == {"d31": ("s001",), "d32": ("s002",)}
    assert [*sent_to(network, "p21", T1, 20)] == ["d31", "s001"]
    assert [*sent_to(network, "p21", T2, 20)] == ["d32", "s002"]


def test_claim_8() -> None:
    """With disjoint lists, one of two control threads sends the original one part for two to each copy."""
    network = Network(example(FIG_14))
    request(network, "p21", "d31", ["s001", "s002"])
    assert sent_to(network, "p21", T1, 500) == {"d31": 100, "s001": 200, "s002": 200}


def test_claim_9(tmp_path: Path) -> None:
    """A stored program does what claim 1 does; each new process gives the same messages in the same order."""
    program = tmp_path / "claim.py"
    program.write_text(
        """
from cepheid.distribution import control, messages
from cepheid.distribution.example import FIG_22, INPUTS, example
from cepheid.distribution.network import Network

network = Network(example(FIG_22, watch=control.Watch(capacity=10)), seed=7)
for second in range(8):
    for number in range(40):
        car = INPUTS[number % 4]
        network.send([messages.event(car, car=car, time=60.0 * number, speed=float(number))])
    network.run()
    network.tick()
network.run()
network.send_on()
network.run()
print(network.control_messages, network.totals())
"""
    )
    printed = {
        subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout for _ in range(2)
    }
    assert len(printed) == 1
    assert "('p21', 'd31', 'dist'), " in printed.pop()
    assert len(FACTS["claims"]) == 9


def test_control_threads_know_only_what_they_saw() -> None:
    """A request of one control thread changes nothing at the other."""
    assert FACTS["rules"]["control_threads_do_not_know"]
    network = Network(example(FIG_22))
    before = network.threads["p22"]
    request(network, "p21", "d31", ["s001", "s002"])
    release(network, "p21", "d31", ["s002"])
    assert network.threads["p22"] == before
    assert available(before.memory, "d31", 2) == ("s001", "s002")


@pytest.mark.parametrize("reuse", [True, False])
def test_too_few_standbys_are_counted(*, reuse: bool) -> None:
    """Where the list has no more standbys, those that there are divide the load, and it is counted what each original
    lacks, for as long as it lacks it.
    """
    network = Network(example(FIG_14, watch=HOT, reuse=reuse))
    busy(network, {"p21": T1}, each=20)
    control = network.threads["p21"].memory
    assert (control.in_use, control.lacking) == ({"d31": ("s001", "s002")}, {"d31": 2})
    busy(network, {"p21": T2}, each=20, seconds=3)
    control = network.threads["p21"].memory
    assert control.in_use["d31"] == ("s001", "s002")
    assert ("d32" in control.in_use) is reuse
    assert control.lacking == ({} if reuse else {"d32": 2})
    busy(network, {"p21": T1}, each=1)
    assert network.threads["p21"].memory.lacking == {}


def test_messages_have_types() -> None:
    """An event for a copy is still an event."""
    network = Network(example(FIG_17))
    request(network, "p21", "d31", ["s001"])
    sent_to(network, "p21", T1, 4)
    assert network.last["p21", "s001"].kind is Kind.EVENT
