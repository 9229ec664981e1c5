"""Numbers in a plan of occurrences that compiled functions contain: kinds of operators, and the unlimited window."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What an operator does."""

    LEAF = 0
    """The events whose mask has bit `number`."""
    BOTH = 1
    EITHER = 2
    THEN = 3
    WITHOUT = 4
    """If there is a script, only right occurrences for which it is true count."""
    WITHIN = 5
    """Occurrences of at most `number` microseconds."""
    DELAYED = 6
    """The instant `number` microseconds after the end."""
    BOUND = 7
    """Bound to variable `number`."""
    FILTERED = 8


UNBOUNDED = 1 << 62
"""Microseconds: longer than any window."""
