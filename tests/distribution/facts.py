"""The facts about the scheme, from `distribution.json`, and short ways to run it and to read its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from cepheid.distribution import control, messages
from cepheid.distribution.control import administration_table, destination_list
from cepheid.distribution.example import FIG_17, INPUTS, example
from cepheid.distribution.lists import ANY
from cepheid.distribution.messages import Message, Stage
from cepheid.distribution.network import Network
from cepheid.distribution.parameters import Parameter
from cepheid.distribution.standbys import parameter_table

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "distribution.json").read_text("utf-8"))

T1, T2 = 5 * 60.0, 35 * 60.0
"""An event time of each timeframe."""

CAR = next(one for one in INPUTS if example(FIG_17)[one].memory.control == "p21")
"""A car whose events go through p21."""


def request(network: Network, at: str, original: str, standbys: Sequence[str]) -> None:
    """A control thread requests copies, and all messages arrive."""
    network.act(at, lambda memory: control.request(memory, original, tuple(standbys), 0))
    network.run()


def release(network: Network, at: str, original: str, standbys: Sequence[str]) -> None:
    """A control thread releases copies, and all messages arrive."""
    network.act(at, lambda memory: control.release(memory, original, tuple(standbys), 0))
    network.run()


def administration(network: Network, at: str) -> list[dict[str, Any]]:
    """The administration table, as the facts write it."""
    rows = administration_table(network.threads[at].memory)
    return [{"id": row.id, "distributed": row.distributed, "in_use": [*row.in_use]} for row in rows]


def destinations(network: Network, at: str, *, share: bool = False) -> list[dict[str, Any]]:
    """The destination list, as the facts write it."""
    rows = destination_list(network.threads[at].memory, ANY)
    return [{"id": row.id, "used": row.used} | ({"share": row.share} if share else {}) for row in rows]


def standbys(network: Network, names: Iterable[str]) -> dict[str, Any]:
    """The parameter tables of standbys, as the facts write them."""
    return {
        name: {
            key: {"parameter": entry.parameter, "count": entry.references}
            for key, entry in parameter_table(network.threads[name].memory).items()
        }
        for name in names
    }


def event(to: str, time: float, speed: float = 50.0) -> Message:
    """An event as a control thread gets it."""
    sent = messages.event("in11", car="in11", time=time, speed=speed)
    return messages.forwarded(sent, to, Stage.CONTROL)


def sent_to(network: Network, at: str, time: float, count: int) -> dict[str, int]:
    """Sends a control thread so many events, and counts the events that each original or standby then gets."""
    network.arrived.clear()
    network.send(event(at, time) for _ in range(count))
    network.run()
    return {to: number for to, number in sorted(network.arrived.items()) if to != at}


def parts(network: Network, at: str, original: str) -> Mapping[str, int]:
    """By which weights a control thread divides the events of an original."""
    dealing = network.threads[at].memory.dealing
    return dealing[original].parts if original in dealing else {original: 1}


def as_fractions(written: Mapping[str, str]) -> dict[str, Fraction]:
    return {to: Fraction(number) for to, number in written.items()}


def fields(message: Message) -> dict[str, Any]:
    """The id and the states of a message, as the facts write them: a parameter by its name."""
    values = {name: value.name if isinstance(value, Parameter) else value for name, value in message.states}
    return {"id": message.to} | {
        name: [*value] if isinstance(value, tuple) else value for name, value in values.items()
    }
