"""Which conditions on single events held for some event of the input."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.plan.condition_bits import WORD


class HeldBits:
    """The bits of the masks so far: a bit is there if one of the events has it set. Several threads may add bits."""

    def __init__(self) -> None:
        self._words: dict[int, int] = {}
        self._lock = Lock()

    def add(self, masks: Sequence[npt.NDArray[Any]]) -> None:
        """Adds the words of the masks of more events."""
        added = [int(np.bitwise_or.reduce(word)) for word in masks]
        with self._lock:
            for number, word in enumerate(added):
                self._words[number] = self._words.get(number, 0) | word

    def __contains__(self, bit: int) -> bool:
        return bool(self._words.get(bit // WORD, 0) >> bit % WORD & 1)
