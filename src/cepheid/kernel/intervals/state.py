"""Converts the state of an interval kernel to plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError
from cepheid.kernel.intervals.kernel import IntervalKernel
from cepheid.kernel.intervals.layout import IntervalEvents

STORED_FIELDS = ("start", "end", "until", "out")
"""The fields of OPEN that a snapshot stores for an open match."""


def kernel_state(kernel: IntervalKernel) -> Mapping[str, npt.NDArray[Any]]:
    """The state besides the events. The kernel must have only the events that it needs."""
    matches, cursor = int(kernel.cursor.matches), kernel.cursor
    return {
        **{name: np.array(kernel.open.rows[name][:matches]) for name in STORED_FIELDS},
        "matches": kernel.open.events[:matches].copy(),
        "cursor": np.array([cursor.clock, cursor.late, cursor.dropped]),
        **({"recent": _recent(kernel)} if kernel.pattern.tables.settings["buffer"][0] >= 0 else {}),
    }


def _recent(kernel: IntervalKernel) -> npt.NDArray[np.int64]:
    """The horizon, then the greatest lateness times, which ascend."""
    return np.array([kernel.cursor.horizon, *np.sort(kernel.stores.recent[: kernel.cursor.recent])], np.int64)


def restore_kernel(
    kernel: IntervalKernel, arrays: Mapping[str, npt.NDArray[Any]], events: IntervalEvents, count: int
) -> None:
    """Restores the state of another kernel, with its `count` events, into this new kernel.

    Raises:
        SnapshotError: the arrays are not those of such a kernel.
    """
    matches, cursor = arrays["matches"], arrays["cursor"]
    found = len(matches)
    plain = all(array.dtype.kind == "i" for array in (matches, cursor, *(arrays[name] for name in STORED_FIELDS)))
    shapes = matches.shape == (found, len(kernel.pattern.tables.order)) and cursor.shape == (3,)
    if not (plain and shapes and all(arrays[name].shape == (found,) for name in STORED_FIELDS)):
        raise SnapshotError("the snapshot's arrays are not those of this pattern: was it written by another version?")
    if ((matches < 0) | (matches >= count)).any():
        raise SnapshotError("the snapshot's matches refer to events that it does not contain")
    kernel.cursor.clock, kernel.cursor.late, kernel.cursor.dropped = cursor.tolist()
    if len(kernel.stores.recent) or "recent" in arrays:
        _restore_recent(kernel, arrays.get("recent", np.zeros(0)))
    kernel.restore_open(matches, {name: arrays[name] for name in STORED_FIELDS}, events, count)


def _restore_recent(kernel: IntervalKernel, recent: npt.NDArray[Any]) -> None:
    count = recent.size - 1
    if recent.dtype.kind != "i" or recent.ndim != 1 or not 0 <= count <= len(kernel.stores.recent):
        raise SnapshotError("the snapshot's latest times are not those of this lateness")
    kernel.cursor.horizon, kernel.cursor.recent = int(recent[0]), count
    kernel.stores.recent[:count] = np.sort(recent[1:])  # what ascends is a heap
