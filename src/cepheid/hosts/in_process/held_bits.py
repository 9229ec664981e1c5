"""Which conditions on single events held for some event of the input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cepheid.plan.condition_bits import WORD


class HeldBits:
    """The bits of the masks so far: a bit is there if one of the events has it set."""

    def __init__(self) -> None:
        self._words: dict[int, int] = {}

    def add(self, masks: Sequence[npt.NDArray[np.uint64]]) -> None:
        """Adds the words of the masks of more events."""
        for number, word in enumerate(masks):
            self._words[number] = self._words.get(number, 0) | int(np.bitwise_or.reduce(word))

    def __contains__(self, bit: int) -> bool:
        return bool(self._words.get(bit // WORD, 0) >> bit % WORD & 1)
