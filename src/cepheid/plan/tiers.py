"""Tiers: the parts in which a host may find a pattern without key, each by values that its events have in common.

The first tier takes the events of the first stages, which all have the same value of a column. Each further tier
continues what was found with events of the next stages, which have the same value as an event that was taken before.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Side:
    """One side of an equality: a lifted column, cast to the type in which both sides are compared."""

    column: int
    """The number of the column in `Plan.values`."""
    type: pa.DataType


@dataclass(frozen=True)
class Link:
    """An equality of the events of a tier with an event that was taken before."""

    stage: int
    """The number of the stage of the event taken before."""
    earlier: Side
    """Its side."""
    value: Side
    """The side of each event of the tier. In the first tier this is also the side of the first stage's events."""


@dataclass(frozen=True)
class Tier:
    """Consecutive stages whose events have the same values."""

    first: int
    """The number of the first stage."""
    last: int
    links: tuple[Link, ...]
    """NULL equals nothing. None, if this is a first tier of one stage, whose events need not be together. Only events
    of equal time and sequence are then together, as they are numbered in the first tier.
    """
