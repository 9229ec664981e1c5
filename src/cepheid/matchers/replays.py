"""What detectors of patterns of stages and of occurrences do when earlier events come again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cepheid.plan.limits import Limits


class LimitedKernel(Protocol):
    """A kernel whose limits may change."""

    def limit(self, limits: Limits) -> None:
        """Applies these limits from now on."""


class Replays:
    """The part of a Detector that is about events that come again."""

    kernel: LimitedKernel

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._replays = False
        """Whether the events came before: then no rows are made."""

    @contextmanager
    def replaying(self, limits: Limits) -> Iterator[None]:
        """Within the block, `step` gets events that were processed before, and these limits replace the plans'. No rows
        are made, because they were emitted before. The limits do not change whether partial matches are in sets.
        """
        self._replays = True
        self.kernel.limit(limits)
        try:
            yield
        finally:
            self._replays = False
            self.kernel.limit(self._limits)
