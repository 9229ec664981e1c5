"""The arrays that all kernels take: events, and visits to keys."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints, Records

Int32s: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint64]
T = TypeVar("T", bound=np.generic)

NO_TIME = np.iinfo(np.int64).min
"""A time before all others: as `until` it lets no time pass. As detected_at it means that only the end of the input
made the match certain.
"""

FOREVER = np.iinfo(np.int64).max
"""A time after all others: it is reached when the input is complete."""

_SHORT = 1 << 31
"""Up to so many rows have numbers of 32 bits."""


def integers(*names: str) -> np.dtype[np.void]:
    """Records of 64-bit integers with these names."""
    return np.dtype([(name, np.int64) for name in names])


class Events(NamedTuple):
    """The working set; n events, c lifted columns."""

    time: Ints
    """(n,) microseconds since 1970 UTC."""
    mask: Ints
    """(n,) lifted conditions, bit i for Plan.bits[i]."""
    values: Ints
    """(c, n) lifted columns as 64-bit words: doubles as their bits, strings as codes within the working set. The codes
    are in byte order if the pattern compares the order of the strings.
    """
    missing: Flags
    """(c, n) whether a lifted column is NULL."""


class Visits(NamedTuple):
    """The keys that a call of the kernel visits, one after the other; v visits."""

    key: Int32s
    """(v,) number of the key, from 0. The state of the key is stored under this number between visits."""
    end: Ints
    """(v,) position in the working set after the key's last event. Its events begin where those of the previous visit
    end. Those of the first visit begin after the held events.
    """
    until: Ints
    """(v,) microseconds: the time to which the key advances after its events, unless its last event has reached it."""
    closes: Flags
    """(v,) whether the key gets no more events. If `until` is FOREVER, its input is complete and everything open ends.
    Otherwise everything open is dropped.
    """


class Stack(NamedTuple):
    """Scratch for scripts. An instruction pushes at most one value."""

    values: Ints
    """(d,) 64-bit words; d is the length of the longest script, and at least 1."""
    null: Flags


def new_stack(scripts: Records) -> Stack:
    depth = int((scripts["end"] - scripts["start"]).max(initial=1))
    return Stack(np.zeros(depth, np.int64), np.zeros(depth, np.bool_))


def distinct(positions: npt.NDArray[np.integer[Any]], length: int) -> Int32s:
    """The distinct positions, ascending; all are less than `length`."""
    if len(positions) < length // 64:  # few of many, as in a call of a live matcher
        return np.unique(positions).astype(np.int32)
    taken = np.zeros(length, np.bool_)  # np.unique would hash or sort: 250 ms for 300,000 positions, this takes 1
    taken[positions] = True
    return np.flatnonzero(taken).astype(np.int32)


def grown(array: npt.NDArray[T], capacity: int, fill: int = 0) -> npt.NDArray[T]:
    """A copy with room for `capacity` rows; new rows are `fill`."""
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill:
        larger[len(array) :] = fill
    return larger


def ranges(starts: Ints, ends: Ints) -> Ints:
    """The numbers from each start up to, but not including, its end, one range after the other."""
    lengths = ends - starts
    numbers: Ints = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return numbers


def row_type(length: int) -> type[np.int32 | np.int64]:
    """The type of the numbers of so many rows."""
    return np.int32 if length <= _SHORT else np.int64
