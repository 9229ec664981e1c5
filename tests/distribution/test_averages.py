"""The example of average speeds: dividing an original's events changes no mean, whatever overtakes what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.distribution.facts import FACTS, T1, event, release, request, sent_to

from cepheid.distribution import messages
from cepheid.distribution.aggregates import Partial
from cepheid.distribution.control import Watch
from cepheid.distribution.example import (
    FIG_14,
    FIG_17,
    FIG_22,
    FIG_23,
    FIG_24,
    FIG_26,
    INPUTS,
    PARA0,
    PARA1,
    PARA2,
    example,
)
from cepheid.distribution.full_size import full_size
from cepheid.distribution.lists import Order
from cepheid.distribution.network import Network
from cepheid.distribution.rates.schemes import EachAlone
from cepheid.distribution.rates.simulation import SETTING, Setting, counted, run

LISTS = [FIG_14, FIG_17, FIG_22, FIG_23, FIG_24, FIG_26]
SECONDS = st.lists(st.lists(st.tuples(st.sampled_from(INPUTS), st.integers(0, 59)), max_size=40), max_size=12)
"""For each second, the events: the car and the minute."""


def test_sums_and_counts_are_sent() -> None:
    """The mean of what the original and its copy gathered is that of all speeds, not the mean of their means."""
    fact, network = FACTS["release"]["example"], Network(example(FIG_17))
    network.send(event("p21", T1, speed) for speed in fact["original_speeds"])
    network.run()
    request(network, "p21", "d31", ["s001"])
    network.send(event("p21", T1, speed) for speed in fact["copy_speeds"])
    network.run()
    original = network.threads["d31"].memory.gathered["id11"]
    copy = network.threads["s001"].memory.gathered["d31"]["id11"]
    assert fact["partials"] == {
        "original": {"sum": original.total, "count": original.number},
        "copy": {"sum": copy.total, "count": copy.number},
    }
    assert (original.mean + copy.mean) / 2 == fact["mean_of_means"]
    release(network, "p21", "d31", ["s001"])
    assert network.totals() == {"id11": copy}  # the release sends what the copy has
    network.send_on()
    network.run()
    assert network.totals()["id11"].mean == fact["mean"]


def test_a_release_that_leaves_other_references_sends_too() -> None:
    """At each release the copy sends what it has gathered, also if another control thread still needs it."""
    network = Network(example(FIG_22))
    for at in ("p21", "p22"):
        request(network, at, "d31", ["s001"])
    sent_to(network, "p21", T1, 2)
    release(network, "p22", "d31", ["s001"])
    assert network.totals() == {"id11": Partial(50.0, 1)}
    assert network.threads["s001"].memory.counts == {"d31": 1}


@given(seconds=SECONDS, lists=st.sampled_from(LISTS), capacity=st.integers(1, 20), seed=st.integers(0, 1000))
def test_dividing_changes_no_mean(
    seconds: list[list[tuple[str, int]]], lists: dict[str, dict[str, tuple[str, ...]]], capacity: int, seed: int
) -> None:
    """Copies and releases at any time, and messages in any order: the services get every speed once."""
    network = Network(example(lists, watch=Watch(capacity)), seed=seed)
    expected: dict[str, Partial] = {}
    for second, events in enumerate(seconds):
        for number, (car, minute) in enumerate(events):
            speed = float(second * 40 + number)
            network.send([messages.event(car, car=car, time=60.0 * minute, speed=speed)])
            of = (PARA1 if PARA0.id_at(60.0 * minute) == "d31" else PARA2).id_at(60.0 * minute)
            expected[of] = expected.get(of, Partial(0.0, 0)).plus(speed, 1)
        if second % 2:
            network.run()
        network.tick()
    network.run()
    network.send_on()
    network.run()
    assert network.totals() == expected
    for thread in network.threads.values():
        if thread.stage == messages.Stage.STANDBY:
            assert not any(thread.memory.waiting.values())
            asked = [network.threads[one].memory.in_use for one in lists]
            counts = {key: sum(thread.id in used.get(key, ()) for used in asked) for key in ("d31", "d32")}
            assert thread.memory.counts == {key: count for key, count in counts.items() if count}


SMALL = Setting(inputs=300, controls=5, originals=20, capacity=20, hot=2, seconds=20, hot_for=10, judged_after=5)


def test_the_sizes_of_the_document() -> None:
    """There are 10,000 inputs, 100 control threads and 1,000 originals."""
    assert {"input": SETTING.inputs, "relay": SETTING.controls, "original": SETTING.originals} == FACTS["sizes"]


def test_messages_and_rates_agree() -> None:
    """Run message by message, control threads make and release as many copies as in the simulation of rates, and
    every event is measured once.
    """
    by_message = full_size(1, standbys=10, setting=SMALL)
    assert by_message.means == by_message.expected
    assert by_message.events == 300 * 20
    assert (by_message.copies_left, by_message.waiting) == (0, 0)
    rates = run(EachAlone(10, Order.CIRCULATED, SMALL), counted(1, SMALL), SMALL)
    assert (by_message.requests, by_message.releases) == (rates.growths, rates.releases)
    assert rates.releases > 0
