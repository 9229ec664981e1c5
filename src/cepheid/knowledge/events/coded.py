"""The terms and the facts of many events as arrays, without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.integer]

NOTHING = -1
"""The code of no term."""


class Coded(NamedTuple):
    """The terms of events."""

    codes: npt.NDArray[np.int32]
    """For each the place of its text, or NOTHING."""
    texts: Sequence[str]
    """The texts of terms (`terms.text_of`), mostly each once."""

    def take(self, places: Numbers) -> Coded:
        """The terms at these places."""
        return Coded(self.codes[places], self.texts)


class FactColumn(NamedTuple):
    """Facts of events. A row with NOTHING in one of its parts is not a fact."""

    subjects: Coded
    predicates: Coded
    objects: Coded
    events: Numbers | None = None
    """The number of each fact's event, ascending; None: each event has one."""


def same(text: str, count: int) -> Coded:
    """One term for all events."""
    return Coded(np.zeros(count, np.int32), (text,))
