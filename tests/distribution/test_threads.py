"""Threads, messages, tables and plug-ins, and the set-up: as the document describes and draws them."""

from __future__ import annotations

import pytest
from tests.distribution.facts import CAR, FACTS, T1, T2, fields, release, request

from cepheid.distribution import messages
from cepheid.distribution.control import destination_list
from cepheid.distribution.example import FIG_14, FIG_17, INPUTS, PARA0, PARA1, PARA2, SERVICES, example
from cepheid.distribution.inputs import hashed, task_slot
from cepheid.distribution.messages import Kind, Message, Stage
from cepheid.distribution.network import Network
from cepheid.distribution.parameters import Parameter, Timeframe
from cepheid.distribution.plugins import PLUGINS
from cepheid.distribution.setup import standby_ids
from cepheid.distribution.threads import Handled, Thread, received

STAGES = {
    "input": Stage.INPUT,
    "relay": Stage.CONTROL,
    "relay and control": Stage.CONTROL,
    "original": Stage.ORIGINAL,
    "standby": Stage.STANDBY,
    "standby or copy": Stage.STANDBY,
    "service": Stage.SERVICE,
}


def sent_by(network: Network) -> dict[tuple[str, str], Message]:
    """Runs the network, and returns the last message between each pair of threads."""
    network.last.clear()
    network.run()
    return {**network.last}


# Threads


def test_a_written_state_runs_its_plugin() -> None:
    """FIG. 5: a message writes states, and each written state runs its plug-in, also when the value is as before."""
    figure = FACTS["object_table_fig5"]
    ran: list[str] = []

    def plugin(name: str) -> object:
        def run(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
            ran.append(name)
            return thread, ()

        return run

    plugins = {name: plugin(name) for name in figure["plugin_ids"]}
    thread = Thread(figure["object_id"], Stage.ORIGINAL, figure["plugin_table"])
    assert [*thread.plugins] == figure["state_names"]
    speed = Message(thread.id, Kind.EVENT, Stage.ORIGINAL, 0.0, (("speed", 3.5),))
    thread, _ = received(thread, speed, 0, plugins)  # type: ignore[arg-type]
    thread, _ = received(thread, speed, 0, plugins)  # type: ignore[arg-type]
    assert ran == ["plg_id1", "plg_id1"]
    position = Message(thread.id, Kind.EVENT, Stage.ORIGINAL, 0.0, (("latitude", 35.6), ("longitude", 139.7)))
    thread, _ = received(thread, position, 0, plugins)  # type: ignore[arg-type]
    assert ran[2:] == ["plg_id2", "plg_id3"]
    assert thread.states == {"speed": 3.5, "latitude": 35.6, "longitude": 139.7}


def test_stages() -> None:
    """Each thread of the example is in its stage, and stages are numbered in the order of the flow."""
    threads = example(FIG_14)
    for stage in FACTS["stages"]:
        of_stage = [thread.id for thread in threads.values() if thread.stage == STAGES[stage["role"]]]
        assert of_stage == stage["threads"]
        assert STAGES[stage["role"]] == stage["stage"]
        assert all(STAGES[later] > stage["stage"] for later in stage["sends_to"])


@pytest.mark.parametrize(("sender", "to", "stage"), [("p21", "p22", 2), ("d31", "d32", 3), ("d31", "p21", 2)])
def test_messages_go_forward_only(sender: str, to: str, stage: int) -> None:
    """A message within a stage, or to an earlier one, is an error."""
    assert FACTS["rules"]["forward_only"]
    assert not FACTS["rules"]["messages_within_a_stage"]
    network = Network(example(FIG_14))
    with pytest.raises(ValueError, match=rf"^a message of {sender} to {to} does not go to a later stage$"):
        network.send([Message(to, Kind.EVENT, Stage(stage), 0.0, ())], sender)


def test_placement() -> None:
    """A thread's place is the hash of its id modulo 160 task slots, the same at any time, and all are used."""
    placement = FACTS["placement"]
    slots = [task_slot(f"in{number}") for number in range(10_000)]
    assert {*slots} == {*range(placement["task_slots"])}
    assert placement["machines"] * placement["cores_per_machine"] == placement["task_slots"]
    assert task_slot("d31") == hashed("d31") % 160 == 4


# Parameters


def test_parameters() -> None:
    """FIG. 5: which minutes belong to which object, both ends included."""
    figure = FACTS["parameters_fig5"]
    for parameter, name in ((PARA1, "para1"), (PARA2, "para2")):
        assert [frame._asdict() for frame in parameter.frames] == [
            {"first": row["from"], "last": row["to"], "id": row["id"]} for row in figure[name]
        ]
    for timeframe, (first, last) in figure["timeframes_minutes_inclusive"].items():
        original = figure["para0_in_example"][timeframe]
        assert Timeframe(first, last, original) in PARA0.frames
        assert PARA0.id_at(first * 60) == PARA0.id_at(last * 60 + 59.9) == original
    assert figure["service_objects_to_threads"] == SERVICES
    threads = example(FIG_14)
    assert all(threads[one].memory.para0 is PARA0 for one in figure["held_by"]["para0"])
    assert all(threads[one].memory.parameter is PARA1 for one in figure["held_by"]["para1"])
    assert all(threads[one].memory.parameter is PARA2 for one in figure["held_by"]["para2"])


def test_the_hour_repeats() -> None:
    """Parameters apply to each hour; parts of a minute belong to it."""
    assert PARA1.id_at(3600 + 9 * 60 + 59.9) == "id11"
    assert PARA1.id_at(3600 + 10 * 60) == "id12"


@pytest.mark.parametrize("minute", [0, 7, 31])
def test_a_minute_that_belongs_to_no_object(minute: int) -> None:
    """A time outside of all timeframes is an error that lists them."""
    parameter = Parameter("para1", (Timeframe(1, 5, "id11"), Timeframe(10, 29, "id12")))
    with pytest.raises(LookupError, match=rf"^para1 has no timeframe for minute {minute}: it has 1-5, 10-29$"):
        parameter.id_at(minute * 60.0)


# Messages


def test_events_as_messages() -> None:
    """An event goes from the car to its control thread, and to the original or, with the usage key, to a copy."""
    facts = FACTS["messages"]
    network = Network(example(FIG_17))
    network.send([messages.event(CAR, car=CAR, time=T1, speed=50.0, latitude=35.6, longitude=139.7)])
    passed = sent_by(network)
    control = "p21"
    assert {*facts["event_1"]["carries"]} - {"id", "eT"} <= {*dict(passed[CAR, control].states)}
    assert control == ["p21", "p22"][hashed(CAR) % 2] == network.threads[CAR].memory.control
    assert passed[control, "d31"].get("usage_key") is facts["event_2_to_original"]["usage_key"]
    request(network, control, "d31", ["s001"])
    network.send([messages.event(CAR, car=CAR, time=T1, speed=50.0)] * 3)
    assert sent_by(network)[control, "s001"].get("usage_key") == facts["event_2_to_copy"]["usage_key"]
    network.send_on()
    result = sent_by(network)
    assert {*facts["event_3"]["carries"]} <= {*network.threads["r41"].states}
    assert not result  # services send nothing


def test_control_messages() -> None:
    """FIG. 17: a copy request, two copy messages and two releases, with their fields."""
    facts = FACTS["messages"]
    asked = messages.copy_request("d31", ("s001", "s002"), 0)
    assert fields(asked) == facts["copy_request"]["fields"]
    copies = [messages.copy(standby, PARA1, "d31", 0) for standby in ("s001", "s002")]
    assert [fields(copy) for copy in copies] == [copy["fields"] for copy in facts["copies"]]
    releases = [messages.release(standby, "d31", 0) for standby in ("s001", "s002")]
    assert [fields(one) for one in releases] == [one["fields"] for one in facts["releases"]]
    envelope = {"id": asked.to, "message type": asked.kind, "stage": asked.stage, "eT": asked.time}
    assert [*envelope, "state name -> value (one or more)"] == [
        name.split(" (")[0] if "state" not in name else name for name in facts["envelope"]
    ]


def test_who_sends_control_messages() -> None:
    """A copy takes two hops, by way of the original; a release and an event for a copy take one. The original is not
    told of the release.
    """
    facts, network = FACTS["messages"], Network(example(FIG_17))
    request(network, "p21", "d31", ["s001", "s002"])
    asked = facts["copy_request"]
    assert [*network.last] == [(asked["from"], asked["to"]), *((copy["from"], copy["to"]) for copy in facts["copies"])]
    assert FACTS["races"]["messages"]["copy"] == "2 hops"
    network.last.clear()
    release(network, "p21", "d31", ["s001", "s002"])
    assert [*network.last] == [(one["from"], one["to"]) for one in facts["releases"]]


def test_triggers_of_plugins() -> None:
    """plg_1 and e_prc2 run for each event, plg_2 and plg_3 for control messages."""
    threads = example(FIG_14)
    for name, trigger in (("plg_1", "speed"), ("plg_2", "control"), ("plg_3", "control"), ("e_prc2", "speed")):
        for at in FACTS["plugins"][name]["in"]:
            assert threads[at].plugins[trigger].startswith(name)


def test_states_of_each_stage() -> None:
    """FIG. 27: the states that messages write at the threads of each stage."""
    network = Network(example(FIG_17))
    request(network, "p21", "d31", ["s001", "s002"])
    examples = {example["threads"][0]: example for example in FACTS["state_examples_fig27"] if "as" not in example}
    copy = {name: value for name, value in network.threads["s001"].states.items() if name in ("control", "parameter")}
    as_standby, as_copy = (row for row in FACTS["state_examples_fig27"] if "as" in row)
    assert {"control": copy["control"], "parameter": "para"} == as_standby["copy"]
    assert copy["parameter"] is PARA1
    asked = network.threads["d31"].states
    assert {"control": asked["control"], "oid_list": [*asked["oid_list"]]} == examples["d31"]["copy_request"]  # type: ignore[misc]
    network.send([messages.event(CAR, car=CAR, time=T1, speed=50.0)] * 6)
    network.run()
    network.send_on()
    network.run()
    event = {"car", "latitude", "longitude", "speed", "eventTime"}
    assert event == {*examples["d31"]["event"]} == {*as_copy["event"]} == {*examples["p21"]["states"]}
    assert event - {"car"} == {*examples["in11"]["states"]} <= {*network.threads[CAR].states}
    assert event <= {*network.threads["p21"].states}
    assert event <= {*network.threads["d31"].states}
    assert {*examples["r40"]["states"]} <= {*network.threads["r41"].states}
    release(network, "p21", "d31", ["s001"])
    assert network.threads["s001"].states["control"] == as_copy["release"]["control"]
    assert event <= {*network.threads["s001"].states}


def test_an_event_without_usage_key_is_an_error() -> None:
    """A standby does not guess whose parameters apply."""
    network = Network(example(FIG_17))
    network.send([Message("s001", Kind.EVENT, Stage.STANDBY, T1, (("speed", 50.0),))])
    message = "^s001 got an event without a usage key: a standby needs it to know whose parameters apply$"
    with pytest.raises(ValueError, match=message):
        network.run()


@pytest.mark.parametrize("speed", [-1.0, float("nan")])
def test_an_input_checks_events(speed: float) -> None:
    """An event whose speed is negative or not a number goes no further, and is counted."""
    network = Network(example(FIG_14))
    network.send([messages.event("in11", car="in11", time=T1, speed=speed)])
    assert not sent_by(network)
    assert network.threads["in11"].memory.refused == 1


# Set-up


def test_set_up() -> None:
    """FIG. 14: standby ids are shared out to the control threads' lists; nothing is used or distributed."""
    figure, threads = FACTS["setup_fig14"], example(FIG_14)
    assert [*standby_ids(4)] == figure["standby_ids"]
    for one in ("p21", "p22"):
        rows = destination_list(threads[one].memory)
        assert [{"id": row.id, "used": row.used} for row in rows] == figure[one]["destination_list"]
        in_use = threads[one].memory.in_use
        originals = [{"id": d, "distributed": d in in_use, "in_use": []} for d in threads[one].memory.originals]
        assert originals == figure["administration_table"]
    for name, plugin in FACTS["plugins"].items():
        at = {thread.id for thread in threads.values() if any(own.startswith(name) for own in thread.plugins.values())}
        assert at == {*plugin["in"]}, name
    assert {plugin for thread in threads.values() for plugin in thread.plugins.values()} == {*PLUGINS}
    assert [*threads][:4] == [*INPUTS]


def test_the_original_is_chosen_before_the_event_is_sent() -> None:
    """At a control thread, e_prc1 runs before plg_1: an event of T1 goes to d31, one of T2 to d32."""
    network = Network(example(FIG_14))
    assert [*network.threads["p21"].plugins.values()] == ["e_prc1", "plg_1"]
    for time, original in ((T1, "d31"), (T2, "d32")):
        network.send([messages.event("in11", car="in11", time=time, speed=50.0)])
        assert [to for sender, to in sent_by(network) if sender in ("p21", "p22")] == [original]
