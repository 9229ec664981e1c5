"""Messages: key-value pairs in an envelope. What a message carries is written into the state table of its receiver.

Events and control messages are alike. The envelope does not name the sender, as in the document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import TypeAlias

from cepheid.distribution.parameters import Parameter

Value: TypeAlias = str | float | tuple[str, ...] | Parameter


class Stage(IntEnum):
    """The stages. Messages go to later stages only."""

    INPUT = 1
    CONTROL = 2
    ORIGINAL = 3
    STANDBY = 4
    SERVICE = 5


class Kind(StrEnum):
    """The message types."""

    EVENT = "event"
    CONTROL = "control"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Message:
    """A message to the thread `to` of `stage`. `time` is the event time in seconds."""

    to: str
    kind: Kind
    stage: Stage
    time: float
    states: tuple[tuple[str, Value], ...]

    def get(self, state: str) -> Value | None:
        """The value that the message carries for this state, or None."""
        return next((value for name, value in self.states if name == state), None)

    def text(self, state: str) -> str:
        """The value of a state that is a name."""
        value = self.get(state)
        assert isinstance(value, str), f"{state} of {self}"
        return value


def event(to: str, *, car: str, time: float, speed: float, latitude: float = 0.0, longitude: float = 0.0) -> Message:
    """What a car's sensor reports, for the car's input thread."""
    states = (("car", car), ("latitude", latitude), ("longitude", longitude), ("speed", speed), ("eventTime", time))
    return Message(to, Kind.EVENT, Stage.INPUT, time, states)


def forwarded(message: Message, to: str, stage: Stage, *, usage_key: str | None = None) -> Message:
    """The same event for another thread. One for a copy carries the usage key."""
    key = (("usage_key", usage_key),) if usage_key is not None else ()
    return replace(message, to=to, stage=stage, states=(*message.states, *key))


def copy_request(original: str, standbys: tuple[str, ...], time: float) -> Message:
    """Asks an original to send its parameters to these standbys."""
    states = (("control", "dist"), ("oid_list", standbys), ("usage_key", original))
    return Message(original, Kind.CONTROL, Stage.ORIGINAL, time, states)


def copy(standby: str, parameter: Parameter, usage_key: str, time: float) -> Message:
    """Makes a standby a copy of the original `usage_key`."""
    states = (("control", "set"), ("parameter", parameter), ("usage_key", usage_key))
    return Message(standby, Kind.CONTROL, Stage.STANDBY, time, states)


def release(standby: str, usage_key: str, time: float) -> Message:
    """Ends what one copy message began."""
    return Message(standby, Kind.CONTROL, Stage.STANDBY, time, (("control", "flush"), ("usage_key", usage_key)))


def result(service: str, of: str, *, total: float, count: int, time: float) -> Message:
    """A partial mean for the service object `of`: the sum and the number of speeds, which may be added to others."""
    states = (("object", of), ("sum", total), ("count", count), ("eventTime", time))
    return Message(service, Kind.RESULT, Stage.SERVICE, time, states)
