"""The steps of the document's flow charts (S10 to S34), each seen to happen in the simulator, in their order."""

from __future__ import annotations

import pytest
from tests.distribution.facts import FACTS, T1, T2, administration, destinations, event, standbys

from cepheid.distribution.control import Watch, administration_table, destination_list
from cepheid.distribution.example import FIG_14, FIG_17, PARA1, PARA2, example
from cepheid.distribution.messages import Kind, Message, Stage
from cepheid.distribution.network import Network
from cepheid.distribution.plugins import PLUGINS
from cepheid.distribution.setup import standby_ids
from cepheid.distribution.threads import Handled, Thread, received

FLOW = FACTS["flow"]


def test_no_step_is_left_out() -> None:
    """The tests of this file are about these steps, and there are no others."""
    assert [*FLOW] == ["thread", "setup", "control"]
    assert [*FLOW["thread"]] == ["S10", "S11", "S12", "S13"]
    steps = [text.split()[0] for of_step in FLOW["setup"].values() for text in of_step if text[0] == "S"]
    assert [*FLOW["setup"]] == ["S20", "S21", "S22", "S23"]
    assert steps == ["S201", "S202", "S211", "S212", "S213", "S221", "S222", "S223", "S224", "S231", "S232"]
    assert [*FLOW["control"]] == ["S30", "S31", "S32", "S33", "S34"]


# Thread: S10 to S13


def test_a_thread_receives_stores_and_runs_plugins() -> None:
    """S10 to S13: when a plug-in runs, the message's states are stored. It runs if its state was written, changed or
    with an equal value, and not if the message does not carry that state.
    """
    seen: list[tuple[str, object]] = []

    def plugin(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
        seen.append((message.to, thread.states["speed"]))  # S11 comes before S13
        return thread, ()

    thread = Thread("d31", Stage.ORIGINAL, {"speed": "plg"})
    for state, value in (("speed", 30.0), ("speed", 50.0), ("speed", 50.0), ("latitude", 35.6)):
        message = Message("d31", Kind.EVENT, Stage.ORIGINAL, T1, ((state, value),))
        thread, _ = received(thread, message, 0, {"plg": plugin})
    assert seen == [("d31", 30.0), ("d31", 50.0), ("d31", 50.0)]
    assert thread.states == {"speed": 50.0, "latitude": 35.6}


# Set-up: S20 to S23


def test_standby_ids() -> None:
    """S201 and S202: as many ids as are needed, all different, and those are the standbys that there are."""
    for needed in (1, 4, 12):
        ids = standby_ids(needed)
        assert len({*ids}) == needed
    threads = example(FIG_14, standbys=4)
    assert tuple(one.id for one in threads.values() if one.stage is Stage.STANDBY) == standby_ids(4)


@pytest.mark.parametrize("control", [*FIG_14])
def test_each_control_thread_gets_its_list_and_tables(control: str) -> None:
    """S21 and S22: each control thread stores the ids that it takes, with all usage flags false; plg_1, its list and
    its administration table are there, and nothing is distributed.
    """
    thread = example(FIG_14)[control]
    rows = destination_list(thread.memory)
    assert [row.id for row in rows] == [*FIG_14[control]["*"]]  # S211, S213, S222
    assert not any(row.used for row in rows)  # S212
    assert "plg_1" in thread.plugins.values()  # S221
    assert [(row.distributed, row.in_use) for row in administration_table(thread.memory)] == [(False, ())] * 2  # S223
    assert thread.stage is Stage.CONTROL  # S224: all three are of this thread


def test_originals_and_standbys_get_their_plugins() -> None:
    """S231 and S232: plg_2 is in every original and nowhere else, plg_3 in every standby. Only originals have
    parameters.
    """
    threads = example(FIG_14)
    for plugin, stage in (("plg_2", Stage.ORIGINAL), ("plg_3", Stage.STANDBY)):
        having = [one.id for one in threads.values() if plugin in one.plugins.values()]
        assert having == [one.id for one in threads.values() if one.stage is stage]
        assert plugin in PLUGINS
    assert {one: threads[one].memory.parameter for one in ("d31", "d32")} == {"d31": PARA1, "d32": PARA2}
    assert not any(threads[one].memory.parameters for one in standby_ids(4))


# Control: S30 to S34


class Watched:
    """A control thread with four standbys; a thread can do ten events a second, and another control thread exists."""

    def __init__(self) -> None:
        self.network = Network(example(FIG_17, watch=Watch(capacity=10)))

    def second(self, each: int) -> list[tuple[str, str, str]]:
        """The control messages after a second with so many events of T1, and one of T2."""
        before = len(self.network.control_messages)
        self.network.send([*[event("p21", T1)] * each, event("p21", T2)])
        self.network.run()
        self.network.tick()
        self.network.run()
        return self.network.control_messages[before:]

    @property
    def in_use(self) -> list[str]:
        (row, other) = administration(self.network, "p21")
        assert (row["id"], other["distributed"], other["in_use"]) == ("d31", False, [])
        assert row["distributed"] is bool(row["in_use"])
        assert [one["id"] for one in destinations(self.network, "p21") if one["used"]] == row["in_use"]
        return [*row["in_use"]]


def test_a_control_thread_watches_requests_and_releases() -> None:
    """S30 to S34, over the whole life of a hot original.

    While the load that the control thread sees (S30) is small, it does nothing (S31: no). As the load grows (S31: yes)
    it sends a request to the hot original alone, whose standbys get its parameters, and its tables change (S32).
    Between the thresholds nothing happens (S33: no). As the load falls (S33: yes) it sends releases to the copies
    alone (S34), until it has none and its tables are as at first.
    """
    watched = Watched()
    network = watched.network
    assert [watched.second(3) for _ in range(5)] == [[]] * 5  # S30, S31: not yet
    assert watched.network.threads["p21"].memory.loads["d31"] == pytest.approx(3 * (1 - 0.8**5))  # S30
    assert watched.in_use == []

    grown: list[tuple[str, str, str]] = []
    while not grown:
        grown = watched.second(12)
    copies = watched.in_use
    assert grown[0] == ("p21", "d31", "dist")  # S32
    assert sorted(grown[1:]) == [("d31", one, "set") for one in copies]
    assert standbys(network, copies) == {one: {"d31": {"parameter": "para1", "count": 1}} for one in copies}
    for _ in range(30):
        watched.second(12)
    copies = watched.in_use
    assert [watched.second(12) for _ in range(5)] == [[]] * 5  # S33: not over
    assert watched.in_use == copies

    released: list[tuple[str, str, str]] = []
    for _ in range(40):
        released += watched.second(0)
    assert {(sender, control) for sender, _, control in released} == {("p21", "flush")}  # S34
    assert sorted(to for _, to, _ in released) == sorted(copies)
    assert watched.in_use == []
    assert standbys(network, standby_ids(4)) == {one: {} for one in standby_ids(4)}
