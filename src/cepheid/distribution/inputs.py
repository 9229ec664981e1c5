"""An input thread: one for each car. It checks events and passes them to the control thread of its car."""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

from cepheid.distribution import messages
from cepheid.distribution.messages import Message, Stage
from cepheid.distribution.threads import Handled, Thread


@dataclass(frozen=True, slots=True)
class Input:
    """The memory of an input thread. It knows no original."""

    control: str
    """The control thread of this car."""
    refused: int = 0
    """How many events had no speed, or a negative one."""


def check(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
    """Passes an event on if it has a speed."""
    own: Input = thread.memory
    speed = message.get("speed")
    if not isinstance(speed, float | int) or not speed >= 0:
        return replace(thread, memory=replace(own, refused=own.refused + 1)), ()
    return thread, (messages.forwarded(message, own.control, Stage.CONTROL),)


def hashed(thread: str) -> int:
    """The hash of a thread's id, the same in every process."""
    return crc32(thread.encode())


def task_slot(thread: str, *, machines: int = 4, cores: int = 40) -> int:
    """The task slot in which a thread runs: there is one for each core. Its stage is its sub-task there."""
    return hashed(thread) % (machines * cores)
