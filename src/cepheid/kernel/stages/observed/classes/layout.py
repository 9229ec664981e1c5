"""The arrays that count starts by their class.

Starts are in one class if all that may still happen to them is the same: their partial matches are in the same states.
An event moves all starts of a class to another class at once, so it costs the number of classes, not of starts. Only
the window ends starts one by one. A start is found by the tree that it is in: each class with starts has one tree, and
the trees of two classes are joined when the classes are (Tarjan, Efficiency of a Good But Not Linear Set Union
Algorithm, JACM 1975).
"""

from __future__ import annotations

from typing import NamedTuple

from cepheid.compile.arrays import Ints, Records
from cepheid.kernel.arrays import integers

NO_CLASS = -1
NO_START = -1
FIRST_CLASS = 0
"""The class of what has not started: an event that moves it starts a partial match."""

CLASS = integers(
    "wake",  # truth bits that can move its starts
    "closed",  # 1: its starts have no open partial match
    "count",  # the number of its starts that are open
    "root",  # the root of their tree; NO_START if there is none
    "ended",  # the number of starts that an event has moved to it, if it is closed
    "expired",  # the number of its starts whose window has ended
    "left",  # the number of its starts that were open when their key closed
)
MOVE = integers(
    "source",  # a class; NO_CLASS: the place is free
    "word",  # the truth bits of an event
    "target",  # the class to which the event moves the starts of the class; NO_CLASS: it starts nothing
)
MOVING = integers("target", "count", "root")
START = integers(
    "time",  # microseconds since 1970 UTC
    "parent",  # the start above it in its tree, or itself
    "owner",  # for a root: its class, or NO_CLASS if that is closed
)

COUNTS = integers(
    "event",  # next event of the working set to process
    "visit",  # the visit under way
    "wake",  # all truth bits that can move a start of the key or start one
    "live",  # classes with open starts
    "first",  # the first start whose window has not ended
    "end",  # the number after that of the last start
    "source",  # a move that is missing
    "word",
)


class Classes(NamedTuple):
    """The classes, and the starts of the key that is open."""

    classes: Records
    """(any,) CLASS."""
    moves: Records
    """(a power of two,) MOVE, found by the hash of its class and word."""
    live: Ints
    """(classes,) the classes with open starts, the first Counts.live of them."""
    moving: Records
    """(classes,) MOVING: scratch."""
    starts: Records
    """(any,) START in their order, if the pattern has a window."""
