"""Joins the states of several interval kernels of one pattern, which have different keys, into one state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.kernel.intervals.state import STORED_FIELDS
from cepheid.kernel.parts import StatePart, firsts


def joined_kernels(parts: Sequence[StatePart]) -> dict[str, npt.NDArray[Any]]:
    """One state with what all of these states (`state.kernel_state`) have. Their clocks must be at the same time; late
    events and dropped matches are added up.
    """
    first_events = firsts(part.events for part in parts)
    matches = [part.arrays["matches"] + first for part, first in zip(parts, first_events, strict=True)]
    clock, *counts = np.stack([part.arrays["cursor"] for part in parts]).T
    assert (clock == clock[0]).all(), clock
    return {
        **{name: np.concatenate([part.arrays[name] for part in parts]) for name in STORED_FIELDS},
        "matches": np.concatenate(matches),
        "cursor": np.array([clock[0], *np.sum(counts, axis=1)]),
    }
