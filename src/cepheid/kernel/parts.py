"""Several states of kernels of one pattern, with different keys, that become one state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

State: TypeAlias = Mapping[str, npt.NDArray[Any]]


class StatePart(NamedTuple):
    """The state of one kernel."""

    arrays: State
    events: int
    """The number of events that it holds."""


class Joined(NamedTuple):
    """One state with what all parts have. The events of a part follow those of the parts before it."""

    arrays: State
    first_keys: list[int]
    """For each part, what is added to the numbers of its keys."""


def firsts(lengths: Iterable[int]) -> list[int]:
    """For each part, where its elements begin after those of the parts before it."""
    return [0, *accumulate(lengths)][:-1]
