"""How many copies a load needs, and when their number changes.

Loads and capacities have the same unit, such as events a second; a copy has the capacity of the original. The two
thresholds are far apart, so that a load which varies about one of them does not make and release copies in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Shares of what the original and its copies can do together: copies are added over `grow`, and released under
    `shrink`.
    """

    grow: float = 0.8
    shrink: float = 0.4

    def __post_init__(self) -> None:
        if not 0 < self.shrink < self.grow <= 1:
            raise ValueError(
                f"grow={self.grow:g} and shrink={self.shrink:g} are not thresholds: 0 < shrink < grow <= 1 must hold"
            )


THRESHOLDS = Thresholds()


def wanted_copies(load: float, *, capacity: float, thresholds: Thresholds = THRESHOLDS) -> int:
    """The fewest copies with which neither they nor the original carry more than `grow` of their capacity."""
    return max(0, math.ceil(load / (thresholds.grow * capacity)) - 1)


def next_copies(load: float, copies: int, *, capacity: float, most: int, thresholds: Thresholds = THRESHOLDS) -> int:
    """How many copies there should be, where there are `copies` now: as many as now while the load is between the
    thresholds, else as many as it needs, up to `most`.
    """
    together = capacity * (copies + 1)
    wanted = min(wanted_copies(load, capacity=capacity, thresholds=thresholds), most)
    if load > thresholds.grow * together:
        return max(copies, wanted)
    if load < thresholds.shrink * together:
        return min(copies, wanted)
    return copies
