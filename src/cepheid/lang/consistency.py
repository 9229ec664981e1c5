"""When matches are emitted that a future event could still forbid."""

from __future__ import annotations

from enum import Enum

from cepheid.errors import PatternError, did_you_mean
from cepheid.lang.arguments import brief


class Consistency(Enum):
    """When matches are emitted if events arrive out of order."""

    CONSERVATIVE = "conservative"
    """Emit when time has reached the end of the match plus the delay. Nothing is retracted."""
    EARLIEST = "earliest"
    """Emit as soon as only a late event could still forbid the match. Nothing is retracted."""
    REALTIME = "realtime"
    """Emit at once. Retract the match when a negated event arrives that forbids it."""


def given_consistency(given: object) -> Consistency:
    """The given consistency, or the one with this name. PatternError lists the possible names if there is none."""
    if isinstance(given, Consistency):
        return given
    names = [consistency.value for consistency in Consistency]
    if not isinstance(given, str):
        raise PatternError(f"a consistency is one of {', '.join(map(repr, names))}, got {brief(given)}")
    if given.lower() not in names:
        raise PatternError(f"no consistency is named {given!r}. {did_you_mean(given, names)}")
    return Consistency(given.lower())


class End(Enum):
    """One of the two times of an event."""

    START = "start"
    END = "end"
