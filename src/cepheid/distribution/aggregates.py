"""What an event plug-in gathers: for each service object the sum and the number of speeds.

Partial means are sums and counts, which the service adds. A mean of means would be wrong: of 30, 50, 70 here and 90
there the mean is 60, not 70.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from cepheid.distribution import messages
from cepheid.distribution.messages import Message
from cepheid.distribution.parameters import Parameter


class Partial(NamedTuple):
    """A part of a mean."""

    total: float
    number: int

    def plus(self, total: float, number: int) -> Partial:
        return Partial(self.total + total, self.number + number)

    @property
    def mean(self) -> float:
        return self.total / self.number


NONE = Partial(0.0, 0)

Gathered: TypeAlias = Mapping[str, Partial]
"""For each service object what was gathered since it was last sent."""


def gather(gathered: Gathered, parameter: Parameter, event: Message) -> dict[str, Partial]:
    """e_prc2: adds the speed of an event to the service object of its event time."""
    speed = event.get("speed")
    assert isinstance(speed, float | int), event
    of = parameter.id_at(event.time)
    return {**gathered, of: gathered.get(of, NONE).plus(speed, 1)}


def results(gathered: Gathered, services: Mapping[str, str], time: float) -> tuple[Message, ...]:
    """The messages that carry what was gathered to the services. After them nothing is gathered."""
    return tuple(
        messages.result(services[of], of, total=partial.total, count=partial.number, time=time)
        for of, partial in gathered.items()
    )
