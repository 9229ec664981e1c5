"""Races: messages that overtake each other, in all orders that can be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.distribution.facts import FACTS, T1

from cepheid.distribution import messages
from cepheid.distribution.example import FIG_14, PARA1, PARA2, example
from cepheid.distribution.messages import Message, Stage
from cepheid.distribution.plugins import PLUGINS
from cepheid.distribution.races import End, Script, Step, explored
from cepheid.distribution.threads import Thread, received

RACES = FACTS["races"]
ARRIVING = {
    "set": messages.copy("s001", PARA1, "d31", 0),
    "flush": messages.release("s001", "d31", 0),
    "event": messages.forwarded(
        messages.event("s001", car="in11", time=T1, speed=50.0), "s001", Stage.STANDBY, usage_key="d31"
    ),
}


def steps(names: list[str]) -> Script:
    return [Step(name) for name in names]


ONE, SHORT = steps(["req", "ev", "ev", "fl"]), steps(["req", "ev", "fl"])
SCRIPTS = {31: [ONE], 183: [[*ONE, *ONE]], 912: [ONE, ONE], 3836: [[*ONE, *SHORT], ONE], 6018: [SHORT, SHORT, SHORT]}


@pytest.mark.parametrize("case", RACES["cases"], ids=lambda case: "-".join(case["arrival"]))
def test_each_order_at_a_standby(case: dict[str, Any]) -> None:
    """An event waits for its parameters, a release may overtake them, and nothing is left behind at the end."""
    thread, sent, lowest = example(FIG_14)["s001"], tuple[Message, ...](), 0
    for name in case["arrival"]:
        thread, more = received(thread, ARRIVING[name], 0, PLUGINS)
        lowest = min([lowest, *thread.memory.counts.values()])
        sent += more
    assert sum(int(str(result.get("count"))) for result in sent) == case["handled"]
    if "lowest_count" in case:
        assert lowest == case["lowest_count"]
    assert (thread.memory.counts, thread.memory.parameters) == ({}, {})
    assert case["left"] == ("event waits for ever" if thread.memory.waiting else "nothing")


@pytest.mark.parametrize("case", RACES["explored"]["all_interleavings"], ids=lambda case: str(case["states"]))
def test_all_interleavings(case: dict[str, Any]) -> None:
    """However requests, events and releases of one to three control threads interleave: all events are measured, and no
    parameters, references or waiting events remain.
    """
    scripts = SCRIPTS[case["states"]]
    if isinstance(case["script"], list):
        assert scripts == [steps(case["script"])] * case["control_threads"]
    found = explored(scripts)
    assert found.states == case["states"]
    events = sum(script.count(Step.EVENT) for script in scripts)
    assert found.ends == {End(measured=events, waiting=0, references=0, parameters=False)}
    assert found.lowest == -sum(script.count(Step.RELEASE) for script in scripts)


def test_without_order_between_two_threads() -> None:
    """If messages between two threads may overtake each other, some orders leave one or two events waiting for ever."""
    found, fact = explored([ONE], fifo=False), RACES["explored"]["without_fifo"]
    assert found.states == fact["states"]
    assert {end.waiting for end in found.ends} == {0, 1, 2}
    assert {end.measured + end.waiting for end in found.ends} == {2}


def test_parameters_vanish_for_a_moment() -> None:
    """While a release of p21 overtakes p21's own copy message, p22's events wait; the copy message lets them go on."""
    thread = example(FIG_14)["s001"]

    def after(thread: Thread, name: str) -> Thread:
        return received(thread, ARRIVING[name], 0, PLUGINS)[0]

    by_p22 = after(thread, "set")
    overtaken = after(after(by_p22, "flush"), "event")
    assert (overtaken.memory.parameters, len(overtaken.memory.waiting["d31"])) == ({}, 1)
    again = after(overtaken, "set")
    assert (again.memory.counts, again.memory.waiting) == ({"d31": 1}, {})
    assert again.memory.gathered["d31"]["id11"].number == 1


def test_one_key_does_not_affect_another() -> None:
    """Dropping the parameters of one original leaves those of another, and what waits for them."""
    thread = example(FIG_14)["s001"]
    for message in (ARRIVING["set"], messages.copy("s001", PARA2, "d32", 0), ARRIVING["flush"]):
        thread, _ = received(thread, message, 0, PLUGINS)
    assert thread.memory.parameters == {"d32": PARA2}
    assert thread.memory.counts == {"d32": 1}
