"""An original: its parameters, what its event plug-in gathered, and the plug-in that sends copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cepheid.distribution import messages
from cepheid.distribution.aggregates import Gathered, gather, results
from cepheid.distribution.messages import Message
from cepheid.distribution.parameters import Parameter
from cepheid.distribution.threads import Handled, Thread


@dataclass(frozen=True, slots=True)
class Original:
    """The memory of an original. Its parameters do not change while copies exist."""

    parameter: Parameter
    services: Mapping[str, str]
    """The thread of each service object."""
    gathered: Gathered = field(default_factory=dict)


def send_copies(thread: Thread, message: Message, now: int) -> Handled:
    """plg_2: sends the own parameters to each standby of the request."""
    original: Original = thread.memory
    standbys, usage_key = message.get("oid_list"), message.text("usage_key")
    assert isinstance(standbys, tuple), message
    return thread, tuple(messages.copy(standby, original.parameter, usage_key, now) for standby in standbys)


def measure(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
    """e_prc2 at an original."""
    original: Original = thread.memory
    return replace(
        thread, memory=replace(original, gathered=gather(original.gathered, original.parameter, message))
    ), ()


def sent_on(thread: Thread, now: int) -> Handled:
    """What an original does each minute: it sends what it has gathered."""
    original: Original = thread.memory
    return replace(thread, memory=replace(original, gathered={})), results(original.gathered, original.services, now)
