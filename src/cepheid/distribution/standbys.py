"""A standby: parameters under usage keys, how often each is needed, and events that wait for parameters.

A standby may be a copy of several originals at once. Several control threads may have requested the same copy: a count
says how many. It is signed, because a release may overtake the copy message, which makes two hops. Events that overtake
it wait. At zero, parameters are dropped; events that still wait are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from cepheid.allocation.references import counted
from cepheid.distribution.aggregates import Gathered, gather, results
from cepheid.distribution.messages import Message
from cepheid.distribution.parameters import Parameter
from cepheid.distribution.threads import Handled, Thread

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Standby:
    """The memory of a standby; each table is by usage key."""

    services: Mapping[str, str]
    """The thread of each service object."""
    counts: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    waiting: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    gathered: Mapping[str, Gathered] = field(default_factory=dict)


class Entry(NamedTuple):
    """A row of the parameter table."""

    parameter: str | None
    references: int


def parameter_table(standby: Standby) -> dict[str, Entry]:
    """The parameters and the count under each usage key."""
    return {
        key: Entry(standby.parameters[key].name if key in standby.parameters else None, count)
        for key, count in standby.counts.items()
    }


def copy_or_release(thread: Thread, message: Message, now: int) -> Handled:
    """plg_3: `set` stores parameters under the usage key, `flush` takes one request back."""
    key, parameter = message.text("usage_key"), message.get("parameter")
    if message.text("control") == "set":
        assert isinstance(parameter, Parameter), message
        standby, sent = _set(thread.memory, key, parameter, now)
    else:
        standby, sent = _flush(thread.memory, key, now)
    return replace(thread, memory=standby), sent


def measure(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
    """e_prc2 at a copy: with the parameters of the usage key, once they are there.

    Raises:
        ValueError: the event has no usage key.
    """
    standby: Standby = thread.memory
    if message.get("usage_key") is None:
        raise ValueError(
            f"{thread.id} got an event without a usage key: a standby needs it to know whose parameters apply"
        )
    key = message.text("usage_key")
    if key in standby.parameters:
        return replace(thread, memory=_measured(standby, key, (message,))), ()
    waiting = (*standby.waiting.get(key, ()), message)
    return replace(thread, memory=replace(standby, waiting={**standby.waiting, key: waiting})), ()


def sent_on(thread: Thread, now: int) -> Handled:
    """What a standby does each minute: it sends what it has gathered."""
    standby: Standby = thread.memory
    sent = [message for gathered in standby.gathered.values() for message in results(gathered, standby.services, now)]
    return replace(thread, memory=replace(standby, gathered={})), tuple(sent)


def _set(standby: Standby, key: str, parameter: Parameter, now: int) -> tuple[Standby, tuple[Message, ...]]:
    with_parameter = replace(
        standby,
        counts=counted(standby.counts, key, 1),
        parameters={**standby.parameters, key: parameter},
        waiting=_without(standby.waiting, key),
    )
    measured = _measured(with_parameter, key, standby.waiting.get(key, ()))
    return (measured, ()) if key in measured.counts else _dropped(measured, key, now)


def _flush(standby: Standby, key: str, now: int) -> tuple[Standby, tuple[Message, ...]]:
    after = replace(standby, counts=counted(standby.counts, key, -1))
    return _forwarded(after, key, now) if key in after.counts else _dropped(after, key, now)


def _measured(standby: Standby, key: str, events: tuple[Message, ...]) -> Standby:
    gathered = standby.gathered.get(key, {})
    for event in events:
        gathered = gather(gathered, standby.parameters[key], event)
    return replace(standby, gathered={**standby.gathered, key: gathered}) if gathered else standby


def _dropped(standby: Standby, key: str, now: int) -> tuple[Standby, tuple[Message, ...]]:
    forwarded, sent = _forwarded(standby, key, now)
    return replace(forwarded, parameters=_without(standby.parameters, key)), sent


def _forwarded(standby: Standby, key: str, now: int) -> tuple[Standby, tuple[Message, ...]]:
    sent = results(standby.gathered.get(key, {}), standby.services, now)
    return replace(standby, gathered=_without(standby.gathered, key)), sent


def _without(table: Mapping[str, V], key: str) -> dict[str, V]:
    return {other: value for other, value in table.items() if other != key}
