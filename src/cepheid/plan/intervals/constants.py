"""Numbers in a plan of intervals that compiled functions contain: the missing bound, and the guards of negations."""

from __future__ import annotations

from enum import IntEnum

FREE = 1 << 62
"""Stands for no bound: greater than the difference of any two times."""


class Guard(IntEnum):
    """The latest time of a negated event at which it may forbid a match."""

    FOREVER = 0
    BEFORE_RIGHT = 1
    """A microsecond before the right part starts."""
    RIGHT = 2
    """The start of the right part."""
    PARTS = 3
    """The end of both parts."""
    MATCH = 4
    """The end of the match."""
    WINDOW = 5
    """The start of the match plus the window."""
