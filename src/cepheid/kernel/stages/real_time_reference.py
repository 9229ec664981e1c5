"""The definition of output in real time for patterns of stages, in plain Python.

`consistency_reference.emission_log` defines what is emitted after each arrival, from all matches of the events accepted
so far. This module defines which matches these are. They are those that the definition of matching (`reference`) finds
in the events of each key, in the order of time and sequence, when time has passed to the clock. The clock is the latest
time of an accepted event of any key.

So what depends on time is decided as if no event up to the clock were missing. For example, a partial match whose
deadline is not after the clock has timed out, and a `not_followed_by` at the end holds. A `longest` loop has ended, and
a match that waited for an earlier partial match is emitted. All of this is retracted if an event comes that changes the
result. What only the end of the input decides is emitted at the end.

A result becomes certain at a deadline or an event. It is final once only late events can come before that time. Then
the conservative consistency emits it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cepheid.kernel.consistency_reference import ALWAYS, NEVER, Life
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.reference import ReferenceMatcher

Taken: TypeAlias = tuple[tuple[int, int], ...]
"""The stage of each event, and the position at which the event arrived."""


class Found(NamedTuple):
    """A match, or a timeout."""

    key: Hashable
    taken: Taken
    deadline: int | None = None
    """The deadline of a timeout; None for a match."""


class Arrived(NamedTuple):
    """An event of a key; `sequence` orders events of the same time."""

    key: Hashable
    sequence: int
    event: Event


def matches_so_far(
    arrived: Sequence[Arrived], new: Callable[[], ReferenceMatcher]
) -> Callable[[Sequence[int], float], Mapping[Found, Life]]:
    """The function `matches` for `emission_log`, which calls it with the positions of accepted events and the clock.
    `new` makes the reference matcher of a key.
    """

    def matches(accepted: Sequence[int], clock: float) -> Mapping[Found, Life]:
        found: dict[Found, Life] = {}
        for key in dict.fromkeys(arrived[position].key for position in accepted):
            own = [position for position in accepted if arrived[position].key == key]
            own.sort(key=lambda position: (arrived[position].event.time, arrived[position].sequence))
            found |= dict(_found_in(key, own, arrived, new(), clock))
        return found

    return matches


def _found_in(
    key: Hashable, order: Sequence[int], arrived: Sequence[Arrived], matcher: ReferenceMatcher, clock: float
) -> Iterator[tuple[Found, Life]]:
    def at_arrival(taken: Taken) -> Taken:
        return tuple((stage, order[place]) for stage, place in taken)

    matches = []
    for place, position in enumerate(order):
        _, time, mask, values = vars(arrived[position].event).values()
        matches += matcher.process(Event(place, time, mask, values))
    matches += matcher.finish() if clock == NEVER else matcher.advance_time(int(clock))
    for match in matches:
        certain = NEVER if match.detected_at is None else match.detected_at
        yield Found(key, at_arrival(match.taken)), Life(certain, ALWAYS)
    for timeout in matcher.timeouts:
        yield Found(key, at_arrival(timeout.taken), timeout.deadline), Life(timeout.deadline, ALWAYS)
