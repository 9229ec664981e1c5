"""The definition of output under out-of-order arrival: what is emitted after each arrival, from the matches so far.

It needs only a `Life` for each match, so it serves every kind of pattern whose events are accepted one by one:
`matches` gives all matches of the events accepted so far.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from cepheid.lang.consistency import Consistency, End

M = TypeVar("M", bound=Hashable)

ALWAYS = float("-inf")
NEVER = float("inf")
"""Times before and after all others."""


class Life(NamedTuple):
    """What decides when a match may be emitted."""

    end: float
    """When it ends; it is final once time is the delay past it."""
    forbidden_until: float
    """No event whose key is greater can forbid it: ALWAYS where none can, NEVER where any may."""


class Arrival(NamedTuple):
    start: int
    end: int


class LogEntry(NamedTuple):
    """An entry of the log; `position` is that of the arrival, the number of all arrivals for the end of the stream."""

    when: str
    """switch, arrive or eos."""
    position: int
    sign: str
    """+, - or late."""
    match: object
    """The match, or the position of the event that is late."""


def told(
    arrivals: Sequence[Arrival],
    matches: Callable[[Sequence[int], float], Mapping[M, Life]],
    *,
    delay: float,
    lateness: End,
    consistency: Consistency,
    switches: Mapping[int, Consistency] | None = None,
) -> Iterator[LogEntry]:
    """What is emitted. `matches` is called with the positions of the accepted events and the clock, the latest of their
    ends, and at the end of the stream with NEVER.

    An event is late if its start (or its end, as `lateness` says) is more than `delay` before the clock. Before the
    arrival at a position of `switches` the consistency changes.
    """
    accepted: list[int] = []
    clock = ALWAYS
    now: Mapping[M, Life] = {}
    out: dict[M, None] = {}
    for position, arrival in enumerate(arrivals):
        if switches and position in switches:
            consistency = switches[position]
            if consistency is Consistency.REALTIME:
                yield from _inserted("switch", position, now, out)
        key = arrival.start if lateness is End.START else arrival.end
        if key + delay < clock:
            yield LogEntry("arrive", position, "late", position)
            continue
        accepted.append(position)
        clock = max(clock, arrival.end)
        now = matches(accepted, clock)
        for match in [match for match in out if match not in now]:
            del out[match]
            yield LogEntry("arrive", position, "-", match)
        certain = {m: life for m, life in now.items() if _may_be_emitted(life, clock - delay, consistency)}
        yield from _inserted("arrive", position, certain, out)
    now = matches(accepted, NEVER)
    for match in [match for match in out if match not in now]:
        del out[match]
        yield LogEntry("eos", len(arrivals), "-", match)
    yield from _inserted("eos", len(arrivals), now, out)


def _may_be_emitted(life: Life, horizon: float, consistency: Consistency) -> bool:
    """`horizon` is the least key that an event may still have."""
    match consistency:
        case Consistency.REALTIME:
            return True
        case Consistency.EARLIEST:
            return life.forbidden_until == ALWAYS or life.forbidden_until < horizon
        case Consistency.CONSERVATIVE:
            return max(life.end, life.forbidden_until) < horizon


def _inserted(when: str, position: int, known: Mapping[M, Life], out: dict[M, None]) -> Iterator[LogEntry]:
    for match in known:
        if match not in out:
            out[match] = None
            yield LogEntry(when, position, "+", match)
