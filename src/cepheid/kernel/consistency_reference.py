"""The definition of output for events that arrive out of order: what is emitted after each arrival.

It only needs a function `matches`, which returns all matches of the events accepted so far, and a `Life` for each
match. So it serves every kind of pattern whose events are accepted one by one.

The lateness time of an event is its start or its end, as `lateness` says. An event is late if its lateness time is more
than the delay before the clock. With a buffer it is late if it is before those of so many accepted events, and of one
more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from cepheid.lang.consistency import Consistency, End

M = TypeVar("M", bound=Hashable)

ALWAYS = float("-inf")
NEVER = float("inf")
"""Times before and after all others."""


class Life(NamedTuple):
    """What decides when a match may be emitted."""

    end: float
    """The end of the match. The conservative consistency waits until the clock is after the end plus the delay."""
    forbidden_until: float
    """The greatest lateness time of an event that could forbid the match: ALWAYS if none can, NEVER if any may."""


class Arrival(NamedTuple):
    start: int
    end: int


class LogEntry(NamedTuple):
    """One change that is emitted."""

    when: str
    """switch, arrive or eos (the end of the stream)."""
    position: int
    """The position of the arrival; at the end of the stream, the number of all arrivals."""
    sign: str
    """+, - or late."""
    match: object
    """The match, or the position of the event that is late."""


def emission_log(
    arrivals: Sequence[Arrival],
    matches: Callable[[Sequence[int], float], Mapping[M, Life]],
    *,
    delay: float,
    lateness: End,
    consistency: Consistency,
    switches: Mapping[int, Consistency] | None = None,
    buffer: int | None = None,
) -> Iterator[LogEntry]:
    """Yields what is emitted, in order.

    `matches` is called with the positions of the accepted events and the clock. The clock is the latest end of an
    accepted event; at the end of the stream it is NEVER. `switches` maps the position of an arrival to the consistency
    that holds from this arrival on; what it lets be emitted is emitted just before. With a `buffer`, the delay has no
    meaning.
    """
    accepted: list[int] = []
    clock = horizon = ALWAYS
    times: list[int] = []
    now: Mapping[M, Life] = {}
    out: dict[M, None] = {}
    for position, arrival in enumerate(arrivals):
        if switches and position in switches:
            consistency = switches[position]
            yield from inserted("switch", position, _emittable(now, horizon, consistency), out)
        lateness_time = arrival.start if lateness is End.START else arrival.end
        if lateness_time < horizon:
            yield LogEntry("arrive", position, "late", position)
            continue
        accepted.append(position)
        clock = max(clock, arrival.end)
        times = sorted([*times, lateness_time])
        horizon = clock - delay if buffer is None else times[-buffer - 1] if len(times) > buffer else ALWAYS
        now = matches(accepted, clock)
        for match in [match for match in out if match not in now]:
            del out[match]
            yield LogEntry("arrive", position, "-", match)
        yield from inserted("arrive", position, _emittable(now, horizon, consistency), out)
    now = matches(accepted, NEVER)
    for match in [match for match in out if match not in now]:
        del out[match]
        yield LogEntry("eos", len(arrivals), "-", match)
    yield from inserted("eos", len(arrivals), now, out)


def _emittable(matches: Mapping[M, Life], horizon: float, consistency: Consistency) -> list[M]:
    return [match for match, life in matches.items() if may_be_emitted(life, horizon, consistency)]


def may_be_emitted(life: Life, horizon: float, consistency: Consistency) -> bool:
    """Whether the consistency lets the match be emitted. `horizon` is the least lateness time that an event may still
    have.
    """
    match consistency:
        case Consistency.REALTIME:
            return True
        case Consistency.EARLIEST:
            return life.forbidden_until == ALWAYS or life.forbidden_until < horizon
        case Consistency.CONSERVATIVE:
            return max(life.end, life.forbidden_until) < horizon


def inserted(when: str, position: int, matches: Iterable[M], out: dict[M, None]) -> Iterator[LogEntry]:
    """The entries of those of the matches that are not out yet. They are out from then on."""
    for match in matches:
        if match not in out:
            out[match] = None
            yield LogEntry(when, position, "+", match)
