"""What is asked for of an interval pattern, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cepheid.hosts.request import Nulls
from cepheid.lang.interval import IntervalPattern
from cepheid.plan.limits import Limits


@dataclass(frozen=True)
class IntervalRequest:
    """One detection of an interval pattern."""

    pattern: IntervalPattern
    start: str
    end: str
    type: str
    key: tuple[str, ...] = ()
    kinds: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Types and what they are kinds of."""
    columns: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    time_zone: str | None = None
    nulls: Nulls = "error"
    frequencies: Mapping[str, float] | None = None


@dataclass(frozen=True)
class IntervalCounts:
    """What was seen so far, and what is open."""

    events: int = 0
    """All events that came."""
    null_keys: int = 0
    """Events without key."""
    null_times: int = 0
    """Events without start or end."""
    reversed: int = 0
    """Events that end before they start."""
    late: int = 0
    """Events that came later than the delay allows; they are not matched."""
    open_matches: int = 0
    """Matches that are not final."""
    held: int = 0
    """Events in memory."""
