"""A service thread: it adds the partial means of its service objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cepheid.distribution.aggregates import NONE, Partial
from cepheid.distribution.messages import Message
from cepheid.distribution.threads import Handled, Thread


@dataclass(frozen=True, slots=True)
class Service:
    """The memory of a service thread: for each of its service objects all that was added so far."""

    totals: Mapping[str, Partial] = field(default_factory=dict)


def add(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
    """Adds a sum and a count."""
    service: Service = thread.memory
    of, total, count = message.text("object"), message.get("sum"), message.get("count")
    assert isinstance(total, float | int), message
    assert isinstance(count, int), message
    after = {**service.totals, of: service.totals.get(of, NONE).plus(total, count)}
    return replace(thread, memory=Service(after)), ()
