"""When matches are emitted that a future event could still forbid."""

from __future__ import annotations

from enum import Enum

from cepheid.errors import PatternError, did_you_mean


class Consistency(Enum):
    """When matches are emitted if events arrive out of order."""

    CONSERVATIVE = "conservative"
    """Emit when time has reached the end of the match plus the delay. Nothing is retracted."""
    EARLIEST = "earliest"
    """Emit as soon as only a late event could still forbid the match. Nothing is retracted."""
    REALTIME = "realtime"
    """Emit at once. Retract the match when a negated event arrives that forbids it."""


def consistency_named(name: str) -> Consistency:
    """The consistency with this name; PatternError, which lists the possible names, if there is none."""
    names = [consistency.value for consistency in Consistency]
    if name.lower() not in names:
        raise PatternError(f"no consistency is named {name!r}. {did_you_mean(name, names)}")
    return Consistency(name.lower())


class End(Enum):
    """One of the two times of an event."""

    START = "start"
    END = "end"
