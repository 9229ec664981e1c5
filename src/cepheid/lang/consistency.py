"""When matches are emitted that a future event could still forbid."""

from __future__ import annotations

from enum import Enum

from cepheid.errors import PatternError, did_you_mean


class Consistency(Enum):
    """When matches are emitted, if events come out of order."""

    CONSERVATIVE = "conservative"
    """When time has reached the end of the match plus the delay; nothing is retracted."""
    EARLIEST = "earliest"
    """As soon as only a late event could forbid it; nothing is retracted."""
    REALTIME = "realtime"
    """At once; retracted when a negated event comes that forbids it."""


def consistency_named(name: str) -> Consistency:
    """The consistency of that name; PatternError, with the possible names, if there is none."""
    names = [consistency.value for consistency in Consistency]
    if name.lower() not in names:
        raise PatternError(f"no consistency is named {name!r}. {did_you_mean(name, names)}")
    return Consistency(name.lower())


class End(Enum):
    """One of the times of an event; one that is an instant has its start alone."""

    START = "start"
    END = "end"
