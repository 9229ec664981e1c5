"""How the events of one key are divided by time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeSlices:
    """A worker finds the matches that start in its slice of time. It reads these microseconds more: `before` the slice,
    as they decide whether an event may start a match, and `after` its last start, as matches go on there.
    """

    before: int
    after: int
