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
        """In the block, earlier events come again, under these limits in place of the plans'. Their rows were emitted
        before, so none are made. The limits do not affect whether partial matches are in sets.
        """
        self._replays = True
        self.kernel.limit(limits)
        try:
            yield
        finally:
            self._replays = False
            self.kernel.limit(self._limits)
