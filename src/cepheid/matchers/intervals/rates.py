"""How often events of each variable come, as counted, for the order of joins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.compile.intervals.compiled import CompiledIntervals
from cepheid.matchers.working_set import Mask

_FIRST, _MOST = 1 << 8, 1 << 16
"""The events until the first look, and between looks later on. In between, each look comes after four times as many."""
_SAME = 0.1
"""Rates are the same as before if none differs by more than this share: to look for another order takes 1.4 ms."""


class Rates:
    """Counts events. Half of what was counted before a look is forgotten then, so that rates may change."""

    def __init__(self, pattern: CompiledIntervals) -> None:
        self._bits = pattern.plan.variable_bits[: pattern.plan.positives]
        self._counts = np.zeros(len(self._bits))
        self._unseen, self._until = 0, _FIRST
        self._last = np.zeros(len(self._bits))

    def add(self, masks: Mask) -> None:
        """Counts the events with these masks."""
        self._counts += rates_in(self._bits, masks)
        self._unseen += len(masks)

    def looked_at(self) -> list[float] | None:
        """The rates, one per event of a match; None if few events have come since the last look, or the rates are the
        same as those returned before.
        """
        if self._unseen < self._until:
            return None
        rates = self._counts + 1
        self._counts /= 2
        self._unseen, self._until = 0, min(4 * self._until, _MOST)
        if (np.abs(rates - self._last) <= _SAME * self._last).all():
            return None
        self._last = rates
        found: list[float] = rates.tolist()
        return found


def rates_in(bits: Sequence[int], masks: Mask) -> list[float]:
    """The number of events that have each of these bits."""
    return [float(np.count_nonzero(masks >> bit & 1)) for bit in bits]
