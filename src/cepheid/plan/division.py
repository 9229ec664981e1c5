"""How the events of one key are divided by time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeSlices:
    """A key's events can be divided into slices of time, which are matched each by itself. A slice also reads events
    of its neighbours.
    """

    before: int
    """Microseconds before an event in which others decide whether it may start a partial match."""
    window: int
    """Microseconds after which a partial match ends."""
    waits: bool = False
    """Whether a match waits for partial matches that started earlier: it has a skip strategy."""
    settles: bool = True
    """Whether what is open at a time follows from the events of the last `window` and of `before`. Otherwise, it also
    depends on which earlier partial matches were dropped, so that a slice needs to know what the slice before left
    open.
    """
    by_start: bool = False
    """Whether each match belongs to the slice of its first event, on every host: a slice reads on for the window.
    Otherwise hosts may choose the slice in which it becomes certain, which reads the window before.
    """
    overlaps: bool = False
    """Whether a slice needs events that start any time before it and end in it or later."""
