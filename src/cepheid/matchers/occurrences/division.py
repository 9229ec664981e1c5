"""Joins the states of several detectors of one pattern of occurrences, which have different keys, into one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.kernel.occurrences.joined import joined_kernels
from cepheid.kernel.parts import Joined, StatePart, firsts
from cepheid.matchers.occurrences.session_state import joined_sessions

DROPPED = "dropped"
SESSIONS = "sessions"
"""The array with the numbers that were dropped because of limits, and the prefix of the arrays of sessions. The prefix
of the arrays of a kernel is its number.
"""


def joined_state(parts: Sequence[StatePart]) -> Joined:
    """One state with what all of these states of `OccurrenceKernels` have."""
    first_keys = firsts(map(_keys, parts))
    arrays: dict[str, npt.NDArray[Any]] = {DROPPED: np.sum([part.arrays[DROPPED] for part in parts], axis=0)}
    for prefix in dict.fromkeys(name.split(".")[0] for name in parts[0].arrays if name != DROPPED):
        own = [StatePart(with_prefix(part.arrays, prefix), part.events) for part in parts]
        join = joined_sessions if prefix == SESSIONS else joined_kernels
        arrays |= {f"{prefix}.{name}": array for name, array in join(own, first_keys).items()}
    return Joined(arrays, first_keys)


def with_prefix(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays that have the prefix before a point, named by what is after it."""
    begin = f"{prefix}."
    return {name.removeprefix(begin): array for name, array in arrays.items() if name.startswith(begin)}


def _keys(part: StatePart) -> int:
    """The numbers of the part's keys are below this one."""
    numbers = [array for name, array in part.arrays.items() if name.endswith(".keys")]
    if (latest := part.arrays.get(f"{SESSIONS}.latest")) is not None:  # each session is in it
        numbers.append(latest[:, 0])
    return int(np.concatenate(numbers).max(initial=-1)) + 1
